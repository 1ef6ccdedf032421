#include "kernels/cpu/conv/blocked/blocked_pool.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/conv/blocked/blocked_pool_simd.h"
#include "kernels/cpu/conv/blocked/blocked_tasks.h"
#include "kernels/cpu/conv/conv_windows.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

struct Pool {
  const BlockedPoolKernels* k;
  std::int64_t block;
  const ConvShape* s;
  const float* x;
  float* y;
  bool average;
  bool count_pad;
  std::int64_t pad_end[3];
};

// Number of elements of output o's window within the padded input.
std::int64_t counted(const Pool& p, int axis, std::int64_t o) {
  const ConvShape& s = *p.s;
  const std::int64_t start = o * s.stride[axis] - s.pad[axis];
  const std::int64_t end = s.in[axis] + p.pad_end[axis];
  return end > start ? std::min(s.kernel[axis], up_div(end - start, s.dilation[axis])) : 0;
}

void pool_run(const Pool& p, const float* plane, std::int64_t oy, std::int64_t from, std::int64_t to, float* row) {
  if (from >= to) return;
  const ConvShape& s = *p.s;
  const std::int64_t c = p.block;
  const Span ky = taps_inside(s, 1, oy), kx = taps_inside(s, 2, from);
  const std::int64_t iy = oy * s.stride[1] - s.pad[1] + ky.begin * s.dilation[1];
  const std::int64_t ix = from * s.stride[2] - s.pad[2] + kx.begin * s.dilation[2];
  const bool none = ky.size() == 0 || kx.size() == 0;
  const float* x = none ? plane : plane + (iy * s.in[2] + ix) * c;
  const std::int64_t rows = none ? 0 : ky.size(), columns = none ? 0 : kx.size();
  const std::int64_t row_step = s.dilation[1] * s.in[2] * c, tap_step = s.dilation[2] * c;
  if (!p.average) return p.k->window_max(x, s.stride[2] * c, rows, columns, row_step, tap_step, row + from * c, to - from);
  const std::int64_t n = p.count_pad ? counted(p, 1, oy) * counted(p, 2, from) : rows * columns;
  p.k->window_sum(x, s.stride[2] * c, rows, columns, row_step, tap_step, 1.0F / static_cast<float>(n), row + from * c, to - from);
}

void run_pool(const Pool& p) {
  const ConvShape& s = *p.s;
  if (s.out[1] <= 0 || s.out[2] <= 0) return;
  const std::int64_t c = p.block;
  const Span inner = whole_windows(s, 2);
  const std::int64_t work = std::max<std::int64_t>(1, s.out[2] * c * s.kernel[1] * s.kernel[2]);
  const std::int64_t grain = std::max<std::int64_t>(1, 100000 / work);
  const RowTasks tasks(s.batch, s.in_channels, s.out[1], s.out[2], std::min(grain, s.out[1]));
  parallel_for(tasks.size(), std::max<std::int64_t>(1, grain * tasks.bands / s.out[1]),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const float* plane = p.x + tasks.plane(i) * s.in[1] * s.in[2] * c;
                   for (std::int64_t oy = tasks.begin(i); oy < tasks.end(i); ++oy) {
                     float* row = p.y + (tasks.plane(i) * s.out[1] + oy) * s.out[2] * c;
                     for (std::int64_t ox = 0; ox < inner.begin; ++ox) pool_run(p, plane, oy, ox, ox + 1, row);
                     pool_run(p, plane, oy, inner.begin, inner.end, row);
                     for (std::int64_t ox = inner.end; ox < s.out[2]; ++ox) pool_run(p, plane, oy, ox, ox + 1, row);
                   }
                 }
               });
}

}  // namespace

void max_pool_blocked_f32(const ConvShape& shape, const float* x, float* y) {
  run_pool({&blocked_pool_kernels(), channel_block(), &shape, x, y, false, false, {0, 0, 0}});
}

void average_pool_blocked_f32(const ConvShape& shape, const std::int64_t (&pad_end)[3], bool count_pad, const float* x,
                              float* y) {
  run_pool({&blocked_pool_kernels(), channel_block(), &shape, x, y, true, count_pad, {pad_end[0], pad_end[1], pad_end[2]}});
}

void mean_blocked_f32(std::int64_t images, std::int64_t rows, std::int64_t plane, const float* x, float* y) {
  const BlockedPoolKernels& k = blocked_pool_kernels();
  const std::int64_t block = channel_block();
  const float factor = 1.0F / static_cast<float>(plane);
  const std::int64_t all = images * rows, threads = current_pool().threads();
  if (images >= threads || !shares_pixels(plane)) {
    return parallel_for(all, std::max<std::int64_t>(1, 32768 / (plane * block)), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) k.mean(x + r * plane * block, factor, y + r * block, plane);
    });
  }
  // Reading a pixel on a core other than the one that wrote it would delay that core's next write, so threads split pixels as
  // layers do. The pieces are those of the kernel, added in its order.
  const std::int64_t pieces = up_div(plane, kMeanPixels);
  float* const sums = thread_scratch(2, static_cast<std::size_t>(pieces * all * block));
  parallel_for(pieces * all, up_div(32768, kMeanPixels * block), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i / all * kMeanPixels, r = i % all;
      k.mean(x + (r * plane + first) * block, 1.0F, sums + i * block, std::min(kMeanPixels, plane - first));
    }
  });
  for (std::int64_t i = 0; i < all * block; ++i) {
    float total = 0.0F;
    for (std::int64_t p = 0; p < pieces; ++p) total += sums[p * all * block + i];
    y[i] = total * factor;
  }
}

}  // namespace sdx::cpu
