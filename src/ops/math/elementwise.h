#pragma once
// Loops and inference shared by operators that work element by element.

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/op.h"
#include "tensor/dispatch.h"

namespace sdx::ops {

// Below this many elements a thread has too little to do to pay for waking it (a few microseconds).
inline constexpr std::int64_t kElementGrain = 1 << 14;

// Output 0 has the type and shape of input 0.
void infer_same(InferContext& c);

// The integer nearest to zero-truncated `v`; the type's ends where it does not fit; 0 for NaN. Floats: plain conversion.
template <class T>
T saturating_cast(double v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (v != v) return 0;
    if (v <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    // max() of 64-bit types rounds up to a power of two, which itself does not fit.
    if (v >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(v);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(v);
  } else {
    return T(static_cast<float>(v));
  }
}

// y[i] = fn(x[i]), computed in ComputeType<T>.
template <class T, class F>
void map_elements(const Tensor& in, Tensor& out, F fn) {
  const auto* __restrict x = static_cast<const T*>(in.data());
  auto* __restrict y = static_cast<T*>(out.mutable_data());
  parallel_for(in.size(), kElementGrain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(fn(static_cast<ComputeType<T>>(x[i])));
  });
}

// Input 0 to output 0, for the types of `list`.
template <class List, class F>
void map_input(OpContext& c, List list, F fn) {
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0, in.dtype(), in.shape());
  dispatch(in.dtype(), list, c.node().op_type, [&](auto tag) { map_elements<typename decltype(tag)::type>(in, out, fn); });
}
template <class F>
void map_floats(OpContext& c, F fn) {
  map_input(c, FloatTypes{}, fn);
}

// 1 / (1 + exp(-x)) without overflow on either side.
template <class T>
T logistic(T x) {
  const T e = std::exp(-std::fabs(x));
  return (x >= 0 ? T(1) : e) / (T(1) + e);
}
template <class T>
T softplus(T x) {
  return std::log1p(std::exp(-std::fabs(x))) + (x > 0 ? x : T(0));
}

}  // namespace sdx::ops
