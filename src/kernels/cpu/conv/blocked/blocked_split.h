#pragma once
// Sums of windows over blocks of 16 channels by tiles of bfloat16 (gemm_split.h); internal to this folder.

#include <cstdint>

#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// The inputs of `lines` times `width` pixels, as chunks of 16 floats: pixel p of line l reads those at x + l * line_step +
// p * pixel_step + chunks[i], or, if `places` is not null, at x + places[p] + chunks[i].
struct SplitPixels {
  const float* x = nullptr;
  std::int64_t line_step = 0, pixel_step = 0;
  std::int64_t lines = 1, width = 0;
  const std::int64_t* places = nullptr;
  const std::int64_t* chunks = nullptr;
  std::int64_t count = 0;  // of chunks
};

// y = act(sums + bias + residual): vector v of the first pixel is at y + v * plane_step, those of the pixels after it 16 floats
// further each. The residual lies likewise and may be y; null: none. `bias` holds 16 values for each vector.
struct SplitResults {
  float* y = nullptr;
  std::int64_t plane_step = 0;
  const float* bias = nullptr;
  const float* residual = nullptr;
  UnarySpec act;
};

// Whether the machine supports it and this many pixels, chunks and pairs are faster this way.
bool split_pixels_pay(std::int64_t pixels, std::int64_t count, std::int64_t pairs);

// Pairs of vectors of outputs; `weights` is [pair][16 * count][32].
void multiply_split_pixels(const SplitPixels& from, const float* weights, std::int64_t pairs, const SplitResults& to);

}  // namespace sdx::cpu
