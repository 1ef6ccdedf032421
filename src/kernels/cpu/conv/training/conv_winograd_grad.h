#pragma once
// The gradient of the weights of 3x3 convolutions by Winograd's F(4x4, 3x3), transposed: a quarter of the products. Contract as
// in conv_grad_weights.h, which chooses it; error up to 1e-5 of the gradient's maximum.

#include <cstddef>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu {

struct ConvWinogradGrad {
  ConvShape shape;
  std::int64_t rows = 0, columns = 0;                            // tiles of an image
  std::int64_t images = 1;                                       // per pass
  std::int64_t in_blocks = 0, out_blocks = 0, panels = 0;        // of channels; panels of two vectors of outputs
  std::size_t x = 0, dy = 0, inputs = 0, outputs = 0, sums = 0;  // floats of the workspace
};
bool conv_winograd_grad_pays(const ConvShape& shape);
ConvWinogradGrad plan_conv_winograd_grad(const ConvShape& shape);
std::size_t conv_winograd_grad_workspace_bytes(const ConvWinogradGrad& plan);
void conv_winograd_grad_f32(const ConvWinogradGrad& plan, const float* x, const float* dy, float* dw, void* workspace);

}  // namespace sdx::cpu
