// Dot products of bytes and of pairs of int16 that add into int32 (Intel SDM, VPDPBUSD and VPDPWSSD: neither saturates):
// AVX512-VNNI, and AVX-VNNI on 256 bits.

#include "kernels/cpu/nbits/nbits_vnni.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/simd/attributes.h"

#define SDX_NBITS_INLINE [[gnu::always_inline]] inline

#define SDX_TARGET SDX_AVX512_VNNI
#define SDX_SPACE nbits_512
#define SDX_RAW(KIND) __m512##KIND
#define SDX_OP(NAME) _mm512_##NAME
#define SDX_INTS(NAME) _mm512_##NAME##_si512
#define SDX_LOAD_BYTES _mm_loadu_si128
#define SDX_DOT(NAME) _mm512_##NAME##_epi32
#include "kernels/cpu/nbits/nbits_vnni-inl.h"

#define SDX_TARGET SDX_AVX_VNNI
#define SDX_SPACE nbits_256
#define SDX_RAW(KIND) __m256##KIND
#define SDX_OP(NAME) _mm256_##NAME
#define SDX_INTS(NAME) _mm256_##NAME##_si256
#define SDX_LOAD_BYTES _mm_loadl_epi64
#define SDX_DOT(NAME) _mm256_##NAME##_avx_epi32
#include "kernels/cpu/nbits/nbits_vnni-inl.h"

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
