// Turns sums into bytes, 16 columns at a time, with AVX2 or better. Included once per instruction set; empty for others.
#if defined(SDX_KERNELS_CPU_QUANT_STORE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SDX_KERNELS_CPU_QUANT_STORE_INL_H_
#undef SDX_KERNELS_CPU_QUANT_STORE_INL_H_
#else
#define SDX_KERNELS_CPU_QUANT_STORE_INL_H_
#endif

#include "kernels/cpu/quant/quant_epilogue-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2  // better targets have lower numbers

// Converts sums of 16 columns to bytes, in registers for all rows.
struct Columns {
  __m256i bias0, bias1;
  __m256 scale0, scale1, low, high;
  __m256i zero;
  bool is_signed;
  // Packing does all the clamping by saturating: the range is the type's, and with scales below 1 the product of an int32 fits
  // int32. Going through int16 is exact: +-32767 is outside the bytes' range with any zero point.
  bool plain;
};

HWY_INLINE Columns columns_of(const QEpilogue& e, std::int64_t column) {
  Columns k;
  const auto ints = [&](std::int64_t i) HWY_ATTR {
    return e.bias != nullptr ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(e.bias + i)) : _mm256_setzero_si256();
  };
  k.bias0 = ints(column);
  k.bias1 = ints(column + 8);
  k.scale0 = e.scale_is_array ? _mm256_loadu_ps(e.scale + column) : _mm256_set1_ps(*e.scale);
  k.scale1 = e.scale_is_array ? _mm256_loadu_ps(e.scale + column + 8) : k.scale0;
  k.low = _mm256_set1_ps(static_cast<float>(e.low - e.zero_point));
  k.high = _mm256_set1_ps(static_cast<float>(e.high - e.zero_point));
  k.zero = _mm256_set1_epi16(static_cast<std::int16_t>(e.zero_point));
  k.is_signed = e.output == QEpilogue::Output::s8;
  const __m256 sign = _mm256_set1_ps(-0.0F);
  const __m256 larger = _mm256_max_ps(_mm256_andnot_ps(sign, k.scale0), _mm256_andnot_ps(sign, k.scale1));
  const bool small = _mm256_movemask_ps(_mm256_cmp_ps(larger, _mm256_set1_ps(1.0F), _CMP_LT_OQ)) == 0xFF;
  k.plain = small && e.low == (k.is_signed ? -128 : 0) && e.high == e.low + 255;
  return k;
}

// Rounds eight scaled sums that include biases.
template <bool kPlain>
HWY_INLINE __m256i rounded(const Columns& k, __m256i v, __m256 scale) {
  __m256 f = _mm256_mul_ps(_mm256_cvtepi32_ps(v), scale);
  if constexpr (!kPlain) f = _mm256_min_ps(_mm256_max_ps(f, k.low), k.high);
  return _mm256_cvtps_epi32(f);
}

// 16 sums as int16 with the zero point added, in groups of four in the order 0 2 1 3.
template <bool kPlain>
HWY_INLINE __m256i words_of(const Columns& k, __m256i v0, __m256i v1) {
  return _mm256_adds_epi16(_mm256_packs_epi32(rounded<kPlain>(k, v0, k.scale0), rounded<kPlain>(k, v1, k.scale1)), k.zero);
}

template <bool kSigned>
HWY_INLINE __m256i narrow_words(__m256i w0, __m256i w1) {
  return kSigned ? _mm256_packs_epi16(w0, w1) : _mm256_packus_epi16(w0, w1);
}

HWY_INLINE void store_half(std::uint8_t* y, __m128i v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(y), v); }

// Stores the words of two rows, from words_of(), as bytes.
template <bool kSigned>
HWY_INLINE void store_two(__m256i w0, __m256i w1, std::uint8_t* y0, std::uint8_t* y1) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_permutevar8x32_epi32(narrow_words<kSigned>(w0, w1), order);
  store_half(y0, _mm256_castsi256_si128(bytes));
  store_half(y1, _mm256_extracti128_si256(bytes, 1));
}
template <bool kSigned>
HWY_INLINE void store_one(__m256i w, std::uint8_t* y) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  store_half(y, _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(narrow_words<kSigned>(w, w), order)));
}

// Calls fn(std::bool_constant plain, std::bool_constant is_signed).
template <class F>
HWY_INLINE void by_kind(const Columns& k, F&& fn) {
  if (k.plain) {
    k.is_signed ? fn(std::true_type(), std::true_type()) : fn(std::true_type(), std::false_type());
  } else {
    k.is_signed ? fn(std::false_type(), std::true_type()) : fn(std::false_type(), std::false_type());
  }
}

#endif

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#endif
