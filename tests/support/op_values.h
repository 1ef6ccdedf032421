#pragma once
// Tensors from numbers and back, and the codes of errors, for tests of single operators.

#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/error.h"

namespace sdx::ops {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline const float kNan = std::nanf("");

inline Tensor floats(Shape shape, std::initializer_list<float> v) { return Tensor::of<float>(std::move(shape), v); }
inline Tensor ints(Shape shape, std::initializer_list<std::int64_t> v) { return Tensor::of<std::int64_t>(std::move(shape), v); }
template <class T = float>
std::vector<T> list(const Tensor& t) {
  const auto v = t.values<T>();
  return {v.begin(), v.end()};
}
using Ints = std::vector<std::int64_t>;

template <class F>
ErrorCode code_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::ok;
}

}  // namespace sdx::ops
