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

// How a regular part lies in the array: where it begins, and how its axes step through it, in elements.
struct PartLayout {
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
};
PartLayout part_layout(const Shape& whole, const Shape& part, const std::int64_t* starts, const std::int64_t* steps);
// `out` becomes the part of `whole`; the part's place in `out` becomes `part`.
void take_part(const Tensor& whole, const PartLayout& layout, Tensor& out);
void put_part(const Tensor& part, const PartLayout& layout, Tensor& out);

}  // namespace sdx::array::detail
