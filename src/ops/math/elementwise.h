#pragma once
// Loops and inference shared by operators that work element by element.

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/op.h"
#include "tensor/dispatch.h"
#include "tensor/element.h"

namespace sdx::ops {

// With fewer elements, a thread has too little work to be worth waking (a few microseconds).
inline constexpr std::int64_t kElementGrain = 1 << 14;

// Output 0 has the type and shape of input 0.
void infer_same(InferContext& c);

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
