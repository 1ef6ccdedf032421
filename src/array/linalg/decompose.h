#pragma once
// Decompositions as operations.

#include <vector>

#include <sdx/array/array.hpp>

#include "array/kind.h"
#include "array/linalg/module_api.h"

namespace sdx::array::detail {

// Shapes and types of the results follow from the inputs, whose batches are alike.
std::vector<array> decompose(Decomposition what, bool flag, std::vector<array> inputs, const StreamOrDevice& s = {});

// The rule of each, or null.
std::vector<array> (*decomposition_vjp(Decomposition what))(const VjpCall&);

// "inv", for messages.
const char* name_of(Decomposition what);

// Conjugate transpose.
array adjoint(const array& a);

}  // namespace sdx::array::detail
