#pragma once
// Convolutions by Winograd's F(t x t, 3 x 3) over blocked channels; internal to conv/blocked.

#include <cstddef>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

bool blocked_winograd_supports(const ConvShape& shape);
// Cost in products per pair of channels, as in conv_blocked_choose().
double blocked_winograd_cost(int t, const ConvShape& shape);
// Whether a run transforms `lean` weights once for each thread's outputs.
bool blocked_winograd_once(int t, const ConvShape& shape);
// `lean`: weights are packed untransformed, whatever t, and transformed in each run.
std::size_t blocked_winograd_floats(int t, bool lean, const ConvShape& shape);
void blocked_winograd_pack(int t, bool lean, const ConvShape& shape, const void* weights, const float* bias, float* packed);
void conv_blocked_winograd(int t, bool lean, const ConvShape& shape, const float* x, const float* packed, const float* residual,
                           const UnarySpec& act, float* y);

}  // namespace sdx::cpu
