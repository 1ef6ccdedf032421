#include "ops/util/gemm_reference.h"

#include <algorithm>

#include "base/thread_pool.h"

namespace sdx::ops {
namespace {

constexpr std::int64_t kRows = 4;     // rows that share one pass over b
constexpr std::int64_t kCols = 256;   // 4 x 256 float accumulators are 4 KiB: they stay in the first-level cache
constexpr std::int64_t kDepth = 256;  // partial sums of this length are added up: keeps float rounding errors small

template <class T, std::int64_t R>
void block(const GemmArgs<T>& g, std::int64_t i, std::int64_t j, std::int64_t width) {
  T acc[R][kCols];
  T* out = g.c + i * g.ldc + j;
  for (std::int64_t k0 = 0; k0 == 0 || k0 < g.k; k0 += kDepth) {
    for (auto& row : acc) std::fill_n(row, width, T(0));
    const std::int64_t k1 = std::min(g.k, k0 + kDepth);
    for (std::int64_t k = k0; k < k1; ++k) {
      const T* b = g.b + k * g.ldb + j;
      for (std::int64_t r = 0; r < R; ++r) {
        const T a = g.a[(i + r) * g.a_row + k * g.a_col];
        for (std::int64_t x = 0; x < width; ++x) acc[r][x] += a * b[x];
      }
    }
    for (std::int64_t r = 0; r < R; ++r) {
      T* o = out + r * g.ldc;
      if (k0 == 0) {
        std::copy_n(acc[r], width, o);
      } else {
        for (std::int64_t x = 0; x < width; ++x) o[x] += acc[r][x];
      }
    }
  }
}

}  // namespace

template <class T>
void gemm_serial(const GemmArgs<T>& g) {
  for (std::int64_t j = 0; j < g.n; j += kCols) {
    const std::int64_t width = std::min(kCols, g.n - j);
    std::int64_t i = 0;
    for (; i + kRows <= g.m; i += kRows) block<T, kRows>(g, i, j, width);
    for (; i < g.m; ++i) block<T, 1>(g, i, j, width);
  }
}

template <class T>
void gemm_parallel(const GemmArgs<T>& g) {
  if (g.m <= 0 || g.n <= 0) return;
  const std::int64_t row_step = 16;
  const std::int64_t row_blocks = (g.m + row_step - 1) / row_step;
  const std::int64_t col_blocks = (g.n + kCols - 1) / kCols;
  const std::int64_t work = std::min(g.m, row_step) * std::min(g.n, kCols) * std::max<std::int64_t>(g.k, 1);
  const std::int64_t grain = std::max<std::int64_t>(1, (1 << 18) / std::max<std::int64_t>(work, 1));
  parallel_for(row_blocks * col_blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t i = t % row_blocks * row_step;
      const std::int64_t j = t / row_blocks * kCols;
      GemmArgs<T> part = g;
      part.m = std::min(row_step, g.m - i);
      part.n = std::min(kCols, g.n - j);
      part.a += i * g.a_row;
      part.b += j;
      part.c += i * g.ldc + j;
      gemm_serial(part);
    }
  });
}

template <class T>
std::vector<T> transposed(const T* in, std::int64_t rows, std::int64_t cols) {
  std::vector<T> out(static_cast<std::size_t>(rows * cols));
  constexpr std::int64_t kTile = 16;
  for (std::int64_t r0 = 0; r0 < rows; r0 += kTile) {
    for (std::int64_t c0 = 0; c0 < cols; c0 += kTile) {
      for (std::int64_t r = r0; r < std::min(rows, r0 + kTile); ++r) {
        for (std::int64_t c = c0; c < std::min(cols, c0 + kTile); ++c)
          out[static_cast<std::size_t>(c * rows + r)] = in[r * cols + c];
      }
    }
  }
  return out;
}

#define SDX_GEMM(T)                                   \
  template void gemm_serial<T>(const GemmArgs<T>&);   \
  template void gemm_parallel<T>(const GemmArgs<T>&); \
  template std::vector<T> transposed<T>(const T*, std::int64_t, std::int64_t);
SDX_GEMM(float)
SDX_GEMM(double)
SDX_GEMM(std::uint32_t)
SDX_GEMM(std::uint64_t)
#undef SDX_GEMM

}  // namespace sdx::ops
