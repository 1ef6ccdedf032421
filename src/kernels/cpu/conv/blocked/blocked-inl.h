// Code shared by kernels of blocked channels; included once per instruction set.
#if defined(SDX_KERNELS_CPU_BLOCKED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SDX_KERNELS_CPU_BLOCKED_INL_H_
#undef SDX_KERNELS_CPU_BLOCKED_INL_H_
#else
#define SDX_KERNELS_CPU_BLOCKED_INL_H_
#endif

#include <type_traits>

#include "kernels/cpu/simd/simd-inl.h"
#include "kernels/cpu/simd/target_width.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {

// Channels of a block.
#if SDX_512_BITS
inline constexpr int kBlock = 16;
#else
inline constexpr int kBlock = 8;
#endif

// Prepares a sum for storing; residual: null, or values to add.
HWY_INLINE VF finished(VF v, const float* residual, VF lo, VF hi) {
  if (residual != nullptr) v = hn::Add(v, hn::LoadU(DF(), residual));
  return clip(v, lo, hi);
}

// Calls f(V) with the number of outputs along an axis, 1 to T. kWhole: it is T, as in most tiles, so loops have a known length.
template <int T, bool kWhole, class F>
HWY_INLINE void with_outputs(std::int64_t outputs, const F& f) {
  if constexpr (kWhole) {
    f(std::integral_constant<int, T>());
  } else {
    if constexpr (T == 4) {
      if (outputs == 4) return f(std::integral_constant<int, 4>());
      if (outputs == 3) return f(std::integral_constant<int, 3>());
    }
    if (outputs == 2) return f(std::integral_constant<int, 2>());
    f(std::integral_constant<int, 1>());
  }
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#endif
