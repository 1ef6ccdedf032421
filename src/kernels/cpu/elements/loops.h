#pragma once
// The loops behind rows, over a function object's static apply().

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/simd/loops.h"

namespace sdx::cpu {

template <class F, class T>
void unary_loop(const void* x, void* y, std::int64_t n) {
  using Out = decltype(F::apply(T()));
  const auto* px = static_cast<const T*>(x);
  auto* py = static_cast<Out*>(y);
  for (std::int64_t i = 0; i < n; ++i) py[i] = F::apply(px[i]);
}

template <class F, class T>
void binary_loop(const void* a, std::int64_t a_step, const void* b, std::int64_t b_step, void* y, std::int64_t n) {
  using Out = decltype(F::apply(T(), T()));
  const auto* pa = static_cast<const T*>(a);
  const auto* pb = static_cast<const T*>(b);
  auto* py = static_cast<Out*>(y);
  if (a_step == 0 && b_step == 0) {
    std::fill_n(py, n, F::apply(*pa, *pb));
  } else {
    for (std::int64_t i = 0; i < n; ++i) py[i] = F::apply(pa[i * a_step], pb[i * b_step]);
  }
}

}  // namespace sdx::cpu
