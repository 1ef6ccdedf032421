#pragma once
// Regular parts of arrays, in settled numbers.

#include <sdx/array/index.hpp>

namespace sdx::array::detail {

// One number for each axis: 0 <= start, and start + (count - 1) * step lies inside; steps may be negative.
struct Steps {
  std::vector<std::int64_t> start, step;
};

array strided_slice(const array& a, const Steps& steps, const Shape& counts, const StreamOrDevice& s = {});
// An array of `shape` that is zero but for this part.
array unslice(const array& part, const Shape& shape, const Steps& steps, const StreamOrDevice& s = {});
// Modes: set, add, multiply, maximum, minimum. `part` has a's element type.
array strided_update(const array& a, const array& part, const Steps& steps, Update mode, const StreamOrDevice& s = {});

// What a:b:c means for an axis, as in Python. Throws for a step of 0.
struct Range {
  std::int64_t start = 0, step = 1, count = 0;
};
Range range_of(const char* operation, const Slice& slice, std::int64_t extent);

}  // namespace sdx::array::detail
