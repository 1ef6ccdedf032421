#include "kernels/cpu/image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/thread_pool.h"
#include "kernels/cpu/image/image_simd.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {

void resize_nearest_f32(const float* x, float* y, std::int64_t planes, std::int64_t in_h, std::int64_t in_w, std::int64_t out_h,
                        std::int64_t out_w, const std::int32_t* rows, const std::int32_t* columns) {
  if (planes <= 0 || out_h <= 0 || out_w <= 0) return;
  const ImageKernels& kernels = image_kernels();
  bool twice = out_w == 2 * in_w;  // the usual upsampling by 2 pairs every column
  for (std::int64_t j = 0; twice && j < out_w; ++j) twice = columns[j] == j / 2;
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / (out_h * out_w));
  parallel_for(planes, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      for (std::int64_t i = 0; i < out_h; ++i) {
        float* out = y + (p * out_h + i) * out_w;
        if (i > 0 && rows[i] == rows[i - 1]) {
          std::memcpy(out, out - out_w, static_cast<std::size_t>(out_w) * sizeof(float));
          continue;
        }
        const float* in = x + (p * in_h + rows[i]) * in_w;
        if (twice) {
          const bool again = i + 1 < out_h && rows[i + 1] == rows[i];
          kernels.twice(in, out, again ? out + out_w : nullptr, in_w);
          i += again ? 1 : 0;
        } else {
          for (std::int64_t j = 0; j < out_w; ++j) out[j] = in[columns[j]];
        }
      }
    }
  });
}

void resize_linear_f32(const float* x, float* y, std::int64_t planes, std::int64_t in_h, std::int64_t in_w, std::int64_t out_h,
                       std::int64_t out_w, const LinearTap* rows, const LinearTap* columns) {
  if (planes <= 0 || out_h <= 0 || out_w <= 0) return;
  const ImageKernels& k = image_kernels();
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / (out_h * out_w));
  parallel_for(planes, grain, [&](std::int64_t begin, std::int64_t end) {
    // Each row is stretched once and kept while neighbouring outputs use it: two buffers hold the current pair.
    float* buffer[2] = {thread_scratch(2, static_cast<std::size_t>(2 * out_w)), nullptr};
    buffer[1] = buffer[0] + out_w;
    for (std::int64_t p = begin; p < end; ++p) {
      std::int32_t held[2] = {-1, -1};
      const auto stretch = [&](std::int32_t row, int slot) {
        const float* in = x + (p * in_h + row) * in_w;
        float* out = buffer[slot];
        for (std::int64_t j = 0; j < out_w; ++j) {
          const LinearTap& t = columns[j];
          float between = in[t.low] + t.t * (in[t.high] - in[t.low]);
          // Infinity less infinity is NaN.
          if (std::isnan(between)) between = t.t == 0.0F ? in[t.low] : (1.0F - t.t) * in[t.low] + t.t * in[t.high];
          out[j] = between;
        }
        held[slot] = row;
      };
      for (std::int64_t i = 0; i < out_h; ++i) {
        const LinearTap& t = rows[i];
        if (held[0] != t.low && held[1] == t.low) {
          std::swap(buffer[0], buffer[1]);
          std::swap(held[0], held[1]);
        }
        if (held[0] != t.low) stretch(t.low, 0);
        if (t.high != t.low && held[1] != t.high) stretch(t.high, 1);
        float* out = y + (p * out_h + i) * out_w;
        if (t.high == t.low || t.t == 0.0F) {
          std::memcpy(out, buffer[0], static_cast<std::size_t>(out_w) * sizeof(float));
        } else {
          k.lerp(buffer[0], buffer[1], t.t, out, out_w);
        }
      }
    }
  });
}

}  // namespace sdx::cpu
