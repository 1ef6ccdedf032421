#include "kernels/cpu/conv/blocked/blocked_layout.h"

#include "kernels/cpu/conv/blocked/blocked_simd.h"
#include "kernels/cpu/movement/transpose.h"

namespace sdx::cpu {
namespace {

// The last block of an image, if channels do not fill it.
void block_tail(std::int64_t channels, std::int64_t plane, std::int64_t block, const float* x, float* y) {
  for (std::int64_t p = 0; p < plane; ++p) {
    for (std::int64_t c = 0; c < block; ++c) y[p * block + c] = c < channels ? x[c * plane + p] : 0.0F;
  }
}

void unblock_tail(std::int64_t channels, std::int64_t plane, std::int64_t block, const float* x, float* y) {
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t p = 0; p < plane; ++p) y[c * plane + p] = x[p * block + c];
  }
}

}  // namespace

std::int64_t channel_block() { return blocked_kernels().block; }

void to_blocked_f32(std::int64_t batch, std::int64_t channels, std::int64_t plane, const float* x, float* y) {
  const std::int64_t block = channel_block(), whole = channels / block, tail = channels % block;
  const std::int64_t blocks = whole + (tail > 0 ? 1 : 0);
  const std::int64_t images = tail > 0 ? batch : 1;
  for (std::int64_t n = 0; n < images; ++n) {
    const float* from = x + n * channels * plane;
    float* to = y + n * blocks * block * plane;
    const std::int64_t dims[3] = {tail > 0 ? whole : batch * whole, block, plane};
    const int perm[3] = {0, 2, 1};
    transpose(from, to, 4, 3, dims, perm);
    if (tail > 0) block_tail(tail, plane, block, from + whole * block * plane, to + whole * block * plane);
  }
}

void from_blocked_f32(std::int64_t batch, std::int64_t channels, std::int64_t plane, const float* x, float* y) {
  const std::int64_t block = channel_block(), whole = channels / block, tail = channels % block;
  const std::int64_t blocks = whole + (tail > 0 ? 1 : 0);
  const std::int64_t images = tail > 0 ? batch : 1;
  for (std::int64_t n = 0; n < images; ++n) {
    const float* from = x + n * blocks * block * plane;
    float* to = y + n * channels * plane;
    const std::int64_t dims[3] = {tail > 0 ? whole : batch * whole, plane, block};
    const int perm[3] = {0, 2, 1};
    transpose(from, to, 4, 3, dims, perm);
    if (tail > 0) unblock_tail(tail, plane, block, from + whole * block * plane, to + whole * block * plane);
  }
}

}  // namespace sdx::cpu
