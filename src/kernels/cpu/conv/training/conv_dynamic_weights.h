#pragma once
// Convolutions in float whose weights are new in each run, as in steps of training: each run packs them, and converts images to
// blocks of channels if that is faster, a few at a time. Contract as in conv/plain/conv.h.

#include <cstddef>

#include "kernels/cpu/conv/blocked/blocked_conv.h"
#include "kernels/cpu/conv/plain/conv.h"

namespace sdx::cpu {

struct DynamicWeightsConv {
  ConvShape shape;
  bool in_blocks = false;
  bool plain_input = false;  // in blocks: x need not be rearranged
  ConvAlgorithm plain = ConvAlgorithm::gemm;
  BlockedConv blocked = BlockedConv::direct;
  std::int64_t images = 1;                        // in blocks: per pass
  std::size_t packed = 0, x = 0, y = 0, own = 0;  // floats of the workspace: weights, images, for the algorithm
};

DynamicWeightsConv plan_dynamic_weights_conv(const ConvShape& shape);
std::size_t dynamic_weights_conv_workspace_bytes(const DynamicWeightsConv& plan);
// y = act(conv(x) + bias[channel]); bias may be null. `weights`: [out_channels, in_channels / groups, kernel...]. `workspace` is
// 64-byte aligned and not shared between concurrent calls.
void dynamic_weights_conv_f32(const DynamicWeightsConv& plan, const float* x, const float* weights, const float* bias,
                              const UnarySpec& act, float* y, void* workspace);

}  // namespace sdx::cpu
