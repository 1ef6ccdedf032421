#pragma once
// Included before any Highway header by every file that is compiled once per instruction set (see foreach_target.h).
// Of Highway's targets, whose number grows with its releases, these alone are compiled: SSE2 and SSSE3 machines without SSE4 are
// older than 2009; what later targets than AVX-512 and NEON add, kernels choose themselves, and machines with SVE have NEON.
// SDX_NO_…: sets that CMake's SDX_ISA leaves out. SDX_PLAIN_LOOPS, said by files of plain loops, leaves out SSE4: the compiler
// makes vectors of them for the baseline.
#if defined(SDX_NO_SSE4) || defined(SDX_PLAIN_LOOPS)
#define SDX_WITH_SSE4 0
#else
#define SDX_WITH_SSE4 HWY_SSE4
#endif
#ifdef SDX_NO_AVX2
#define SDX_WITH_AVX2 0
#else
#define SDX_WITH_AVX2 HWY_AVX2
#endif
#ifdef SDX_NO_AVX512
#define SDX_WITH_AVX512 0
#else
#define SDX_WITH_AVX512 HWY_AVX3
#endif
#ifdef __aarch64__
#define HWY_DISABLED_TARGETS (~(HWY_SCALAR | HWY_NEON))
// Not NEON without AES, as newer releases have it: the kernels use no instruction of AES.
#define HWY_BASELINE_TARGETS HWY_NEON
#elif defined(SDX_BASELINE)
// Compiled for one set alone (SDX_ISA=native), which the compiler's options allow everywhere: HWY_AVX2 or HWY_AVX3.
#define HWY_DISABLED_TARGETS (~SDX_BASELINE)
#define HWY_BASELINE_TARGETS SDX_BASELINE
#else
#define HWY_DISABLED_TARGETS (~(HWY_SCALAR | SDX_WITH_SSE4 | SDX_WITH_AVX2 | SDX_WITH_AVX512))
#endif
// One baseline for every compiler: others than GCC 12.2 would compile Highway's emulated vectors of 128 bits, whose Min and Max
// lose NaN.
#define HWY_BROKEN_EMU128 1
// Compile the baseline too, which is what SDX_CPU_ISA=scalar selects.
#define HWY_COMPILE_ALL_ATTAINABLE 1

// Around the namespace of files with Highway's vectors, in place of HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE: the emulated
// ones of the baseline, which x86 processors since 2009 need not run, are compiled for size. Their unrolled loops would take half
// a megabyte.
#if defined(__GNUC__) && !defined(__clang__) && defined(NDEBUG)
#define SDX_BEFORE_N_SCALAR _Pragma("GCC push_options") _Pragma("GCC optimize(\"Os\")")
#define SDX_AFTER_N_SCALAR _Pragma("GCC pop_options")
#else
#define SDX_BEFORE_N_SCALAR
#define SDX_AFTER_N_SCALAR
#endif
#define SDX_BEFORE_N_SSE4
#define SDX_AFTER_N_SSE4
#define SDX_BEFORE_N_AVX2
#define SDX_AFTER_N_AVX2
#define SDX_BEFORE_N_AVX3
#define SDX_AFTER_N_AVX3
#define SDX_BEFORE_N_NEON
#define SDX_AFTER_N_NEON
#define SDX_BEFORE_NAMESPACE()           \
  HWY_CONCAT(SDX_BEFORE_, HWY_NAMESPACE) \
  HWY_BEFORE_NAMESPACE()
#define SDX_AFTER_NAMESPACE() \
  HWY_AFTER_NAMESPACE();      \
  HWY_CONCAT(SDX_AFTER_, HWY_NAMESPACE) static_assert(true, "For requiring trailing semicolon")
