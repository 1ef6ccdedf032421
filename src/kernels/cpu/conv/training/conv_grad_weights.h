#pragma once
// The gradients of a convolution's weights and bias, in float over NC[H]W tensors: one or two spatial axes, extent 1 along depth.
// Contract as in conv/plain/conv.h; `shape` is the convolution's own. Workspaces are 64-byte aligned and not shared between
// concurrent calls. Results depend on the number of threads only as far as the pool's split does.

#include <cstddef>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/conv/training/conv_winograd_grad.h"

namespace sdx::cpu {

// One spatial axis of images stored side by side: padded, with rows split into the stride's phases. Tap k of result o reads index
// o + k * dilation / stride of phase k * dilation % stride. With one copy per tap, rows hold what the tap reads for each result.
struct GradAxis {
  std::int64_t out = 1, in = 1, pad = 0, stride = 1, dilation = 1, taps = 1;
  std::int64_t phases = 1;  // that taps use: 0 to phases - 1
  std::int64_t pitch = 1;   // from one row, or image, to the next
  std::int64_t reach = 0;   // the last tap's index
};

// For each tap the product of dy and the input shifted by the tap, over all pixels of all images.
struct ConvGradWeights {
  ConvShape shape;
  bool by_winograd = false;
  ConvWinogradGrad winograd;
  bool by_tap = false;  // one copy of the input per tap: few channels, or small images, which are mostly borders
  GradAxis y, x;
  std::int64_t images = 1;                  // per pass
  std::int64_t plane = 0;                   // floats of one channel of these images
  std::int64_t columns = 0;                 // of the sums: output channels of a group, whole panels
  std::size_t input = 0, dy = 0, sums = 0;  // floats of the workspace
};
bool conv_grad_weights_supports(const ConvShape& shape);
ConvGradWeights plan_conv_grad_weights(const ConvShape& shape);
std::size_t conv_grad_weights_workspace_bytes(const ConvGradWeights& plan);
void conv_grad_weights_f32(const ConvGradWeights& plan, const float* x, const float* dy, float* dw, void* workspace);

// db[channel]: dy summed over images and pixels. workspace: batch * out_channels floats.
void conv_grad_bias_f32(const ConvShape& shape, const float* dy, float* db, void* workspace);

}  // namespace sdx::cpu
