#include "ops/tensor/gather_index.h"

#include "base/error.h"
#include "base/thread_pool.h"

namespace sdx::ops {
void check_index_type(const Tensor& indices) {
  if (indices.dtype() != DataType::int32 && indices.dtype() != DataType::int64) {
    fail(ErrorCode::invalid_model, "indices must be int32 or int64, received {}", indices.type_string());
  }
}

void fail_index(std::int64_t index, std::int64_t extent) {
  fail(ErrorCode::runtime_failure, "index {} is out of range for extent {}; permitted: {} to {}", index, extent, -extent,
       extent - 1);
}

Ints checked_indices(const Tensor& indices, std::int64_t extent) {
  Ints out(static_cast<std::size_t>(indices.size()));
  dispatch_index(indices, [&](const auto* at) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = checked_index(at[i], extent);
  });
  return out;
}

void check_element_indices(const Shape& data, const Shape& indices, std::size_t axis) {
  bool fits = data.size() == indices.size();
  for (std::size_t d = 0; fits && d < data.size(); ++d) fits = d == axis || indices[d] <= data[d];
  if (!fits) {
    fail(ErrorCode::runtime_failure, "indices {} must have the rank of the data {} and fit into it outside axis {}",
         to_string(indices), to_string(data), axis);
  }
}

ElementRows::ElementRows(const Shape& data, const Shape& indices, std::size_t axis) : strides_(strides_of(data)) {
  axis_step_ = strides_[axis];
  extent_ = data[axis];
  strides_[axis] = 0;
  step_ = strides_.back();
  strides_.pop_back();
  run_ = indices.back();
  extents_.assign(indices.begin(), indices.end() - 1);
  for (const std::int64_t e : extents_) rows_ *= e;
}

std::int64_t ElementRows::base(std::int64_t row) const {
  std::int64_t offset = 0;
  for (std::size_t d = extents_.size(); d-- > 0;) {
    if (d == 0) return offset + row * strides_[0];
    offset += row % extents_[d] * strides_[d];
    row /= extents_[d];
  }
  return offset;
}

void check_nd_ranks(std::size_t data_rank, std::size_t indices_rank, std::int64_t batch_dims) {
  const auto data = static_cast<std::int64_t>(data_rank), indices = static_cast<std::int64_t>(indices_rank);
  // A scalar is taken whole, by indices that name no axis.
  if (batch_dims < 0 || batch_dims >= indices || batch_dims > data || (batch_dims == data && data > 0)) {
    fail(ErrorCode::invalid_model, "data of rank {} and indices of rank {} with batch_dims {}: both ranks must be larger",
         data_rank, indices_rank, batch_dims);
  }
}

void check_nd_depth(std::int64_t depth, std::size_t data_rank, std::int64_t batch_dims) {
  if (depth < 0 || depth > static_cast<std::int64_t>(data_rank) - batch_dims) {
    fail(ErrorCode::invalid_model, "the last extent of the indices is {}; permitted for data of rank {}: 0 to {}", depth,
         data_rank, static_cast<std::int64_t>(data_rank) - batch_dims);
  }
}

Shape scatter_nd_updates(const Shape& data, const Shape& indices) {
  check_nd_ranks(data.size(), indices.size(), 0);
  const std::int64_t depth = indices.back();
  check_nd_depth(depth, data.size(), 0);
  Shape expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), data.begin() + static_cast<std::ptrdiff_t>(depth), data.end());
  return expected;
}

NdOffsets::NdOffsets(const Shape& data, const Tensor& indices, std::int64_t batch_dims) {
  const auto batch = static_cast<std::size_t>(batch_dims);
  const std::int64_t depth = indices.shape().back();
  const Ints strides = strides_of(data);
  run_ = product(data, batch + static_cast<std::size_t>(depth), data.size());
  const std::int64_t batches = product(data, 0, batch);
  const std::int64_t batch_stride = product(data, batch, data.size());
  const std::int64_t count = product(indices.shape(), 0, indices.rank() - 1);
  const std::int64_t per_batch = batches == 0 ? 0 : count / batches;
  if (per_batch == 0) return;
  offsets_.resize(static_cast<std::size_t>(count));
  const std::int64_t* const extents = data.data() + batch;
  const std::int64_t* const steps = strides.data() + batch;
  std::int64_t* const to = offsets_.data();
  dispatch_index(indices, [=](const auto* at) {
    parallel_for(count, grain_for(depth * 16), [=](std::int64_t begin, std::int64_t end) {
      std::int64_t base = begin / per_batch * batch_stride, left = per_batch - begin % per_batch;
      const auto* index = at + begin * depth;
      for (std::int64_t i = begin; i < end; ++i, --left) {
        if (left == 0) {
          base += batch_stride;
          left = per_batch;
        }
        std::int64_t offset = base;
        for (std::int64_t d = 0; d < depth; ++d) offset += checked_index(*index++, extents[d]) * steps[d];
        to[i] = offset;
      }
    });
  });
}

}  // namespace sdx::ops
