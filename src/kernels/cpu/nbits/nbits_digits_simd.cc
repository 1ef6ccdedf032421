#include "kernels/cpu/nbits/nbits_digits_simd.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/system/cpu_features.h"
#include "kernels/cpu/nbits/nbits_neon.h"
#include "kernels/cpu/nbits/nbits_vnni.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nbits/nbits_digits_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET <= HWY_AVX2

using D8 = hn::FixedTag<float, 8>;
using I8 = hn::FixedTag<std::int32_t, 8>;
using VI8 = hn::Vec<I8>;

// The largest fixed-point number, by number of digits.
constexpr float kMost4[3] = {127.0F, 127.0F * 256.0F, 127.0F * 32768.0F};
constexpr float kMost8[2] = {32767.0F, 2047.0F * 4096.0F};

// The lowest digit of `bits` bits, signed; v becomes the rest above it.
template <int kBits>
HWY_INLINE VI8 lowest_digit(VI8& v) {
  const I8 di;
  const VI8 half = hn::Set(di, 1 << (kBits - 1));
  const VI8 digit = hn::Sub(hn::And(hn::Add(v, half), hn::Set(di, (1 << kBits) - 1)), half);
  v = hn::ShiftRight<kBits>(hn::Sub(v, digit));
  return digit;
}

template <int kBits, int D>
HWY_INLINE void cut(VI8 v, VI8* digits) {
  if constexpr (D == 3) digits[0] = lowest_digit<7>(v), digits[1] = lowest_digit<8>(v);
  if constexpr (D == 2) digits[0] = lowest_digit < kBits == 4 ? 8 : 12 > (v);
  // The highest of three digits has weight 2^15, which is negative as an int16 (end4).
  digits[D - 1] = D == 3 ? hn::Neg(v) : v;
}

// Puts the digits of eight activations, every second one from `parity` on, into their words.
template <int kBits, int D>
HWY_INLINE void put(const VI8* digits, int parity, std::byte* words) {
  constexpr std::int64_t kStep = 8 * D;
  for (int d = 0; d < D; ++d) {
    std::byte* to = words + 8 * d + 4 * parity;
    if constexpr (kBits == 4) {
      HWY_ALIGN std::int8_t bytes[8];
      hn::StoreU(hn::DemoteTo(hn::FixedTag<std::int8_t, 8>(), digits[d]), hn::FixedTag<std::int8_t, 8>(), bytes);
      for (int w = 0; w < 2; ++w) std::memcpy(to + w * kStep, bytes + 4 * w, 4);
    } else {
      HWY_ALIGN std::int16_t pairs[8];
      hn::StoreU(hn::DemoteTo(hn::FixedTag<std::int16_t, 8>(), digits[d]), hn::FixedTag<std::int16_t, 8>(), pairs);
      for (int w = 0; w < 4; ++w) std::memcpy(to + w * kStep, pairs + 2 * w, 4);
    }
  }
}

template <int kBits, int D>
void put_corrections(const VI8* sums, std::int32_t factor, std::byte* record) {
  for (int d = 0; d < D; ++d) {
    HWY_ALIGN std::int32_t s[8];
    hn::Store(sums[d], I8(), s);
    std::int32_t correction;
    if constexpr (kBits == 4) {
      const auto low = static_cast<std::int16_t>(factor * (s[0] + s[1] + s[4] + s[5]));
      const auto high = static_cast<std::int16_t>(factor * (s[2] + s[3] + s[6] + s[7]));
      const std::int16_t pair[2] = {low, high};
      std::memcpy(&correction, pair, 4);
    } else {
      correction = factor * (s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7]);
    }
    std::memcpy(record + 8 + 4 * d, &correction, 4);
  }
}

template <int kBits, int D>
bool digitise_part(const NBitsRowFormat& f, const float* x, std::int32_t factor, std::byte* record) {
  const D8 d8;
  const I8 di;
  VI8 top = hn::Zero(di);
  for (std::int64_t i = 0; i < f.part; i += 8) {
    top = hn::Max(top, hn::And(hn::BitCast(di, hn::LoadU(d8, x + i)), hn::Set(di, 0x7FFFFFFF)));
  }
  const std::int32_t bits = hn::GetLane(hn::MaxOfLanes(di, top));
  if (bits == 0) {
    std::memset(record, 0, static_cast<std::size_t>(f.record_bytes));
    return true;
  }
  constexpr auto kMost = std::bit_cast<std::int32_t>(kNBitsMost), kLeast = std::bit_cast<std::int32_t>(1e-30F);
  if (bits >= kMost || bits < kLeast) return false;
  float most;
  std::memcpy(&most, &bits, 4);
  const float limit = kBits == 4 ? kMost4[D - 1] : kMost8[D < 3 ? D - 1 : 1];
  const auto inverse = hn::Set(d8, limit / most);
  VI8 sums[D], sum = hn::Zero(di);
  for (int d = 0; d < D; ++d) sums[d] = hn::Zero(di);
  std::byte* words = record + 8 + 4 * D;
  for (std::int64_t i = 0; i < f.part; i += 16) {
    hn::Vec<D8> part[2];
    hn::LoadInterleaved2(d8, x + i, part[0], part[1]);
    for (int parity = 0; parity < 2; ++parity) {
      const VI8 v = hn::NearestInt(hn::Mul(part[parity], inverse));
      sum = hn::Add(sum, v);
      VI8 digits[D];
      cut<kBits, D>(v, digits);
      for (int d = 0; d < D; ++d) sums[d] = hn::Add(sums[d], digits[d]);
      put<kBits, D>(digits, parity, words);
    }
    words += 16 * kBits / 32 * 8 * D;
  }
  const float scale = most / limit;
  const float total = scale * static_cast<float>(hn::GetLane(hn::SumOfLanes(di, sum)));
  std::memcpy(record, &scale, 4);
  std::memcpy(record + 4, &total, 4);
  put_corrections<kBits, D>(sums, factor, record);
  return true;
}

bool digitise(const NBitsLayout& l, const NBitsRowFormat& f, const float* x, std::int64_t n, std::int64_t first,
              std::int64_t count, std::byte* row) {
  constexpr NBitsPart kParts[] = {digitise_part<4, 1>, digitise_part<4, 2>, digitise_part<4, 3>, digitise_part<8, 1>,
                                  digitise_part<8, 2>};
  const NBitsPart part = kParts[(l.bits == 8 ? 3 : 0) + f.digits - 1];
  std::int32_t factor = -(1 << (l.bits - 1));
  if (l.zeros == NBitsZeros::integers) factor = -1;
  if (l.zeros == NBitsZeros::floats) factor = 0;
  return nbits_digitise_parts(part, factor, f, x, n, first, count, row);
}

#define SDX_NBITS_INLINE HWY_INLINE

#if HWY_TARGET == HWY_AVX2
#define SDX_INTS(NAME) _mm256_##NAME##_si256
#define SDX_OP(NAME) _mm256_##NAME
using RawInts = __m256i;
using RawFloats = __m256;
#else
#define SDX_INTS(NAME) _mm512_##NAME##_si512
#define SDX_OP(NAME) _mm512_##NAME
using RawInts = __m512i;
using RawFloats = __m512;
#endif

// Sums of codes of 4 bits are int16: a part has 16 products for each, |sum (code - zero) digit| <= 16 * 15 * 128 < 2^15, and
// intermediate overflow wraps back. One product of pairs is at most 2 * 15 * 128, which does not saturate.
struct Ops {
  using Int = RawInts;
  using Float = RawFloats;
  static constexpr int kLanes = HWY_TARGET == HWY_AVX2 ? 8 : 16;
  static constexpr int kMostSums = HWY_TARGET == HWY_AVX2 ? 12 : 24;
  static constexpr bool kFewSums = false;
  static HWY_INLINE Int load(const void* p) { return SDX_INTS(loadu)(reinterpret_cast<const Int*>(p)); }
  static HWY_INLINE Int broadcast(const void* p) {
    int v;
    std::memcpy(&v, p, 4);
    return SDX_OP(set1_epi32)(v);
  }
  static HWY_INLINE Int low_nibbles(Int v) { return SDX_INTS(and)(v, SDX_OP(set1_epi8)(15)); }
  static HWY_INLINE Int high_nibbles(Int v) { return low_nibbles(SDX_OP(srli_epi16)(v, 4)); }
  static HWY_INLINE Int even_bytes(Int v) { return SDX_INTS(and)(v, SDX_OP(set1_epi16)(255)); }
  static HWY_INLINE Int odd_bytes(Int v) { return SDX_OP(srli_epi16)(v, 8); }
  static HWY_INLINE Int zeros(const void* p) {
#if HWY_TARGET == HWY_AVX2
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#else
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#endif
  }
  static HWY_INLINE Int start4(Int correction, const Int* zero) {
    if (zero == nullptr) return correction;
    return SDX_OP(mullo_epi16)(correction, SDX_INTS(or)(*zero, SDX_OP(slli_epi32)(*zero, 16)));
  }
  static HWY_INLINE Int dot4(Int sum, Int codes, Int digits) {
    return SDX_OP(add_epi16)(sum, SDX_OP(maddubs_epi16)(codes, digits));
  }
  // One product with constants adds pairs and weights the digits; |sum| < 32 * 15 * 2^22 fits.
  template <int D>
  static HWY_INLINE Int end4(const Int* s, std::int64_t step) {
    if constexpr (D == 3) {
      const Int high = SDX_OP(madd_epi16)(s[2 * step], SDX_OP(set1_epi16)(-32768));
      const Int middle = SDX_OP(madd_epi16)(s[step], SDX_OP(set1_epi16)(128));
      return SDX_OP(add_epi32)(SDX_OP(add_epi32)(high, middle), SDX_OP(madd_epi16)(s[0], SDX_OP(set1_epi16)(1)));
    } else if constexpr (D == 2) {
      const Int high = SDX_OP(madd_epi16)(s[step], SDX_OP(set1_epi16)(256));
      return SDX_OP(add_epi32)(high, SDX_OP(madd_epi16)(s[0], SDX_OP(set1_epi16)(1)));
    } else {
      return SDX_OP(madd_epi16)(s[0], SDX_OP(set1_epi16)(1));
    }
  }
  static HWY_INLINE Int start8(Int correction, const Int* zero) {
    return zero == nullptr ? correction : SDX_OP(mullo_epi32)(correction, *zero);
  }
  static HWY_INLINE Int dot8(Int sum, Int codes, Int digits) { return SDX_OP(add_epi32)(sum, SDX_OP(madd_epi16)(codes, digits)); }
  static HWY_INLINE Float to_float(Int v) { return SDX_OP(cvtepi32_ps)(v); }
  static HWY_INLINE Float set(float v) { return SDX_OP(set1_ps)(v); }
  static HWY_INLINE Float mul(Float a, Float b) { return SDX_OP(mul_ps)(a, b); }
  static HWY_INLINE Float mul_add(Float a, Float b, Float c) { return SDX_OP(fmadd_ps)(a, b, c); }
  static HWY_INLINE Float load_float(const float* p) { return SDX_OP(loadu_ps)(p); }
  static HWY_INLINE void store(Float v, float* p) { SDX_OP(storeu_ps)(p, v); }
};

#include "kernels/cpu/nbits/nbits_digits-inl.h"

#undef SDX_OP
#undef SDX_INTS
#undef SDX_NBITS_INLINE

#endif  // AVX2 and later

}  // namespace

const NBitsDigitKernels* nbits_digits_table() {
#if HWY_TARGET <= HWY_AVX2
  static const NBitsDigitKernels table = [] {
    NBitsDigitKernels t{digitise, nbits_panel<Ops>};
    const NBitsPanel dots = HWY_TARGET == HWY_AVX2 ? nbits_vnni_panel_256() : nbits_vnni_panel_512();
    if (use_vnni(HWY_TARGET == HWY_AVX2 ? Isa::avx2 : Isa::avx512) && dots != nullptr) t.panel = dots;
    return t;
  }();
  return &table;
#elif HWY_TARGET == HWY_NEON
  return use_vnni(Isa::neon) ? nbits_neon_kernels() : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const NBitsDigitKernels*, nbits_digit_kernels, nbits_digits_table)
#endif
