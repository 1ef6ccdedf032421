#pragma once
// Depthwise convolutions over NC[D][H]W tensors; contract as in conv.h. Internal to the convolutions.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// weights: packed by conv_pack_f32 for ConvAlgorithm::depthwise.
void conv_depthwise(const ConvShape& s, const float* x, const float* weights, const float* bias, const float* residual,
                    const UnarySpec& act, float* y);

// The same over bytes: widen() gives n floats of input from element `at` on, narrow() takes n sums of output channel `channel`
// for the outputs from element `at` on. Both are called from several threads.
struct ByteConv {
  const void* context;
  void (*widen)(const void* context, std::int64_t at, std::int64_t n, float* out);
  void (*narrow)(const void* context, const float* sums, std::int64_t n, std::int64_t channel, std::int64_t at);
};
void conv_depthwise_bytes(const ConvShape& s, const ByteConv& bytes, const float* weights);

}  // namespace sdx::cpu
