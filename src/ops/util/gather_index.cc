#include "ops/util/gather_index.h"

#include "base/error.h"

namespace sdx::ops {
namespace {

std::int64_t index_at(const Tensor& indices, std::int64_t i) {
  return indices.dtype() == DataType::int32 ? static_cast<const std::int32_t*>(indices.data())[i]
                                            : static_cast<const std::int64_t*>(indices.data())[i];
}

std::int64_t checked_index(std::int64_t index, std::int64_t extent) {
  if (index < -extent || index >= extent) {
    fail(ErrorCode::runtime_failure, "index {} is out of range for extent {}; permitted: {} to {}", index, extent, -extent,
         extent - 1);
  }
  return index < 0 ? index + extent : index;
}

void check_index_type(const Tensor& indices) {
  if (indices.dtype() != DataType::int32 && indices.dtype() != DataType::int64) {
    fail(ErrorCode::invalid_model, "indices must be int32 or int64, received {}", indices.type_string());
  }
}

}  // namespace

Ints checked_indices(const Tensor& indices, std::int64_t extent) {
  check_index_type(indices);
  Ints out(static_cast<std::size_t>(indices.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = checked_index(index_at(indices, static_cast<std::int64_t>(i)), extent);
  }
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

void check_nd_ranks(std::size_t data_rank, std::size_t indices_rank, std::int64_t batch_dims) {
  const auto least = static_cast<std::int64_t>(std::min(data_rank, indices_rank));
  if (batch_dims < 0 || batch_dims >= least) {
    fail(ErrorCode::invalid_model, "data of rank {} and indices of rank {} with batch_dims {}: both ranks must be larger",
         data_rank, indices_rank, batch_dims);
  }
}

void check_nd_depth(std::int64_t depth, std::size_t data_rank, std::int64_t batch_dims) {
  if (depth < 1 || depth > static_cast<std::int64_t>(data_rank) - batch_dims) {
    fail(ErrorCode::invalid_model, "the last extent of the indices is {}; permitted for data of rank {}: 1 to {}", depth,
         data_rank, static_cast<std::int64_t>(data_rank) - batch_dims);
  }
}

NdOffsets::NdOffsets(const Shape& data, const Tensor& indices, std::int64_t batch_dims) {
  check_index_type(indices);
  const auto batch = static_cast<std::size_t>(batch_dims);
  const std::int64_t depth = indices.shape().back();
  const Ints strides = strides_of(data);
  run_ = product(data, batch + static_cast<std::size_t>(depth), data.size());
  const std::int64_t batches = product(data, 0, batch);
  const std::int64_t batch_stride = product(data, batch, data.size());
  const std::int64_t count = product(indices.shape(), 0, indices.rank() - 1);
  const std::int64_t per_batch = batches == 0 ? 0 : count / batches;
  offsets_.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset = (i / per_batch) * batch_stride;
    for (std::int64_t k = 0; k < depth; ++k) {
      const std::size_t axis = batch + static_cast<std::size_t>(k);
      offset += checked_index(index_at(indices, i * depth + k), data[axis]) * strides[axis];
    }
    offsets_[static_cast<std::size_t>(i)] = offset;
  }
}

}  // namespace sdx::ops
