// The products of nbits_digits.h with dot products of bytes and of pairs of int16 that add into int32 (Intel SDM, VPDPBUSD and
// VPDPWSSD: neither saturates): AVX512-VNNI, and AVX-VNNI on 256 bits.

#include "kernels/cpu/nbits_digits.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cstring>

#define SDX_NBITS_INLINE [[gnu::always_inline]] inline

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")
#endif

namespace sdx::cpu {
namespace nbits_512 {
namespace {

struct Ops {
  // Not __m512i: GCC 12 spills accumulators of that type, which halves the speed.
  using Int = int __attribute__((vector_size(64)));
  using Float = float __attribute__((vector_size(64)));
  static constexpr int kLanes = 16;
  static constexpr int kMostSums = 24;
  static __m512i raw(Int v) { return reinterpret_cast<__m512i>(v); }
  static Int of(__m512i v) { return reinterpret_cast<Int>(v); }
  static Int load(const void* p) { return of(_mm512_loadu_si512(p)); }
  static Int broadcast(const void* p) {
    int v;
    std::memcpy(&v, p, 4);
    return of(_mm512_set1_epi32(v));
  }
  static Int low_nibbles(Int v) { return of(_mm512_and_si512(raw(v), _mm512_set1_epi8(15))); }
  static Int high_nibbles(Int v) { return low_nibbles(of(_mm512_srli_epi16(raw(v), 4))); }
  static Int even_bytes(Int v) { return of(_mm512_and_si512(raw(v), _mm512_set1_epi16(255))); }
  static Int odd_bytes(Int v) { return of(_mm512_srli_epi16(raw(v), 8)); }
  static Int zeros(const void* p) { return of(_mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)))); }
  static Int start4(Int correction, const Int* zero) {
    const __m512i pair = zero == nullptr ? _mm512_set1_epi16(1) : _mm512_or_si512(raw(*zero), _mm512_slli_epi32(raw(*zero), 16));
    return of(_mm512_madd_epi16(raw(correction), pair));
  }
  static Int dot4(Int sum, Int codes, Int digits) { return of(_mm512_dpbusd_epi32(raw(sum), raw(codes), raw(digits))); }
  template <int D>
  static Int end4(const Int* s, std::int64_t step) {
    if constexpr (D == 3) return s[0] + (s[step] << 7) - (s[2 * step] << 15);
    if constexpr (D == 2) return s[0] + (s[step] << 8);
    return s[0];
  }
  static Int start8(Int correction, const Int* zero) { return zero == nullptr ? correction : correction * *zero; }
  static Int dot8(Int sum, Int codes, Int digits) { return of(_mm512_dpwssd_epi32(raw(sum), raw(codes), raw(digits))); }
  static Float to_float(Int v) { return reinterpret_cast<Float>(_mm512_cvtepi32_ps(raw(v))); }
  static Float set(float v) { return reinterpret_cast<Float>(_mm512_set1_ps(v)); }
  static Float mul_add(Float a, Float b, Float c) {
    return reinterpret_cast<Float>(
        _mm512_fmadd_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
  }
  static Float load_float(const float* p) { return reinterpret_cast<Float>(_mm512_loadu_ps(p)); }
  static void store(Float v, float* p) { _mm512_storeu_ps(p, reinterpret_cast<__m512>(v)); }
};

#include "kernels/cpu/nbits_digits-inl.h"

}  // namespace

NBitsPanel panel() { return nbits_panel<Ops>; }

}  // namespace nbits_512
}  // namespace sdx::cpu

#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,fma,avxvnni"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma,avxvnni")
#endif

namespace sdx::cpu {
namespace nbits_256 {
namespace {

struct Ops {
  using Int = int __attribute__((vector_size(32)));
  using Float = float __attribute__((vector_size(32)));
  static constexpr int kLanes = 8;
  static constexpr int kMostSums = 12;
  static __m256i raw(Int v) { return reinterpret_cast<__m256i>(v); }
  static Int of(__m256i v) { return reinterpret_cast<Int>(v); }
  static Int load(const void* p) { return of(_mm256_loadu_si256(static_cast<const __m256i*>(p))); }
  static Int broadcast(const void* p) {
    int v;
    std::memcpy(&v, p, 4);
    return of(_mm256_set1_epi32(v));
  }
  static Int low_nibbles(Int v) { return of(_mm256_and_si256(raw(v), _mm256_set1_epi8(15))); }
  static Int high_nibbles(Int v) { return low_nibbles(of(_mm256_srli_epi16(raw(v), 4))); }
  static Int even_bytes(Int v) { return of(_mm256_and_si256(raw(v), _mm256_set1_epi16(255))); }
  static Int odd_bytes(Int v) { return of(_mm256_srli_epi16(raw(v), 8)); }
  static Int zeros(const void* p) { return of(_mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)))); }
  static Int start4(Int correction, const Int* zero) {
    const __m256i pair = zero == nullptr ? _mm256_set1_epi16(1) : _mm256_or_si256(raw(*zero), _mm256_slli_epi32(raw(*zero), 16));
    return of(_mm256_madd_epi16(raw(correction), pair));
  }
  static Int dot4(Int sum, Int codes, Int digits) { return of(_mm256_dpbusd_avx_epi32(raw(sum), raw(codes), raw(digits))); }
  template <int D>
  static Int end4(const Int* s, std::int64_t step) {
    if constexpr (D == 3) return s[0] + (s[step] << 7) - (s[2 * step] << 15);
    if constexpr (D == 2) return s[0] + (s[step] << 8);
    return s[0];
  }
  static Int start8(Int correction, const Int* zero) { return zero == nullptr ? correction : correction * *zero; }
  static Int dot8(Int sum, Int codes, Int digits) { return of(_mm256_dpwssd_avx_epi32(raw(sum), raw(codes), raw(digits))); }
  static Float to_float(Int v) { return reinterpret_cast<Float>(_mm256_cvtepi32_ps(raw(v))); }
  static Float set(float v) { return reinterpret_cast<Float>(_mm256_set1_ps(v)); }
  static Float mul_add(Float a, Float b, Float c) {
    return reinterpret_cast<Float>(
        _mm256_fmadd_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
  }
  static Float load_float(const float* p) { return reinterpret_cast<Float>(_mm256_loadu_ps(p)); }
  static void store(Float v, float* p) { _mm256_storeu_ps(p, reinterpret_cast<__m256>(v)); }
};

#include "kernels/cpu/nbits_digits-inl.h"

}  // namespace

NBitsPanel panel() { return nbits_panel<Ops>; }

}  // namespace nbits_256
}  // namespace sdx::cpu

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace sdx::cpu {

NBitsPanel nbits_vnni_panel_512() { return nbits_512::panel(); }
NBitsPanel nbits_vnni_panel_256() { return nbits_256::panel(); }

}  // namespace sdx::cpu

#else

namespace sdx::cpu {

NBitsPanel nbits_vnni_panel_512() { return nullptr; }
NBitsPanel nbits_vnni_panel_256() { return nullptr; }

}  // namespace sdx::cpu

#endif
