#include "ops/quant/quant_layout.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

// Long runs are cut so that threads can share them.
constexpr std::int64_t kTensorRun = 16384;

void check_blocks(const Shape& x, const Shape& scale, std::size_t axis, std::int64_t block) {
  bool fits = scale.size() == x.size();
  for (std::size_t i = 0; fits && i < x.size(); ++i) {
    fits = scale[i] == (i == axis ? ceil_div(x[i], block) : x[i]);
  }
  if (fits) return;
  fail(ErrorCode::invalid_model,
       "blocked quantisation of shape {} along axis {} in blocks of {} needs a scale of x's shape with the axis divided by the "
       "block size (rounded up); received {}",
       to_string(x), axis, block, to_string(scale));
}

}  // namespace

QuantLayout::Run QuantLayout::at(std::int64_t r) const {
  switch (kind) {
    case Kind::tensor: return {r * run, std::min(run, count - r * run), 0};
    case Kind::axis: return {r * run, run, steps ? 0 : r % axis_extent};
    case Kind::block: break;
  }
  if (steps) {  // one run per (outer, axis) position, `inner` long
    const std::int64_t outer = r / axis_extent;
    const std::int64_t a = r % axis_extent;
    return {r * run, run, (outer * blocks + a / block) * inner};
  }
  const std::int64_t outer = r / blocks;  // inner == 1: one run per block
  const std::int64_t b = r % blocks;
  const std::int64_t first = b * block;
  return {outer * axis_extent + first, std::min(block, axis_extent - first), r};
}

QuantLayout quant_layout(const Shape& x, const Shape& scale, const Shape* zero_point, std::int64_t axis,
                         std::int64_t block_size) {
  QuantLayout l;
  l.count = element_count(x);
  const std::int64_t scales = element_count(scale);
  if (zero_point != nullptr && element_count(*zero_point) != scales) {
    fail(ErrorCode::invalid_model, "scale {} and zero point {} must have the same shape", to_string(scale),
         to_string(*zero_point));
  }
  if (block_size < 0) fail(ErrorCode::invalid_model, "block_size must not be negative, received {}", block_size);
  if (scales == 1 && scale.size() <= 1 && block_size == 0) {
    l.run = std::max<std::int64_t>(1, std::min(l.count, kTensorRun));
    l.runs = ceil_div(l.count, l.run);
    return l;
  }
  if (x.empty()) fail(ErrorCode::invalid_model, "a scalar takes one scale; received scale {}", to_string(scale));
  // ONNX QuantizeLinear-21: with a rank of 1 the axis is unnecessary, and its default of 1 would be out of range.
  const auto a = static_cast<std::size_t>(x.size() == 1 ? 0 : normalize_axis(axis, x.size()));
  const std::int64_t outer = product(x, 0, a);
  l.axis_extent = x[a];
  l.inner = product(x, a + 1, x.size());
  if (block_size > 0) {
    check_blocks(x, scale, a, block_size);
    l.kind = QuantLayout::Kind::block;
    l.block = std::min(block_size, std::max<std::int64_t>(1, l.axis_extent));
    l.blocks = ceil_div(l.axis_extent, l.block);
    l.steps = l.inner != 1;
    l.run = l.steps ? l.inner : l.block;
    l.runs = l.count == 0 ? 0 : outer * (l.steps ? l.axis_extent : l.blocks);
    return l;
  }
  if (scale.size() != 1 || scales != l.axis_extent) {
    fail(ErrorCode::invalid_model,
         "per-axis quantisation of shape {} along axis {} needs a rank-1 scale of {} elements; received {}", to_string(x), a,
         l.axis_extent, to_string(scale));
  }
  l.kind = QuantLayout::Kind::axis;
  l.steps = l.inner == 1;
  l.run = l.steps ? l.axis_extent : l.inner;
  l.runs = l.count == 0 ? 0 : l.count / l.run;
  return l;
}

}  // namespace sdx::ops
