#pragma once
// What updates of parts have in common: their derivatives.

#include <functional>
#include <optional>

#include <sdx/array/index.hpp>

#include "array/kind.h"

namespace sdx::array::detail {

// Of the array, and of the values that change it.
struct UpdateGradients {
  std::function<array()> of_array, of_values;
};

using ReadPart = std::function<array(const array&)>;
using WritePart = std::function<array(const array&, const array&, Update)>;

// `read` takes the part of an array, `write` changes it. Inputs 0 and 1 are the array and the values. `stored` says which values
// are still there where `set` has put several into one place; nothing where no two can meet.
UpdateGradients update_gradients(Update mode, const VjpCall& c, const ReadPart& read, const WritePart& write,
                                 const std::function<std::optional<array>()>& stored);
// The wanted ones of inputs 0 and 1; zeros for others, which are positions.
std::vector<array> chosen(const VjpCall& c, const UpdateGradients& g);

// The kernels' number of set, add, multiply, maximum and minimum.
std::int64_t number_of(Update mode);
// What `mode` makes of elements and values of one shape.
array combined(Update mode, const array& now, const array& values, const StreamOrDevice& s = {});
// What adding does instead of subtracting, and multiplying instead of dividing: -values, 1 / values.
array reversed(Update mode, const array& values, const StreamOrDevice& s = {});

}  // namespace sdx::array::detail
