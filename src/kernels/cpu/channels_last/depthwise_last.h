#pragma once
// Depthwise convolutions over [N, H, W, C]: neighbouring channels fill vectors, whatever the count of channels.

#include <cstddef>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// Whether each channel is convolved with a filter of its own, along at most two axes.
bool depthwise_last_supports(const ConvShape& s);

std::size_t depthwise_last_packed_bytes(const ConvShape& s);
// Packs floats [C, 1, kernel...] at any address.
void depthwise_last_pack_f32(const ConvShape& s, const void* weights, float* packed);

// y = act(conv(x, weights) + bias + residual). bias [C] and residual (of y's extents) may be null; residual may be x.
// Thread-safe, split over current_pool().
void depthwise_last_f32(const ConvShape& s, const float* x, const float* packed, const float* bias, const float* residual,
                        const UnarySpec& act, float* y);

}  // namespace sdx::cpu
