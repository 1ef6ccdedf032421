#pragma once
// Index tensors of Gather*, Scatter*: validation and offsets.

#include <cstdint>
#include <vector>

#include <sdx/tensor.hpp>

#include "ops/util/axes.h"
#include "ops/util/movement.h"

namespace sdx::ops {

// All indices (int32 or int64), each mapped from [-extent, extent) to [0, extent). Throws Error(runtime_failure) otherwise.
Ints checked_indices(const Tensor& indices, std::int64_t extent);

// GatherElements and ScatterElements: same rank, and no extent of `indices` beyond that of `data` outside the axis.
void check_element_indices(const Shape& data, const Shape& indices, std::size_t axis);

// Calls fn(i, offset) for each element i of `indices` (values `at`) in order, where offset is the element of `data` it names.
template <class F>
void for_each_element_index(const Shape& data, const Shape& indices, std::size_t axis, const Ints& at, F&& fn) {
  if (at.empty()) return;
  Ints strides = strides_of(data);
  const std::int64_t axis_stride = strides[axis];
  strides[axis] = 0;
  const std::size_t last = indices.size() - 1;
  const std::int64_t run = indices[last];
  Ints position(indices.size(), 0);
  std::int64_t base = 0;
  const auto count = static_cast<std::int64_t>(at.size());
  for (std::int64_t done = 0; done < count; done += run) {
    for (std::int64_t i = 0; i < run; ++i) {
      fn(done + i, base + i * strides[last] + at[static_cast<std::size_t>(done + i)] * axis_stride);
    }
    for (std::size_t d = last; d-- > 0;) {
      base += strides[d];
      if (++position[d] < indices[d]) break;
      base -= strides[d] * indices[d];
      position[d] = 0;
    }
  }
}

// GatherND and ScatterND. Source: ONNX GatherND-13. Throw Error(invalid_model).
void check_nd_ranks(std::size_t data_rank, std::size_t indices_rank, std::int64_t batch_dims);
void check_nd_depth(std::int64_t depth, std::size_t data_rank, std::int64_t batch_dims);

// Offsets into `data` of the runs that an index tensor of shape [.., depth] names. Throws Error(runtime_failure) for indices
// out of range.
class NdOffsets {
 public:
  NdOffsets(const Shape& data, const Tensor& indices, std::int64_t batch_dims);
  std::int64_t count() const { return static_cast<std::int64_t>(offsets_.size()); }
  std::int64_t run() const { return run_; }  // elements per index
  std::int64_t at(std::int64_t i) const { return offsets_[static_cast<std::size_t>(i)]; }

 private:
  Ints offsets_;
  std::int64_t run_ = 1;
};

}  // namespace sdx::ops
