#pragma once
// Pooling over NC[D][H]W float tensors. Dense, float alignment, y must not overlap x. Thread-safe, split over current_pool();
// each computing thread keeps up to 512 KB of scratch.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu {

// Geometry as in ConvShape; `in_channels` planes, out_channels and groups unused. Every window must meet the input at least
// once for max pooling (else the result there is -inf). NaN in a window gives NaN.
void max_pool_f32(const ConvShape& shape, const float* x, float* y);

// count_pad: divide by the number of the window's elements within the padded input, whose end paddings are pad_end (ONNX
// count_include_pad = 1); else by those within the input itself (0 / 0 = NaN if there are none).
void average_pool_f32(const ConvShape& shape, const std::int64_t (&pad_end)[3], bool count_pad, const float* x, float* y);

}  // namespace sdx::cpu
