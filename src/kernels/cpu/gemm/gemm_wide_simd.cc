#include "kernels/cpu/gemm/gemm_wide_simd.h"

#include <type_traits>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/gemm_wide_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

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

}  // namespace

const WideKernels& wide_table() {
  static const WideKernels table{tile_of<double>(), tile_of<std::int32_t>(), tile_of<std::int64_t>()};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const WideKernels&, wide_kernels, wide_table)
#endif
