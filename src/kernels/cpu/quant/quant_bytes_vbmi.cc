#include "kernels/cpu/quant/quant_bytes_vbmi.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(SDX_NO_AVX512)

// GCC 12's own headers start from registers that are deliberately left undefined (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "kernels/cpu/simd/attributes.h"

HWY_PUSH_ATTRIBUTES(SDX_AVX512_VBMI)
namespace sdx::cpu {
namespace {

void map(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y, std::int64_t n) {
  const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64);
  const __m512i t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);
  const auto look_up = [&](__m512i v) {
    const __m512i low = _mm512_permutex2var_epi8(t0, v, t1), high = _mm512_permutex2var_epi8(t2, v, t3);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high);
  };
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64) _mm512_storeu_si512(y + i, look_up(_mm512_loadu_si512(x + i)));
  if (i == n) return;
  const __mmask64 rest = ~std::uint64_t{0} >> (64 - (n - i));
  _mm512_mask_storeu_epi8(y + i, rest, look_up(_mm512_maskz_loadu_epi8(rest, x + i)));
}

}  // namespace
}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

namespace sdx::cpu {
ByteMap byte_map_vbmi() { return __builtin_cpu_supports("avx512vbmi") != 0 ? map : nullptr; }
}  // namespace sdx::cpu

#else

namespace sdx::cpu {
ByteMap byte_map_vbmi() { return nullptr; }
}  // namespace sdx::cpu

#endif
