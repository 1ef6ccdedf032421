#include "ops/matrix/gemm_reference.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"

namespace sdx::ops {
namespace {

constexpr std::int64_t kCols = 256;   // columns of one parallel job
constexpr std::int64_t kDepth = 256;  // partial sums of this length are added up: keeps float rounding errors small

// Sixteen bytes of T: every 64-bit target has such registers, and at -O2 compilers do not find them on their own.
template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(16)));
  static constexpr std::int64_t kCount = 16 / static_cast<std::int64_t>(sizeof(T));

  static Vector load(const T* p) {
    Vector v;
    std::memcpy(&v, p, sizeof(v));
    return v;
  }
  static void store(T* p, Vector v) { std::memcpy(p, &v, sizeof(v)); }
};

// Four rows by two vectors over k in [k0, k1): eight accumulators, so that they fit the sixteen registers of x86-64.
template <class T>
void tile(const GemmArgs<T>& g, std::int64_t i, std::int64_t j, std::int64_t k0, std::int64_t k1) {
  using L = Lanes<T>;
  typename L::Vector c00{}, c01{}, c10{}, c11{}, c20{}, c21{}, c30{}, c31{};
  const T* a0 = g.a + i * g.a_row;
  const T* a1 = a0 + g.a_row;
  const T* a2 = a1 + g.a_row;
  const T* a3 = a2 + g.a_row;
  for (std::int64_t k = k0; k < k1; ++k) {
    const T* b = g.b + k * g.ldb + j;
    const auto b0 = L::load(b);
    const auto b1 = L::load(b + L::kCount);
    const std::int64_t at = k * g.a_col;
    c00 += a0[at] * b0;
    c01 += a0[at] * b1;
    c10 += a1[at] * b0;
    c11 += a1[at] * b1;
    c20 += a2[at] * b0;
    c21 += a2[at] * b1;
    c30 += a3[at] * b0;
    c31 += a3[at] * b1;
  }
  const auto put = [&](std::int64_t row, typename L::Vector v0, typename L::Vector v1) {
    T* o = g.c + (i + row) * g.ldc + j;
    L::store(o, k0 == 0 ? v0 : L::load(o) + v0);
    L::store(o + L::kCount, k0 == 0 ? v1 : L::load(o + L::kCount) + v1);
  };
  put(0, c00, c01);
  put(1, c10, c11);
  put(2, c20, c21);
  put(3, c30, c31);
}

// Computes columns [j, end) of one row: vectors, then the rest.
template <class T>
void row(const GemmArgs<T>& g, std::int64_t i, std::int64_t j, std::int64_t end, std::int64_t k0, std::int64_t k1) {
  using L = Lanes<T>;
  const T* a = g.a + i * g.a_row;
  T* o = g.c + i * g.ldc;
  for (; j + 2 * L::kCount <= end; j += 2 * L::kCount) {
    typename L::Vector c0{}, c1{};
    for (std::int64_t k = k0; k < k1; ++k) {
      const T* b = g.b + k * g.ldb + j;
      c0 += a[k * g.a_col] * L::load(b);
      c1 += a[k * g.a_col] * L::load(b + L::kCount);
    }
    L::store(o + j, k0 == 0 ? c0 : L::load(o + j) + c0);
    L::store(o + j + L::kCount, k0 == 0 ? c1 : L::load(o + j + L::kCount) + c1);
  }
  for (; j < end; ++j) {
    T sum = 0;
    for (std::int64_t k = k0; k < k1; ++k) sum += a[k * g.a_col] * g.b[k * g.ldb + j];
    o[j] = k0 == 0 ? sum : o[j] + sum;
  }
}

}  // namespace

template <class T>
void gemm_serial(const GemmArgs<T>& g) {
  constexpr std::int64_t kWidth = 2 * Lanes<T>::kCount;
  const std::int64_t rows = g.m - g.m % 4;
  const std::int64_t cols = g.n - g.n % kWidth;
  for (std::int64_t k0 = 0; k0 == 0 || k0 < g.k; k0 += kDepth) {
    const std::int64_t k1 = std::min(g.k, k0 + kDepth);
    for (std::int64_t j = 0; j < cols; j += kWidth) {
      for (std::int64_t i = 0; i < rows; i += 4) tile(g, i, j, k0, k1);
    }
    for (std::int64_t i = 0; i < rows; ++i) row(g, i, cols, g.n, k0, k1);
    for (std::int64_t i = rows; i < g.m; ++i) row(g, i, 0, g.n, k0, k1);
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
