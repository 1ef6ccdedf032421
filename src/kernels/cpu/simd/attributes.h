#pragma once
// For instructions that Highway lacks: arguments of HWY_PUSH_ATTRIBUTES around functions that use them.

#include <hwy/base.h>

#define SDX_AVX512_VNNI "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"
#define SDX_AVX512_VBMI "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi"
#define SDX_AMX_INT8 "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,amx-tile,amx-int8"
#define SDX_AMX_BF16 "avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16"
#define SDX_AVX2 "avx2,fma"
#define SDX_AVX_VNNI "avx2,fma,avxvnni"
// Clang takes names of extensions. GCC replaces the file's own architecture, which is why that of Highway's NEON is named again.
#if defined(__clang__)
#define SDX_NEON_DOTS "dotprod"
#define SDX_NEON_I8MM "dotprod,i8mm"
#define SDX_NEON_BF16 "bf16"
#else
#define SDX_NEON_DOTS "arch=armv8.2-a+crypto+dotprod"
#define SDX_NEON_I8MM "arch=armv8.2-a+crypto+dotprod+i8mm"
#define SDX_NEON_BF16 "arch=armv8.2-a+crypto+bf16"
#endif
