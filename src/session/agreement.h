#pragma once
// Compares the results of two providers.

#include <string>

#include <sdx/tensor.hpp>

namespace sdx::session {

// Why `got` is not the same answer as `reference`, the `cpu` provider's; empty: it is. Floats may differ by 1 % of the largest
// magnitude, all else must be equal. `values_too`: otherwise types and shapes alone count.
std::string disagreement(const Value& reference, const Value& got, bool values_too);

}  // namespace sdx::session
