#pragma once
// Operations on single channels or across them; layout and contract as in blocked_layout.h.

#include <cstdint>

namespace sdx::cpu {

// Computes lrn_f32() of norm.h for x and y [batch, ceil(channels / c), plane, c]; y must not be x.
void lrn_blocked_f32(const float* x, float* y, std::int64_t batch, std::int64_t channels, std::int64_t plane, std::int64_t size,
                     float alpha, float beta, float bias);

// y[i, r, p, c] = x[i, r, p, c] * s[i, r, c], or + s[r, c]: a factor or a term per channel. In place allowed.
void scale_channels_f32(std::int64_t images, std::int64_t rows, std::int64_t plane, const float* x, const float* s, float* y);
void shift_channels_f32(std::int64_t images, std::int64_t rows, std::int64_t plane, const float* x, const float* s, float* y);

}  // namespace sdx::cpu
