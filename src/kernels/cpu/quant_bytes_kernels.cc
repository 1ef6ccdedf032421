#include "kernels/cpu/quant_bytes_kernels.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quant_bytes_kernels.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/quant_epilogue-inl.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

template <class T>
using BytesOf = hn::Rebind<T, DI>;

// One vector's worth of sums, still int32.
template <class T>
HWY_INLINE VI add_vector(const QAdd& q, const T* a, const T* b, VF low, VF high) {
  const DI d;
  const DF df;
  const BytesOf<T> d8;
  const VI va = hn::Sub(hn::PromoteTo(d, hn::LoadU(d8, a)), hn::Set(d, q.a_zero));
  const VI vb = hn::Sub(hn::PromoteTo(d, hn::LoadU(d8, b)), hn::Set(d, q.b_zero));
  const VF sum =
      hn::Add(hn::Mul(hn::ConvertTo(df, va), hn::Set(df, q.a_scale)), hn::Mul(hn::ConvertTo(df, vb), hn::Set(df, q.b_scale)));
  return hn::Add(hn::NearestInt(hn::Min(hn::Max(sum, low), high)), hn::Set(d, q.y_zero));
}

template <class T>
void add_of(const QAdd& q, const T* a, const T* b, T* y, std::int64_t n) {
  const DF df;
  const std::int32_t lowest = std::is_signed_v<T> ? -128 : 0;
  [[maybe_unused]] const VF low = hn::Set(df, static_cast<float>(lowest - q.y_zero));
  [[maybe_unused]] const VF high = hn::Set(df, static_cast<float>(lowest + 255 - q.y_zero));
  std::int64_t i = 0;
#if HWY_TARGET == HWY_AVX2
  for (; i + 32 <= n; i += 32) {
    const __m256i q01 =
        _mm256_packs_epi32(add_vector(q, a + i, b + i, low, high).raw, add_vector(q, a + i + 8, b + i + 8, low, high).raw);
    const __m256i q23 = _mm256_packs_epi32(add_vector(q, a + i + 16, b + i + 16, low, high).raw,
                                           add_vector(q, a + i + 24, b + i + 24, low, high).raw);
    const __m256i bytes = std::is_signed_v<T> ? _mm256_packs_epi16(q01, q23) : _mm256_packus_epi16(q01, q23);
    // Packing works in halves of 128 bits: groups of four come as 0 2 4 6 1 3 5 7.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), _mm256_permutevar8x32_epi32(bytes, order));
  }
#elif HWY_TARGET != HWY_SCALAR
  const std::int64_t lanes = lanes_f32();
  const hn::Rebind<std::uint8_t, DI> d8;
  const hn::RebindToUnsigned<DI> du;
  for (; i + lanes <= n; i += lanes) {
    const VI v = add_vector(q, a + i, b + i, low, high);
    hn::StoreU(hn::TruncateTo(d8, hn::BitCast(du, v)), d8, reinterpret_cast<std::uint8_t*>(y) + i);
  }
#endif
  for (; i < n; ++i) {
    const float sum = static_cast<float>(a[i] - q.a_zero) * q.a_scale + static_cast<float>(b[i] - q.b_zero) * q.b_scale;
    const float at_least = sum > static_cast<float>(lowest - q.y_zero) ? sum : static_cast<float>(lowest - q.y_zero);
    const float bounded = std::min(at_least, static_cast<float>(lowest + 255 - q.y_zero));
    y[i] = static_cast<T>(static_cast<std::int32_t>(std::nearbyint(bounded)) + q.y_zero);
  }
}

void add(const QAdd& q, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y, std::int64_t n) {
  if (!q.is_signed) return add_of<std::uint8_t>(q, a, b, y, n);
  add_of<std::int8_t>(q, reinterpret_cast<const std::int8_t*>(a), reinterpret_cast<const std::int8_t*>(b),
                      reinterpret_cast<std::int8_t*>(y), n);
}

template <class T>
void largest_of(const std::uint8_t* const* taps, std::int64_t count, std::int64_t n, T* y) {
  std::int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; c + lanes <= n; c += lanes) {
    auto best = hn::LoadU(d, reinterpret_cast<const T*>(taps[0]) + c);
    for (std::int64_t t = 1; t < count; ++t) best = hn::Max(best, hn::LoadU(d, reinterpret_cast<const T*>(taps[t]) + c));
    hn::StoreU(best, d, y + c);
  }
#endif
  for (; c < n; ++c) {
    T best = reinterpret_cast<const T*>(taps[0])[c];
    for (std::int64_t t = 1; t < count; ++t) best = std::max(best, reinterpret_cast<const T*>(taps[t])[c]);
    y[c] = best;
  }
}

void largest(const std::uint8_t* const* taps, std::int64_t count, bool is_signed, std::int64_t n, std::uint8_t* y) {
  is_signed ? largest_of(taps, count, n, reinterpret_cast<std::int8_t*>(y)) : largest_of(taps, count, n, y);
}

template <class T>
void sum_of(const T* x, std::int64_t pixels, std::int64_t step, std::int64_t n, std::int32_t* sums) {
  const DI d;
  const BytesOf<T> d8;
  const std::int64_t lanes = lanes_f32();
  std::int64_t c = 0;
  for (; c + lanes <= n; c += lanes) {
    VI total = hn::LoadU(d, sums + c);
    for (std::int64_t p = 0; p < pixels; ++p) total = hn::Add(total, hn::PromoteTo(d, hn::LoadU(d8, x + p * step + c)));
    hn::StoreU(total, d, sums + c);
  }
  for (; c < n; ++c) {
    for (std::int64_t p = 0; p < pixels; ++p) sums[c] += x[p * step + c];
  }
}

void sum(const std::uint8_t* x, bool is_signed, std::int64_t pixels, std::int64_t step, std::int64_t n, std::int32_t* sums) {
  is_signed ? sum_of(reinterpret_cast<const std::int8_t*>(x), pixels, step, n, sums) : sum_of(x, pixels, step, n, sums);
}

}  // namespace

const QuantBytesKernels* quant_bytes_table() {
  static const QuantBytesKernels table{add, largest, sum};
  return &table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/dispatch.h"

namespace sdx::cpu {

const QuantBytesKernels& quant_bytes_kernels() { return *SDX_CPU_PICK(quant_bytes_table)(); }

}  // namespace sdx::cpu
#endif
