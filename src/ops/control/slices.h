#pragma once
// Whole slices of a tensor along one axis, of any element type: what Loop, Scan and SequenceMap take apart and put together.

#include <cstdint>

#include <sdx/tensor.hpp>

namespace sdx::ops {

// Slice number `index` along `axis`, without that axis. Shares memory with `tensor` where the slice is contiguous.
// Precondition: axis < rank, 0 <= index < dim(axis).
Tensor take_slice(const Tensor& tensor, std::size_t axis, std::int64_t index);

// Writes `item` (which has the shape of `out` without `axis`) as slice number `index`.
void put_slice(Tensor& out, std::size_t axis, std::int64_t index, const Tensor& item);

// Collects items of one type and shape, the number of which is not known beforehand, into one tensor along a new first axis.
// The buffer comes from the budgeted allocator and doubles, so a runaway loop ends in out_of_memory.
class SliceCollector {
 public:
  // Throws Error(runtime_failure) when the item differs from the first one in type or shape.
  void append(const Tensor& item);
  std::int64_t count() const { return count_; }
  // [count, item...]. Precondition: count() > 0.
  Tensor finish();

 private:
  Tensor buffer_;
  Shape item_shape_;
  std::int64_t count_ = 0;
};

}  // namespace sdx::ops
