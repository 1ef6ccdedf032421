#include "kernels/cpu/quant/quant_bytes_simd.h"

#include <algorithm>
#include <cmath>

#include "base/system/cpu_features.h"
#include "kernels/cpu/quant/quant_bytes_vbmi.h"
#include "kernels/cpu/simd/target_width.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quant/quant_bytes_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/quant/quant_epilogue-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

template <class T>
using BytesOf = hn::Rebind<T, DI>;

// A vector of sums before rounding.
template <class T>
HWY_INLINE VF add_vector(const QAdd& q, const T* a, const T* b) {
  const DI d;
  const DF df;
  const BytesOf<T> d8;
  const VI va = hn::Sub(hn::PromoteTo(d, hn::LoadU(d8, a)), hn::Set(d, q.a_zero));
  const VI vb = hn::Sub(hn::PromoteTo(d, hn::LoadU(d8, b)), hn::Set(d, q.b_zero));
  return hn::Add(hn::Mul(hn::ConvertTo(df, va), hn::Set(df, q.a_scale)), hn::Mul(hn::ConvertTo(df, vb), hn::Set(df, q.b_scale)));
}

// The same for products. Differences and their products are whole numbers, which floats hold exactly.
template <class T>
HWY_INLINE VF mul_vector(const QMul& q, const T* a, const T* b) {
  const DI d;
  const DF df;
  const BytesOf<T> d8;
  const VI va = hn::Sub(hn::PromoteTo(d, hn::LoadU(d8, a)), hn::Set(d, q.a_zero));
  const VI vb = hn::Sub(hn::PromoteTo(d, hn::LoadU(d8, b)), hn::Set(d, q.b_zero));
  return hn::Mul(hn::Mul(hn::ConvertTo(df, va), hn::ConvertTo(df, vb)), hn::Set(df, q.scale));
}

#if HWY_TARGET != HWY_SCALAR
// Stores a vector of bytes: clamped, rounded and with the zero point added.
template <class T>
HWY_INLINE void put_bytes(VF v, VF low, VF high, std::int32_t zero, T* y) {
  const DI d;
  const hn::Rebind<std::uint8_t, DI> d8;
  const hn::RebindToUnsigned<DI> du;
  const VI whole = hn::Add(hn::NearestInt(hn::Min(hn::Max(v, low), high)), hn::Set(d, zero));
  hn::StoreU(hn::TruncateTo(d8, hn::BitCast(du, whole)), d8, reinterpret_cast<std::uint8_t*>(y));
}
#endif

#if HWY_TARGET == HWY_AVX2

// Stores bytes of values(address in a, address in b), 32 at a time. kPlain: values fit int32, so that saturating while packing
// does all the clamping.
template <bool kPlain, class T, class F>
std::int64_t blocks_of(const F& values, std::int32_t y_zero, const T* a, const T* b, T* y, std::int64_t n, VF low, VF high) {
  const __m256i zero = _mm256_set1_epi16(static_cast<std::int16_t>(y_zero));
  // Packing works within 128-bit halves: groups of four come out as 0 2 4 6 1 3 5 7.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  std::int64_t i = 0;
  const auto rounded = [&](std::int64_t at) HWY_ATTR {
    VF v = values(a + i + at, b + i + at);
    if constexpr (!kPlain) v = hn::Min(hn::Max(v, low), high);
    return _mm256_cvtps_epi32(v.raw);
  };
  for (; i + 32 <= n; i += 32) {
    const __m256i q01 = _mm256_adds_epi16(_mm256_packs_epi32(rounded(0), rounded(8)), zero);
    const __m256i q23 = _mm256_adds_epi16(_mm256_packs_epi32(rounded(16), rounded(24)), zero);
    const __m256i bytes = std::is_signed_v<T> ? _mm256_packs_epi16(q01, q23) : _mm256_packus_epi16(q01, q23);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), _mm256_permutevar8x32_epi32(bytes, order));
  }
  return i;
}

template <bool kPlain, class T>
std::int64_t add_blocks(const QAdd& q, const T* a, const T* b, T* y, std::int64_t n, VF low, VF high) {
  const auto values = [&](const T* pa, const T* pb) HWY_ATTR { return add_vector(q, pa, pb); };
  return blocks_of<kPlain>(values, q.y_zero, a, b, y, n, low, high);
}

template <bool kPlain, class T>
std::int64_t mul_blocks(const QMul& q, const T* a, const T* b, T* y, std::int64_t n, VF low, VF high) {
  const auto values = [&](const T* pa, const T* pb) HWY_ATTR { return mul_vector(q, pa, pb); };
  return blocks_of<kPlain>(values, q.y_zero, a, b, y, n, low, high);
}

#elif SDX_512_BITS

// A byte in the low bits of the float 2^23 gives 2^23 plus the byte, exactly. One subtraction removes 2^23 and the zero point.
template <class T>
__m512 base_of(std::int32_t zero) {
  return _mm512_set1_ps(8388608.0F + (std::is_signed_v<T> ? 128.0F : 0.0F) + static_cast<float>(zero));
}

// Stores bytes of `values` of such floats, 64 at a time. Unpacking and packing work in the same 128-bit parts, so no reordering
// is needed. kPlain: values fit int32, so that saturating while packing does all the clamping.
template <bool kPlain, class T, class F>
std::int64_t blocks_of(const F& values, std::int32_t y_zero, const T* a, const T* b, T* y, std::int64_t n, VF low, VF high) {
  constexpr bool kSigned = std::is_signed_v<T>;
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(kSigned ? 0x80 : 0)), none = _mm512_setzero_si512();
  const __m512i exponent = _mm512_set1_epi16(0x4B00), zero = _mm512_set1_epi16(static_cast<std::int16_t>(y_zero));
  const auto floats = [&](__m512i words, bool upper) HWY_ATTR {
    return _mm512_castsi512_ps(upper ? _mm512_unpackhi_epi16(words, exponent) : _mm512_unpacklo_epi16(words, exponent));
  };
  // Computes words of results from words of both operands, which hold one half of each 128 bits of bytes.
  const auto results = [&](__m512i wa, __m512i wb) HWY_ATTR {
    const auto rounded = [&](bool upper) HWY_ATTR {
      __m512 v = values(floats(wa, upper), floats(wb, upper));
      if constexpr (!kPlain) v = _mm512_min_ps(_mm512_max_ps(v, low.raw), high.raw);
      return _mm512_cvtps_epi32(v);
    };
    return _mm512_adds_epi16(_mm512_packs_epi32(rounded(false), rounded(true)), zero);
  };
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const __m512i va = _mm512_xor_si512(_mm512_loadu_si512(a + i), flip), vb = _mm512_xor_si512(_mm512_loadu_si512(b + i), flip);
    const __m512i lower = results(_mm512_unpacklo_epi8(va, none), _mm512_unpacklo_epi8(vb, none));
    const __m512i upper = results(_mm512_unpackhi_epi8(va, none), _mm512_unpackhi_epi8(vb, none));
    _mm512_storeu_si512(y + i, kSigned ? _mm512_packs_epi16(lower, upper) : _mm512_packus_epi16(lower, upper));
  }
  return i;
}

template <bool kPlain, class T>
std::int64_t add_blocks(const QAdd& q, const T* a, const T* b, T* y, std::int64_t n, VF low, VF high) {
  const __m512 a_base = base_of<T>(q.a_zero), a_scale = _mm512_set1_ps(q.a_scale);
  const __m512 b_base = base_of<T>(q.b_zero), b_scale = _mm512_set1_ps(q.b_scale);
  const auto values = [&](__m512 va, __m512 vb) HWY_ATTR {
    return _mm512_add_ps(_mm512_mul_ps(_mm512_sub_ps(va, a_base), a_scale), _mm512_mul_ps(_mm512_sub_ps(vb, b_base), b_scale));
  };
  return blocks_of<kPlain>(values, q.y_zero, a, b, y, n, low, high);
}

template <bool kPlain, class T>
std::int64_t mul_blocks(const QMul& q, const T* a, const T* b, T* y, std::int64_t n, VF low, VF high) {
  const __m512 a_base = base_of<T>(q.a_zero), b_base = base_of<T>(q.b_zero), scale = _mm512_set1_ps(q.scale);
  const auto values = [&](__m512 va, __m512 vb) HWY_ATTR {
    return _mm512_mul_ps(_mm512_mul_ps(_mm512_sub_ps(va, a_base), _mm512_sub_ps(vb, b_base)), scale);
  };
  return blocks_of<kPlain>(values, q.y_zero, a, b, y, n, low, high);
}

#endif

template <class T>
void add_of(const QAdd& q, const T* a, const T* b, T* y, std::int64_t n) {
  const DF df;
  const std::int32_t lowest = std::is_signed_v<T> ? -128 : 0;
  [[maybe_unused]] const VF low = hn::Set(df, static_cast<float>(lowest - q.y_zero));
  [[maybe_unused]] const VF high = hn::Set(df, static_cast<float>(lowest + 255 - q.y_zero));
  std::int64_t i = 0;
#if HWY_TARGET == HWY_AVX2 || SDX_512_BITS
  const bool plain = std::fabs(q.a_scale) < 1e6F && std::fabs(q.b_scale) < 1e6F;
  i = plain ? add_blocks<true>(q, a, b, y, n, low, high) : add_blocks<false>(q, a, b, y, n, low, high);
#endif
#if HWY_TARGET != HWY_AVX2 && HWY_TARGET != HWY_SCALAR
  const std::int64_t lanes = lanes_f32();
  for (; i + lanes <= n; i += lanes) {
    put_bytes(add_vector(q, a + i, b + i), low, high, q.y_zero, y + i);
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
void mul_of(const QMul& q, const T* a, const T* b, T* y, std::int64_t n) {
  const std::int32_t lowest = std::is_signed_v<T> ? -128 : 0;
  const auto low = static_cast<float>(lowest - q.y_zero), high = static_cast<float>(lowest + 255 - q.y_zero);
  [[maybe_unused]] const DF df;
  [[maybe_unused]] const VF vlow = hn::Set(df, low), vhigh = hn::Set(df, high);
  std::int64_t i = 0;
#if HWY_TARGET == HWY_AVX2 || SDX_512_BITS
  const bool plain = std::fabs(q.scale) < 1e4F;
  i = plain ? mul_blocks<true>(q, a, b, y, n, vlow, vhigh) : mul_blocks<false>(q, a, b, y, n, vlow, vhigh);
#endif
#if HWY_TARGET != HWY_SCALAR
  const std::int64_t lanes = lanes_f32();
  for (; i + lanes <= n; i += lanes) {
    put_bytes(mul_vector(q, a + i, b + i), vlow, vhigh, q.y_zero, y + i);
  }
#endif
  for (; i < n; ++i) {
    const float product = static_cast<float>((a[i] - q.a_zero) * (b[i] - q.b_zero)) * q.scale;
    const float bounded = std::min(product > low ? product : low, high);
    // Adding 1.5 * 2^23 rounds, because floats of that size have no fraction. nearbyint() would be a call if nothing is
    // vectorised.
    y[i] = static_cast<T>(static_cast<std::int32_t>((bounded + 12582912.0F) - 12582912.0F) + q.y_zero);
  }
}

void mul(const QMul& q, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y, std::int64_t n) {
  if (!q.is_signed) return mul_of<std::uint8_t>(q, a, b, y, n);
  mul_of<std::int8_t>(q, reinterpret_cast<const std::int8_t*>(a), reinterpret_cast<const std::int8_t*>(b),
                      reinterpret_cast<std::int8_t*>(y), n);
}

// Outputs whose windows are `step` bytes apart, with the same taps in each.
template <class T>
void largest_row_of(const std::uint8_t* const* taps, std::int64_t count, std::int64_t step, std::int64_t width, std::int64_t n,
                    T* y) {
  std::int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  const auto vectors = [&](auto d) HWY_ATTR {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (; c + lanes <= n; c += lanes) {
      for (std::int64_t i = 0; i < width; ++i) {
        const std::int64_t at = i * step + c;
        auto best = hn::LoadU(d, reinterpret_cast<const T*>(taps[0]) + at);
        for (std::int64_t t = 1; t < count; ++t) best = hn::Max(best, hn::LoadU(d, reinterpret_cast<const T*>(taps[t]) + at));
        hn::StoreU(best, d, y + i * n + c);
      }
    }
  };
  vectors(hn::ScalableTag<T>());
  vectors(hn::FixedTag<T, 16>());
  vectors(hn::FixedTag<T, 8>());
#endif
  for (; c < n; ++c) {
    for (std::int64_t i = 0; i < width; ++i) {
      T best = reinterpret_cast<const T*>(taps[0])[i * step + c];
      for (std::int64_t t = 1; t < count; ++t) best = std::max(best, reinterpret_cast<const T*>(taps[t])[i * step + c]);
      y[i * n + c] = best;
    }
  }
}

void largest_row(const std::uint8_t* const* taps, std::int64_t count, bool is_signed, std::int64_t step, std::int64_t width,
                 std::int64_t n, std::uint8_t* y) {
  is_signed ? largest_row_of(taps, count, step, width, n, reinterpret_cast<std::int8_t*>(y))
            : largest_row_of(taps, count, step, width, n, y);
}

// Averages of outputs [0, n) whose taps lie at `at` from the pointers, as described at QAverage.
template <class T>
void exact_averages(const QAverage& q, const std::uint8_t* const* taps, std::int64_t count, float divisor, std::int64_t at,
                    std::int64_t n, T* y) {
  const std::int32_t lowest = std::is_signed_v<T> ? -128 : 0;
  const auto low = static_cast<float>(lowest - q.y_zero), high = static_cast<float>(lowest + 255 - q.y_zero);
  const auto tap = [&](std::int64_t t, std::int64_t c) { return reinterpret_cast<const T*>(taps[t]) + at + c; };
  std::int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  const DI d;
  const DF df;
  const BytesOf<T> d8;
  const std::int64_t lanes = lanes_f32();
  const VF scale = hn::Set(df, q.x_scale);
  for (; c + lanes <= n; c += lanes) {
    VF sum = hn::Zero(df);
    for (std::int64_t t = 0; t < count; ++t) {
      const VI centred = hn::Sub(hn::PromoteTo(d, hn::LoadU(d8, tap(t, c))), hn::Set(d, q.x_zero));
      sum = hn::Add(sum, hn::Mul(hn::ConvertTo(df, centred), scale));
    }
    put_bytes(hn::Div(hn::Div(sum, hn::Set(df, divisor)), hn::Set(df, q.y_scale)), hn::Set(df, low), hn::Set(df, high), q.y_zero,
              y + c);
  }
#endif
  for (; c < n; ++c) {
    float sum = 0;
    for (std::int64_t t = 0; t < count; ++t) sum += static_cast<float>(*tap(t, c) - q.x_zero) * q.x_scale;
    const float real = sum / divisor / q.y_scale;
    const float bounded = std::min(real > low ? real : low, high);
    y[c] = static_cast<T>(static_cast<std::int32_t>((bounded + 12582912.0F) - 12582912.0F) + q.y_zero);
  }
}

#if HWY_TARGET != HWY_SCALAR
// Sums of integers times a factor give the same bytes as sums of floats, and sooner, unless a value is so close to the middle
// between two bytes that errors of rounding decide. The pools of Inception V3 take 0.39 instead of 0.65 ms.
struct FastAverage {
  float factor = 0;
  float close = 0;  // from this distance to the next whole number on
  bool holds = false;
};
inline FastAverage fast_average(const QAverage& q, std::int64_t count, float divisor) {
  const double factor = static_cast<double>(q.x_scale) / (static_cast<double>(divisor) * static_cast<double>(q.y_scale));
  // Each sum, product and quotient is wrong by at most 2^-24 of its operands' magnitudes.
  const double error =
      static_cast<double>(count + 5) * 256.0 * factor * static_cast<double>(count) * (1.0 / static_cast<double>(1 << 24));
  FastAverage fast;
  fast.factor = static_cast<float>(factor);
  fast.close = static_cast<float>(0.5 - error);
  // Sums of 128 bytes fit int16. Other scales may give denormal values or overflow.
  fast.holds = count <= 128 && error < 0.25 && q.x_scale > 1e-30F && q.x_scale < 1e30F;
  return fast;
}

// Stores the averages of a vector of sums; false: errors of rounding may decide.
template <class V16>
HWY_INLINE bool put_averages(const FastAverage& fast, V16 sums, VI zeros, VF low, VF high, VI y_zero, std::uint8_t* y) {
  const DI d;
  const DF df;
  const hn::RebindToUnsigned<DI> du;
  const hn::Rebind<std::uint8_t, DI> d8;
  const hn::Half<hn::DFromV<V16>> half;
  const auto values = [&](VI v) HWY_ATTR {
    return hn::Min(hn::Max(hn::Mul(hn::ConvertTo(df, hn::Sub(v, zeros)), hn::Set(df, fast.factor)), low), high);
  };
  const VF v0 = values(hn::PromoteTo(d, hn::LowerHalf(half, sums))), v1 = values(hn::PromoteTo(d, hn::UpperHalf(half, sums)));
  const VI r0 = hn::NearestInt(v0), r1 = hn::NearestInt(v1);
  const auto distance = [&](VF v, VI r) HWY_ATTR { return hn::Abs(hn::Sub(v, hn::ConvertTo(df, r))); };
  if (!hn::AllFalse(df, hn::Gt(hn::Max(distance(v0, r0), distance(v1, r1)), hn::Set(df, fast.close)))) return false;
  hn::StoreU(hn::TruncateTo(d8, hn::BitCast(du, hn::Add(r0, y_zero))), d8, y);
  hn::StoreU(hn::TruncateTo(d8, hn::BitCast(du, hn::Add(r1, y_zero))), d8, y + hn::Lanes(d));
  return true;
}
#endif

// Outputs whose windows are `step` bytes apart, with the same taps in each.
template <class T>
void average_row(const QAverage& q, const std::uint8_t* const* taps, std::int64_t count, float divisor, std::int64_t step,
                 std::int64_t width, std::int64_t n, T* y) {
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<hwy::MakeWide<T>> d16;
  const hn::Rebind<T, decltype(d16)> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d16));
  const FastAverage fast = fast_average(q, count, divisor);
  if (n >= lanes && fast.holds) {
    const DF df;
    const std::int32_t lowest = std::is_signed_v<T> ? -128 : 0;
    const VF low = hn::Set(df, static_cast<float>(lowest - q.y_zero));
    const VF high = hn::Set(df, static_cast<float>(lowest + 255 - q.y_zero));
    const VI zeros = hn::Set(DI(), static_cast<std::int32_t>(count) * q.x_zero), y_zero = hn::Set(DI(), q.y_zero);
    const auto put = [&](std::int64_t i, std::int64_t c) HWY_ATTR {
      const std::int64_t at = i * step + c;
      const auto tap = [&](std::int64_t t)
                           HWY_ATTR { return hn::PromoteTo(d16, hn::LoadU(d8, reinterpret_cast<const T*>(taps[t]) + at)); };
      auto sums = tap(0);
      for (std::int64_t t = 1; t < count; ++t) sums = hn::Add(sums, tap(t));
      T* out = y + i * n + c;
      if (put_averages(fast, sums, zeros, low, high, y_zero, reinterpret_cast<std::uint8_t*>(out))) return;
      exact_averages(q, taps, count, divisor, at, lanes, out);
    };
    for (std::int64_t i = 0; i < width; ++i) {
      for (std::int64_t c = 0; c < n; c += lanes) put(i, std::min(c, n - lanes));  // the last overlaps the one before it
    }
    return;
  }
#endif
  for (std::int64_t i = 0; i < width; ++i) exact_averages(q, taps, count, divisor, i * step, n, y + i * n);
}

void average(const QAverage& q, const std::uint8_t* const* taps, std::int64_t count, std::int64_t divisor, std::int64_t step,
             std::int64_t width, std::int64_t n, std::uint8_t* y) {
  const auto parts = static_cast<float>(divisor);
  q.is_signed ? average_row(q, taps, count, parts, step, width, n, reinterpret_cast<std::int8_t*>(y))
              : average_row(q, taps, count, parts, step, width, n, y);
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

#if HWY_TARGET != HWY_SCALAR
// Looks up indices below 128 by their low four bits; gives 0 for others. x86's shuffle ignores the bits in between; NEON's gives
// 0 for them, and so do Clang's builds for machines without vectors.
template <class V>
HWY_INLINE V look_up_low_bits(V values, V indices) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
  return hn::TableLookupBytesOr0(values, indices);
#else
  return hn::TableLookupBytesOr0(values, hn::And(indices, hn::Set(hn::DFromV<V>(), 0x8F)));
#endif
}
#endif

// A table of 256 bytes is 16 rows of 16 bytes, the size that a shuffle looks up. Indices with the highest bit set give 0. So the
// eight rows of one half are looked up in turn, and each time 16 is subtracted from the indices: a byte reads all rows up to its
// own. The rows hold differences (exclusive or) to the row before, so these add up to the row's value. A vector takes 50
// instructions; one byte at a time takes four times as long.
void map(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y, std::int64_t n) {
#if SDX_512_BITS
  // VBMI counts as a successor of VNNI: if VNNI is turned off, neither is used.
  static const ByteMap vbmi = use_vnni(Isa::avx512) ? byte_map_vbmi() : nullptr;
  if (vbmi != nullptr) return vbmi(table, x, y, n);
#endif
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (n >= 2 * lanes) {
    const hn::RebindToSigned<decltype(d)> ds;
    HWY_ALIGN std::uint8_t steps[256];
    for (int row = 0; row < 16; ++row) {
      for (int j = 0; j < 16; ++j) {
        const int at = row * 16 + j;
        steps[at] = static_cast<std::uint8_t>(row % 8 == 0 ? table[at] : table[at] ^ table[at - 16]);
      }
    }
    const auto sixteen = hn::Set(ds, 16);
    const auto half = [&](hn::Vec<decltype(d)> v0, hn::Vec<decltype(d)> v1, const std::uint8_t* rows, hn::Vec<decltype(d)>& y0,
                          hn::Vec<decltype(d)>& y1) HWY_ATTR {
      auto a = hn::BitCast(ds, v0);
      auto b = hn::BitCast(ds, v1);
      for (int row = 0; row < 8; ++row) {
        const auto values = hn::LoadDup128(d, rows + row * 16);
        y0 = hn::Xor(y0, look_up_low_bits(values, hn::BitCast(d, a)));
        y1 = hn::Xor(y1, look_up_low_bits(values, hn::BitCast(d, b)));
        a = hn::SaturatedSub(a, sixteen);
        b = hn::SaturatedSub(b, sixteen);
      }
    };
    const auto top = hn::Set(d, 0x80);
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      const auto v0 = hn::LoadU(d, x + i);
      const auto v1 = hn::LoadU(d, x + i + lanes);
      auto y0 = hn::Zero(d);
      auto y1 = hn::Zero(d);
      half(v0, v1, steps, y0, y1);
      half(hn::Xor(v0, top), hn::Xor(v1, top), steps + 128, y0, y1);
      hn::StoreU(y0, d, y + i);
      hn::StoreU(y1, d, y + i + lanes);
    }
  }
#endif
  for (; i < n; ++i) y[i] = table[x[i]];
}

}  // namespace

const QuantBytesKernels& quant_bytes_table() {
  static const QuantBytesKernels table{add, mul, map, largest_row, average, sum};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const QuantBytesKernels&, quant_bytes_kernels, quant_bytes_table)
#endif
