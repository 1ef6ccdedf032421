#include "kernels/cpu/conv/blocked/blocked_channels.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_channels_simd.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/conv/blocked/blocked_tasks.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

// Calls a function for rows of `plane` pixels, in pieces of about 32,768 elements.
template <class F>
void for_pieces(std::int64_t images, std::int64_t rows, std::int64_t plane, std::int64_t block, F&& piece) {
  if (images <= 0 || rows <= 0 || plane <= 0) return;
  const RowTasks tasks(images, rows, plane, 1, std::max<std::int64_t>(1, 32768 / block));
  const std::int64_t each = up_div(plane, tasks.bands) * block;
  parallel_for(tasks.size(), std::max<std::int64_t>(1, 32768 / each), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) piece(tasks.plane(i), tasks.begin(i), tasks.end(i) - tasks.begin(i));
  });
}

}  // namespace

void lrn_blocked_f32(const float* x, float* y, std::int64_t batch, std::int64_t channels, std::int64_t plane, std::int64_t size,
                     float alpha, float beta, float bias) {
  const BlockedChannelsKernels& k = blocked_channels_kernels();
  const std::int64_t block = channel_block();
  const std::int64_t padded = up_div(channels, block) * block, pieces = up_div(plane, kLrnPixels);
  parallel_for(batch * pieces, up_div(32768, padded * kLrnPixels), [&](std::int64_t begin, std::int64_t end) {
    float* const squares = thread_scratch(2, static_cast<std::size_t>(lrn_scratch(padded, size)));
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % pieces * kLrnPixels;
      const std::int64_t at = i / pieces * padded * plane + first * block;
      BlockedLrn n;
      n.x = x + at, n.y = y + at;
      n.channels = channels, n.plane = plane * block, n.pixels = std::min(kLrnPixels, plane - first);
      n.size = size;
      n.alpha = alpha / static_cast<float>(size), n.beta = beta, n.bias = bias;
      k.lrn(n, squares);
    }
  });
}

void scale_channels_f32(std::int64_t images, std::int64_t rows, std::int64_t plane, const float* x, const float* s, float* y) {
  const BlockedChannelsKernels& k = blocked_channels_kernels();
  const std::int64_t block = channel_block();
  for_pieces(images, rows, plane, block, [&](std::int64_t r, std::int64_t p, std::int64_t n) {
    const std::int64_t at = (r * plane + p) * block;
    k.scale(x + at, s + r * block, y + at, n);
  });
}

void shift_channels_f32(std::int64_t images, std::int64_t rows, std::int64_t plane, const float* x, const float* s, float* y) {
  const BlockedChannelsKernels& k = blocked_channels_kernels();
  const std::int64_t block = channel_block();
  for_pieces(images, rows, plane, block, [&](std::int64_t r, std::int64_t p, std::int64_t n) {
    const std::int64_t at = (r * plane + p) * block;
    k.shift(x + at, s + r * block, y + at, n);
  });
}

}  // namespace sdx::cpu
