#pragma once
// Poolings over blocked channels; layout and contract as in blocked_layout.h.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu {

// Pools as in pool.h; `in_channels` of the shape counts blocks.
void max_pool_blocked_f32(const ConvShape& shape, const float* x, float* y);
void average_pool_blocked_f32(const ConvShape& shape, const std::int64_t (&pad_end)[3], bool count_pad, const float* x, float* y);
// The mean over `plane` > 0 elements: x [images, rows, plane, c], y [images, rows, c].
void mean_blocked_f32(std::int64_t images, std::int64_t rows, std::int64_t plane, const float* x, float* y);

}  // namespace sdx::cpu
