#include "ops/tensor/axes.h"

#include "base/error.h"

namespace sdx::ops {

std::int64_t normalize_axis(std::int64_t axis, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r) {
    fail(ErrorCode::invalid_model, "axis {} is out of range for rank {}; permitted: {} to {}", axis, r, -r, r - 1);
  }
  return axis < 0 ? axis + r : axis;
}

std::vector<std::int64_t> normalize_axes(std::span<const std::int64_t> axes, std::size_t rank) {
  std::vector<std::int64_t> out;
  std::vector<bool> seen(rank, false);
  for (const std::int64_t axis : axes) {
    const std::int64_t a = normalize_axis(axis, rank);
    if (seen[static_cast<std::size_t>(a)]) fail(ErrorCode::invalid_model, "axis {} is listed twice", axis);
    seen[static_cast<std::size_t>(a)] = true;
    out.push_back(a);
  }
  return out;
}

std::int64_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  std::int64_t p = 1;
  for (std::size_t i = begin; i < end; ++i) p *= shape[i];
  return p;
}

Dim product(const SymShape& shape, std::size_t begin, std::size_t end) {
  Dim p(1);
  for (std::size_t i = begin; i < end; ++i) p = p * shape[i];
  return p;
}

std::vector<std::int64_t> strides_of(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t s = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = s;
    s *= shape[i];
  }
  return strides;
}

}  // namespace sdx::ops
