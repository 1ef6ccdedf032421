// Plain loops, compiled once per instruction set: the compiler makes vectors of them.

#include "kernels/cpu/elements/select_simd.h"

#define SDX_PLAIN_LOOPS
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elements/select_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/cpu/simd/loops.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

struct Wide {
  std::uint64_t low, high;
};

// Reads both sides before it chooses: otherwise the compiler would have to mask its reads.
template <class T, bool kLeft, bool kRight>
HWY_NOINLINE void select_loop(const std::uint8_t* condition, const T* a, const T* b, T* y, std::int64_t n) {
  const T left = *a, right = *b;
  SDX_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const T x = kLeft ? a[i] : left;
    const T z = kRight ? b[i] : right;
    y[i] = condition[i] != 0 ? x : z;
  }
}

template <class T>
void select_row(const std::uint8_t* condition, std::int64_t condition_step, const void* a, std::int64_t a_step, const void* b,
                std::int64_t b_step, void* y, std::int64_t n) {
  if (n == 0) return;
  const auto* pa = static_cast<const T*>(a);
  const auto* pb = static_cast<const T*>(b);
  auto* py = static_cast<T*>(y);
  if (condition_step == 0) {
    const T* from = *condition != 0 ? pa : pb;
    if ((*condition != 0 ? a_step : b_step) == 0) {
      std::fill_n(py, n, *from);
    } else if (from != py) {
      std::memcpy(py, from, static_cast<std::size_t>(n) * sizeof(T));
    }
    return;
  }
  if (a_step != 0) {
    return b_step != 0 ? select_loop<T, true, true>(condition, pa, pb, py, n)
                       : select_loop<T, true, false>(condition, pa, pb, py, n);
  }
  return b_step != 0 ? select_loop<T, false, true>(condition, pa, pb, py, n)
                     : select_loop<T, false, false>(condition, pa, pb, py, n);
}

SelectRow row_of(int bytes) {
  switch (bytes) {
    case 1: return select_row<std::uint8_t>;
    case 2: return select_row<std::uint16_t>;
    case 4: return select_row<std::uint32_t>;
    case 8: return select_row<std::uint64_t>;
    case 16: return select_row<Wide>;
    default: return nullptr;
  }
}

}  // namespace

const SelectKernels& select_table() {
  static constexpr SelectKernels kTable{row_of};
  return kTable;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const SelectKernels&, select_kernels, select_table)

namespace sdx::cpu {

SelectRow select_row(int bytes) { return select_kernels().row(bytes); }

}  // namespace sdx::cpu
#endif
