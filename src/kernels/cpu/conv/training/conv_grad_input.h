#pragma once
// The gradient of a convolution's input, in float over NC[D][H]W tensors. Contract as in conv/plain/conv.h; `shape` is the
// convolution's own.

#include <cstddef>

#include "kernels/cpu/conv/training/conv_dynamic_weights.h"

namespace sdx::cpu {

struct ConvGradInput {
  bool transposed = false;  // by conv_transpose_f32, for strides; else dy convolved with the reversed weights
  ConvShape shape;          // of the convolution that computes it
  DynamicWeightsConv conv;
  std::size_t weights = 0;  // floats of the workspace: reversed or packed
};
ConvGradInput plan_conv_grad_input(const ConvShape& shape);
std::size_t conv_grad_input_workspace_bytes(const ConvGradInput& plan);
// `workspace` is 64-byte aligned and not shared between concurrent calls.
void conv_grad_input_f32(const ConvGradInput& plan, const float* dy, const float* weights, float* dx, void* workspace);

}  // namespace sdx::cpu
