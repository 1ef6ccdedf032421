#include "kernels/cpu/ggml/ggml_bytes_vnni.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/simd/attributes.h"

#define SDX_BYTES_INLINE __attribute__((always_inline)) inline

#define SDX_TARGET SDX_AVX512_VNNI
#define SDX_SPACE bytes_512
#define SDX_RAW(KIND) __m512##KIND
#define SDX_OP(NAME) _mm512_##NAME
#define SDX_INTS(NAME) _mm512_##NAME##_si512
#define SDX_DOT _mm512_dpbusd_epi32
#include "kernels/cpu/ggml/ggml_bytes_vnni-inl.h"

#define SDX_TARGET SDX_AVX_VNNI
#define SDX_SPACE bytes_256
#define SDX_RAW(KIND) __m256##KIND
#define SDX_OP(NAME) _mm256_##NAME
#define SDX_INTS(NAME) _mm256_##NAME##_si256
#define SDX_DOT _mm256_dpbusd_avx_epi32
#include "kernels/cpu/ggml/ggml_bytes_vnni-inl.h"

namespace sdx::cpu {

void set_byte_vnni_512(ByteKernels& table) { bytes_512::set(table); }
void set_byte_vnni_256(ByteKernels& table) { bytes_256::set(table); }

}  // namespace sdx::cpu

#else

namespace sdx::cpu {

void set_byte_vnni_512(ByteKernels&) {}
void set_byte_vnni_256(ByteKernels&) {}

}  // namespace sdx::cpu

#endif
