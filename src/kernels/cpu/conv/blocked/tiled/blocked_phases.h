#pragma once
// Dilated convolutions by Winograd's algorithm on sub-images; internal to conv/blocked.

#include <cstddef>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// A dilated convolution's phases, as separate images without dilation or padding.
bool is_dilated(const ConvShape& shape);
ConvShape phases_of(const ConvShape& shape);
std::size_t phases_workspace_floats(const ConvShape& shape);
void conv_blocked_winograd_phases(int t, bool lean, const ConvShape& shape, const float* x, const float* packed,
                                  const float* residual, const UnarySpec& act, float* y, float* workspace);

}  // namespace sdx::cpu
