#include "kernels/cpu/conv/blocked/blocked_copies.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/conv/blocked/blocked_joined_simd.h"

namespace sdx::cpu {

bool copy_padded(const ConvShape& s, std::int64_t in_block, std::int64_t blocks, const float* x, std::int64_t first_row,
                 std::int64_t rows, std::int64_t width, bool looks, float* out) {
  bool tame = true;
  const std::int64_t left = std::clamp<std::int64_t>(s.pad[2], 0, width);
  const std::int64_t skip = std::max<std::int64_t>(0, -s.pad[2]);
  const std::int64_t inside = std::clamp<std::int64_t>(s.in[2] - skip, 0, width - left);
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::int64_t r = 0; r < rows; ++r, out += width * in_block) {
      const std::int64_t iy = first_row + r;
      if (iy < 0 || iy >= s.in[1]) {
        std::fill(out, out + width * in_block, 0.0F);
        continue;
      }
      std::fill(out, out + left * in_block, 0.0F);
      if (inside > 0) {
        const float* const from = x + ((b * s.in[1] + iy) * s.in[2] + skip) * in_block;
        if (looks) {
          tame = blocked_joined_kernels().copy_tame(from, inside * in_block, out + left * in_block) && tame;
        } else {
          std::memcpy(out + left * in_block, from, static_cast<std::size_t>(inside * in_block) * sizeof(float));
        }
      }
      std::fill(out + (left + inside) * in_block, out + width * in_block, 0.0F);
    }
  }
  return tame;
}

void copy_strided_pixels(const ConvShape& s, std::int64_t in_block, std::int64_t blocks, const float* x, std::int64_t y0,
                         std::int64_t rows, float* out) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::int64_t r = y0; r < y0 + rows; ++r) {
      const float* from = x + (b * s.in[1] + r * s.stride[1]) * s.in[2] * in_block;
      for (std::int64_t i = 0; i < s.out[2]; ++i, out += in_block) {
        std::copy_n(from + i * s.stride[2] * in_block, in_block, out);
      }
    }
  }
}

}  // namespace sdx::cpu
