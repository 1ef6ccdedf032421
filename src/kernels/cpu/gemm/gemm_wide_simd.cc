#include "kernels/cpu/gemm/gemm_wide_simd.h"

#include <type_traits>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/gemm_wide_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/simd/loops.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// Twelve vectors of sums, two of B and one of A fit 16 registers.
constexpr int kRows = 6;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V multiply_add(D, V a, V b, V sum) {
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    return hn::MulAdd(a, b, sum);
  } else {
    return hn::Add(sum, hn::Mul(a, b));
  }
}

template <class T>
void tile(const T* a, const T* b, std::int64_t k, T* c, std::int64_t ld, bool first) {
  const hn::ScalableTag<T> d;
  const auto lanes = hn::Lanes(d);
  using V = hn::Vec<decltype(d)>;
  const V zero = hn::Zero(d);
  V s00 = zero, s01 = zero, s10 = zero, s11 = zero, s20 = zero, s21 = zero;
  V s30 = zero, s31 = zero, s40 = zero, s41 = zero, s50 = zero, s51 = zero;
  for (std::int64_t i = 0; i < k; ++i, a += kRows, b += 2 * lanes) {
    const V b0 = hn::Load(d, b), b1 = hn::Load(d, b + lanes);
    const auto row = [&](int r, V& x, V& y) HWY_ATTR {
      const V v = hn::Set(d, a[r]);
      x = multiply_add(d, v, b0, x);
      y = multiply_add(d, v, b1, y);
    };
    row(0, s00, s01);
    row(1, s10, s11);
    row(2, s20, s21);
    row(3, s30, s31);
    row(4, s40, s41);
    row(5, s50, s51);
  }
  const auto store = [&](int r, V x, V y) HWY_ATTR {
    T* at = c + r * ld;
    hn::StoreU(first ? x : hn::Add(x, hn::LoadU(d, at)), d, at);
    hn::StoreU(first ? y : hn::Add(y, hn::LoadU(d, at + lanes)), d, at + lanes);
  };
  store(0, s00, s01);
  store(1, s10, s11);
  store(2, s20, s21);
  store(3, s30, s31);
  store(4, s40, s41);
  store(5, s50, s51);
}

template <class T>
WideTile<T> tile_of() {
  static_assert(kRows * 2 * HWY_MAX_BYTES / sizeof(T) <= kMaxWideTile);
  return {kRows, static_cast<int>(2 * hn::Lanes(hn::ScalableTag<T>())), tile<T>};
}

// c += the sum of four products of a number and a row of b; without kAdd, c = that sum.
template <bool kAdd, class T>
HWY_INLINE void add_four(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step, T* c, std::int64_t n) {
  const T a0 = a[0], a1 = a[a_step], a2 = a[2 * a_step], a3 = a[3 * a_step];
  const T *b1 = b + b_step, *b2 = b1 + b_step, *b3 = b2 + b_step;
  SDX_INDEPENDENT
  for (std::int64_t j = 0; j < n; ++j) {
    const T sum = (a0 * b[j] + a1 * b1[j]) + (a2 * b2[j] + a3 * b3[j]);
    c[j] = kAdd ? c[j] + sum : sum;
  }
}

// Computes one row of c: adds up rows of b, which lie side by side, four at a time.
template <class T>
void add_rows(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step, std::int64_t k, T* c, std::int64_t n) {
  std::int64_t p = 0;
  if (k >= 4) {
    add_four<false>(a, a_step, b, b_step, c, n);
    p = 4;
  } else {
    std::fill_n(c, n, T{0});
  }
  for (; p + 4 <= k; p += 4) add_four<true>(a + p * a_step, a_step, b + p * b_step, b_step, c, n);
  for (; p < k; ++p) {
    const T a0 = a[p * a_step];
    const T* b0 = b + p * b_step;
    SDX_INDEPENDENT
    for (std::int64_t j = 0; j < n; ++j) c[j] += a0 * b0[j];
  }
}

// Both operands lie side by side along k. Several sums, so that additions do not wait for each other.
template <class T>
T dot(const T* a, const T* b, std::int64_t k) {
  constexpr std::int64_t kSums = 16;
  T sums[kSums] = {};
  std::int64_t p = 0;
  for (; p + kSums <= k; p += kSums) {
    SDX_INDEPENDENT
    for (std::int64_t i = 0; i < kSums; ++i) sums[i] += a[p + i] * b[p + i];
  }
  for (std::int64_t i = 0; p + i < k; ++i) sums[i] += a[p + i] * b[p + i];
  for (std::int64_t half = kSums / 2; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

template <class T>
void direct(const WideDirect<T>& g) {
  for (std::int64_t i = 0; i < g.m; ++i) {
    const T* a = g.a + i * g.a_row;
    T* const c = g.c + i * g.ldc;
    if (g.b_column == 1) {
      add_rows(a, g.a_step, g.b, g.b_step, g.k, c, g.n);
      continue;
    }
    for (std::int64_t j = 0; j < g.n; ++j) {
      const T* b = g.b + j * g.b_column;
      if (g.a_step == 1 && g.b_step == 1) {
        c[j] = dot(a, b, g.k);
      } else {
        T sum{0};
        for (std::int64_t p = 0; p < g.k; ++p) sum += a[p * g.a_step] * b[p * g.b_step];
        c[j] = sum;
      }
    }
  }
}

}  // namespace

const WideKernels& wide_table() {
  static const WideKernels table{tile_of<double>(), tile_of<std::int32_t>(), tile_of<std::int64_t>(),
                                 direct<double>,    direct<std::uint32_t>,   direct<std::uint64_t>};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const WideKernels&, wide_kernels, wide_table)
#endif
