#pragma once
// Shrinks pictures of bytes, and splits them into planes of floats. Runs on the calling thread only. Thread-safe.

#include <array>
#include <cstdint>

namespace sdx::cpu {

// Interleaved channels, rows without padding. 1 <= new side <= side.
struct ShrinkShape {
  std::int64_t width = 0, height = 0;  // of `from`
  std::int64_t new_width = 0, new_height = 0;
  std::int64_t channels = 3;  // 1, 3 or 4
};

// Each new pixel is the mean of the area it covers, rounded to nearest.
void shrink_u8(const ShrinkShape& shape, const std::uint8_t* from, std::uint8_t* to);

// planes[c][i] = (pixels[3 * i + c] - mean[c]) * scale, i < count
void split3_u8(const std::uint8_t* pixels, std::int64_t count, const std::array<float, 3>& mean, float scale,
               const std::array<float*, 3>& planes);

}  // namespace sdx::cpu
