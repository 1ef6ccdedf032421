#include "array/ops/batch.h"

#include <numeric>

#include <sdx/array.hpp>

namespace sdx::array::detail {

bool is_batched(const VmapCall& c, std::size_t i) { return c.in_axes[i] >= 0; }

std::size_t inner_rank(const VmapCall& c, std::size_t i) { return c.inputs[i].shape().size() - (is_batched(c, i) ? 1 : 0); }

array batch_first(const VmapCall& c, std::size_t i) {
  return c.in_axes[i] <= 0 ? c.inputs[i] : moveaxis(c.inputs[i], c.in_axes[i], 0);
}

array batched(const VmapCall& c, std::size_t i) {
  if (is_batched(c, i)) return batch_first(c, i);
  Shape shape = c.inputs[i].shape();
  shape.insert(shape.begin(), c.batch);
  return broadcast_to(c.inputs[i], shape);
}

VmapResult batch_result(array a) { return {{std::move(a)}, {0}}; }

array iota(std::int64_t n) {
  Tensor t(Dtype::int64, {n});
  const auto values = t.mutable_values<std::int64_t>();
  std::iota(values.begin(), values.end(), std::int64_t{0});
  return array(std::move(t));
}

array zeros_of(const Shape& shape, Dtype dtype) { return broadcast_to(array(0, dtype), shape); }

}  // namespace sdx::array::detail
