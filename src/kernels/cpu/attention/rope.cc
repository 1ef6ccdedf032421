#include "kernels/cpu/attention/rope.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/elements/halves.h"
#include "tensor/dispatch.h"

namespace sdx::cpu {
namespace {

// The cosines and sines of each position, for one offset.
template <class C>
struct Angles {
  std::vector<C> cosine, sine;
};

template <class C>
Angles<C> angles_of(const Rope& r, std::int64_t offset) {
  const std::int64_t half = r.dims / 2;
  std::vector<double> steps;
  for (std::int64_t i = 0; i < half; ++i) {
    const double f = r.frequencies != nullptr ? static_cast<double>(r.frequencies[i])
                                              : std::pow(r.base, static_cast<double>(i) / static_cast<double>(half));
    steps.push_back(r.scale / f);
  }
  Angles<C> a;
  a.cosine.reserve(static_cast<std::size_t>(r.positions * half));
  a.sine.reserve(a.cosine.capacity());
  for (std::int64_t p = 0; p < r.positions; ++p) {
    for (const double step : steps) {
      const double angle = static_cast<double>(offset + p) * step;
      a.cosine.push_back(static_cast<C>(std::cos(angle)));
      a.sine.push_back(static_cast<C>((r.inverse ? -1 : 1) * std::sin(angle)));
    }
  }
  return a;
}

void rotate(const Rope& r, const float* x, const float* cosine, const float* sine, float* y, float*) {
  rotate_f32(x, r.elements, r.dims, cosine, sine, r.interleaved, y);
}

void rotate(const Rope& r, const double* x, const double* cosine, const double* sine, double* y, float*) {
  const std::int64_t half = r.dims / 2, step = r.interleaved ? 2 : 1, apart = r.interleaved ? 1 : half;
  for (std::int64_t i = 0; i < half; ++i) {
    const double a = x[i * step], b = x[i * step + apart];
    y[i * step] = a * cosine[i] - b * sine[i];
    y[i * step + apart] = a * sine[i] + b * cosine[i];
  }
  std::copy(x + r.dims, x + r.elements, y + r.dims);
}

// 16-bit floats are rotated as float32, in `row`.
template <class T>
void rotate(const Rope& r, const T* x, const float* cosine, const float* sine, T* y, float* row) {
  widen(DataTypeOf<T>::value, x, row, r.elements);
  rotate_f32(row, r.elements, r.dims, cosine, sine, r.interleaved, row);
  narrow(DataTypeOf<T>::value, row, y, r.elements);
}

}  // namespace

void rope(DataType type, const Rope& r, const std::int64_t* offsets, std::int64_t count, const void* x, void* y) {
  const std::int64_t half = r.dims / 2, each = r.rows / count;
  dispatch(type, FloatTypes{}, "rope", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    std::vector<Angles<C>> angles;
    for (std::int64_t i = 0; i < count; ++i) angles.push_back(angles_of<C>(r, offsets[i]));
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
    const std::int64_t bytes = r.elements * static_cast<std::int64_t>(sizeof(T));
    parallel_for(r.rows, std::max<std::int64_t>(1, 65536 / bytes), [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> row(is_half(type) ? static_cast<std::size_t>(r.elements) : 0);
      for (std::int64_t i = begin; i < end; ++i) {
        const Angles<C>& a = angles[static_cast<std::size_t>(count == 1 ? 0 : i / each)];
        const std::int64_t at = i % r.positions * half;
        rotate(r, from + i * r.elements, a.cosine.data() + at, a.sine.data() + at, to + i * r.elements, row.data());
      }
    });
  });
}

}  // namespace sdx::cpu
