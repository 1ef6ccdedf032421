#pragma once
// Included before any Highway header by every file that is compiled once per instruction set (see foreach_target.h).
// SSSE3 machines without SSE4 are older than 2008; SVE code paths cannot be tested here, and machines with SVE have NEON.
#ifdef SDX_NO_AVX512
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif
// One baseline for every compiler: others than GCC 12.2 would compile Highway's emulated vectors of 128 bits, whose Min and Max
// lose NaN.
#define HWY_BROKEN_EMU128 1
// Compile the baseline too, which is what SDX_CPU_ISA=scalar selects.
#define HWY_COMPILE_ALL_ATTAINABLE 1
