#pragma once
// Index tensors of Gather*, Scatter*: validation and offsets.

#include <cstdint>

#include <sdx/tensor.hpp>

#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"

namespace sdx::ops {

// All indices (int32 or int64), each mapped from [-extent, extent) to [0, extent). Throws Error(runtime_failure) otherwise.
Ints checked_indices(const Tensor& indices, std::int64_t extent);

// GatherElements and ScatterElements: same rank, and no extent of `indices` beyond that of `data` outside the axis.
void check_element_indices(const Shape& data, const Shape& indices, std::size_t axis);

// Calls fn(const std::int32_t*) or fn(const std::int64_t*) with the indices. Throws Error(invalid_model) for another type.
void check_index_type(const Tensor& indices);
template <class F>
void dispatch_index(const Tensor& indices, F&& fn) {
  check_index_type(indices);
  if (indices.dtype() == DataType::int32) return fn(static_cast<const std::int32_t*>(indices.data()));
  fn(static_cast<const std::int64_t*>(indices.data()));
}

[[noreturn]] void fail_index(std::int64_t index, std::int64_t extent);

// Maps [-extent, extent) to [0, extent); throws Error(runtime_failure) for other numbers.
inline std::int64_t checked_index(std::int64_t index, std::int64_t extent) {
  const std::int64_t from_start = index + ((index >> 63) & extent);
  if (static_cast<std::uint64_t>(from_start) >= static_cast<std::uint64_t>(extent)) fail_index(index, extent);
  return from_start;
}

// The rows (innermost axis) of an index tensor, which fits `data` (check_element_indices) and is not empty: element i of row
// number `row` names the element base + i * step + index * axis_step of `data`.
class ElementRows {
 public:
  ElementRows(const Shape& data, const Shape& indices, std::size_t axis);
  std::int64_t rows() const { return rows_; }
  std::int64_t run() const { return run_; }
  std::int64_t extent() const { return extent_; }  // of the axis
  std::int64_t step() const { return step_; }      // 0 or 1
  std::int64_t axis_step() const { return axis_step_; }
  std::int64_t base(std::int64_t row) const;

 private:
  Ints extents_, strides_;  // outside the innermost axis
  std::int64_t rows_ = 1, run_ = 1, extent_ = 1, step_ = 1, axis_step_ = 1;
};

// Calls fn(i, offset) for each element i in columns [left, right) of rows [begin, end) in order, where offset is the element of
// the data it names.
template <class Index, class F>
void for_each_element_index(const ElementRows& rows, const Index* at, std::int64_t begin, std::int64_t end, std::int64_t left,
                            std::int64_t right, F&& fn) {
  const std::int64_t extent = rows.extent(), axis_step = rows.axis_step();
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int64_t base = rows.base(r), first = r * rows.run();
    if (rows.step() == 0) {
      for (std::int64_t i = first + left; i < first + right; ++i) fn(i, base + checked_index(at[i], extent));
    } else {
      for (std::int64_t i = first + left; i < first + right; ++i) {
        fn(i, base + (i - first) + checked_index(at[i], extent) * axis_step);
      }
    }
  }
}

template <class Index, class F>
void for_each_element_index(const ElementRows& rows, const Index* at, std::int64_t begin, std::int64_t end, F&& fn) {
  for_each_element_index(rows, at, begin, end, 0, rows.run(), fn);
}

// GatherND and ScatterND. Source: ONNX GatherND-13. Throw Error(invalid_model).
void check_nd_ranks(std::size_t data_rank, std::size_t indices_rank, std::int64_t batch_dims);
void check_nd_depth(std::int64_t depth, std::size_t data_rank, std::int64_t batch_dims);

// The shape of ScatterND's updates. Throws Error(invalid_model) for indices that do not fit.
Shape scatter_nd_updates(const Shape& data, const Shape& indices);

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
