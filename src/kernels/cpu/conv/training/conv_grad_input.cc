#include "kernels/cpu/conv/training/conv_grad_input.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/plain/conv_transpose.h"
#include "kernels/cpu/simd/cuts.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kLine = 16;  // floats

// Reorders [outputs, inputs, taps] of each group to [inputs, outputs, taps], with taps reversed. Shape: of the convolution that
// will use them.
void turn_weights(const ConvShape& s, const float* weights, float* turned) {
  constexpr std::int64_t kSome = 8;  // inputs at a time, so that neighbours in memory are read together
  const std::int64_t from = s.in_channels / s.groups, to = s.out_channels / s.groups, taps = volume(s.kernel);
  const std::int64_t parts = up_div(to, kSome);
  parallel_for(s.groups * parts, std::max<std::int64_t>(1, 32768 / (kSome * from * taps)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t group = i / parts, c0 = i % parts * kSome, c1 = std::min(to, c0 + kSome);
                   for (std::int64_t m = 0; m < from; ++m) {
                     for (std::int64_t c = c0; c < c1; ++c) {
                       const float* w = weights + ((group * from + m) * to + c) * taps;
                       std::reverse_copy(w, w + taps, turned + ((group * to + c) * from + m) * taps);
                     }
                   }
                 }
               });
}

}  // namespace

ConvGradInput plan_conv_grad_input(const ConvShape& s) {
  ConvGradInput p;
  p.shape = s;
  std::swap(p.shape.in_channels, p.shape.out_channels);
  for (int i = 0; i < 3; ++i) {
    std::swap(p.shape.in[i], p.shape.out[i]);
    const std::int64_t pad = (s.kernel[i] - 1) * s.dilation[i] - s.pad[i];
    p.transposed = p.transposed || s.stride[i] != 1 || pad < 0;
  }
  if (p.transposed) {
    p.weights = to_size(round_up(static_cast<std::int64_t>(conv_transpose_packed_bytes(p.shape) / sizeof(float)), kLine));
    return p;
  }
  for (int i = 0; i < 3; ++i) p.shape.pad[i] = (s.kernel[i] - 1) * s.dilation[i] - s.pad[i];
  p.conv = plan_dynamic_weights_conv(p.shape);
  p.weights = to_size(round_up(s.in_channels / s.groups * s.out_channels * volume(s.kernel), kLine));
  return p;
}

std::size_t conv_grad_input_workspace_bytes(const ConvGradInput& p) {
  return p.weights * sizeof(float) +
         (p.transposed ? conv_transpose_workspace_bytes(p.shape) : dynamic_weights_conv_workspace_bytes(p.conv));
}

void conv_grad_input_f32(const ConvGradInput& p, const float* dy, const float* weights, float* dx, void* workspace) {
  auto* const own = static_cast<float*>(workspace);
  if (p.transposed) {
    conv_transpose_pack_f32(p.shape, weights, own);
    return conv_transpose_f32(p.shape, dy, own, nullptr, {}, dx, own + p.weights);
  }
  turn_weights(p.shape, weights, own);
  dynamic_weights_conv_f32(p.conv, dy, own, nullptr, {}, dx, own + p.weights);
}

}  // namespace sdx::cpu
