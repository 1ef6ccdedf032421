#pragma once
// Picks the kernel table compiled for cpu_isa(). Use inside `#if HWY_ONCE`, after highway.h.
// This replaces HWY_DYNAMIC_DISPATCH, whose run-time part lives in a shared library and cannot be re-targeted per test.

#include "base/system/cpu_features.h"

namespace sdx::cpu {

// Pointers of targets that were not compiled are null; the baseline always is compiled.
template <class F>
F pick(F scalar, F sse4, F avx2, F avx512, F neon) {
  F chosen = nullptr;
  switch (cpu_isa()) {
    case Isa::scalar: chosen = scalar; break;
    case Isa::sse4: chosen = sse4; break;
    case Isa::avx2: chosen = avx2; break;
    case Isa::avx512: chosen = avx512; break;
    case Isa::neon: chosen = neon; break;
  }
  return chosen != nullptr ? chosen : scalar;
}

}  // namespace sdx::cpu

// FN: a function of the current namespace's HWY_NAMESPACE, the same name for every target.
#define SDX_CPU_PICK(FN)                                                                                                   \
  ::sdx::cpu::pick<decltype(&HWY_STATIC_DISPATCH(FN))>(&HWY_STATIC_DISPATCH(FN), HWY_CHOOSE_SSE4(FN), HWY_CHOOSE_AVX2(FN), \
                                                       HWY_CHOOSE_AVX3(FN), HWY_CHOOSE_NEON(FN))

// At the end of a file that is compiled once per instruction set, in `#if HWY_ONCE`: defines NAME(), which returns the result of
// the chosen target's FN(), usually a table of functions.
#define SDX_CPU_DISPATCH(TYPE, NAME, FN)     \
  namespace sdx::cpu {                       \
  TYPE NAME() { return SDX_CPU_PICK(FN)(); } \
  }
