#pragma once
// The state of a pooling for given shapes, for plain channels and for those in blocks.

#include <memory>
#include <vector>

#include "providers/cpu/conv_shape.h"
#include "providers/interface/kernel.h"

namespace sdx::cpu {

struct PoolState : KernelState {
  ConvShape shape;
  std::int64_t pad_end[3] = {0, 0, 0};
};

// `x`: [N, C, spatial...]; at most three spatial axes.
inline std::unique_ptr<PoolState> pool_state(const Attributes& attrs, const Shape& x) {
  auto state = std::make_unique<PoolState>();
  const std::vector<ops::WindowAxis> axes = ops::pool_axes(attrs, x);
  state->shape.batch = x[0];
  state->shape.in_channels = x[1];
  set_axes(state->shape, axes);
  for (std::size_t i = 0; i < axes.size(); ++i) state->pad_end[3 - axes.size() + i] = axes[i].pad_end;
  return state;
}

}  // namespace sdx::cpu
