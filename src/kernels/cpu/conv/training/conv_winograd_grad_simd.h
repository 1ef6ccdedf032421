#pragma once
// Per-target inner loops of conv_winograd_grad.h; internal to this folder. `block` is channel_block().

#include <cstdint>

namespace sdx::cpu {

inline constexpr std::int64_t kWinogradElements = 36;  // of a tile of 4 x 4

// A tile of the result's gradient in one block of channels: `rows` x `columns` of 4 x 4 exist, the rest is 0.
struct WinogradGradTile {
  const float* dy = nullptr;
  std::int64_t row_step = 0, rows = 0, columns = 0;
  float* m = nullptr;  // A dy A^T, elements e_step apart
  std::int64_t e_step = 0;
};

struct WinogradGradKernels {
  int width;  // two vectors: columns of products
  void (*tile)(const WinogradGradTile& t);
  // sums[i][j] = (or +=) the sum over t < tiles of v[t * block + i] * m[t * width + j], for i < block and j < width.
  void (*products)(const float* v, const float* m, std::int64_t tiles, bool add, float* sums);
  // G^T u G of sums [element][block][width]: the nine taps of input i and output j, i < inputs and j < outputs, go to
  // dw[j * step + i * 9].
  void (*taps)(const float* sums, std::int64_t inputs, std::int64_t outputs, float* dw, std::int64_t step);
};

const WinogradGradKernels& winograd_grad_kernels();

}  // namespace sdx::cpu
