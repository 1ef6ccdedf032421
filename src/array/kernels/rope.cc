#include "array/kernels/rope.h"

#include <algorithm>
#include <cmath>

#include "array/array_op.h"
#include "base/thread_pool.h"
#include "ops/tensor/movement.h"
#include "tensor/dispatch.h"

namespace sdx::array::detail {
namespace {

struct Rope {
  std::int64_t dims = 0, positions = 0, elements = 0;
  bool traditional = false;
  std::int64_t half() const { return dims / 2; }
};

// Cosines and sines of each position, for one offset.
template <class C>
struct Angles {
  std::vector<C> cosine, sine;
};

template <class C>
Angles<C> angles_of(ops::OpContext& c, const Rope& r, std::int64_t offset) {
  const auto scale = static_cast<double>(c.attrs().get_float("scale"));
  const double turn = c.attrs().get_int("inverse") != 0 ? -1 : 1;
  std::vector<double> steps;
  for (std::int64_t i = 0; i < r.half(); ++i) {
    const auto base = static_cast<double>(c.attrs().get_float("base"));
    const double f = c.has_input(2) ? static_cast<double>(c.data<float>(2)[i])
                                    : std::pow(base, static_cast<double>(i) / static_cast<double>(r.half()));
    steps.push_back(scale / f);
  }
  Angles<C> a;
  a.cosine.reserve(static_cast<std::size_t>(r.positions * r.half()));
  a.sine.reserve(a.cosine.capacity());
  for (std::int64_t p = 0; p < r.positions; ++p) {
    for (const double step : steps) {
      const double angle = static_cast<double>(offset + p) * step;
      a.cosine.push_back(static_cast<C>(std::cos(angle)));
      a.sine.push_back(static_cast<C>(turn * std::sin(angle)));
    }
  }
  return a;
}

template <class T, class C>
void rotate(const Rope& r, const T* x, const C* cosine, const C* sine, T* y) {
  const std::int64_t half = r.half(), step = r.traditional ? 2 : 1, apart = r.traditional ? 1 : half;
  for (std::int64_t i = 0; i < half; ++i) {
    const auto a = static_cast<C>(x[i * step]), b = static_cast<C>(x[i * step + apart]);
    y[i * step] = T(a * cosine[i] - b * sine[i]);
    y[i * step + apart] = T(a * sine[i] + b * cosine[i]);
  }
  std::copy(x + r.dims, x + r.elements, y + r.dims);
}

void run_rope(ops::OpContext& c) {
  Tensor& out = result_tensor(c);
  if (out.size() == 0) return;
  Rope r;
  r.dims = c.attrs().get_int("dims");
  r.traditional = c.attrs().get_int("traditional") != 0;
  r.elements = out.shape().back();
  r.positions = out.dim(out.rank() - 2);
  const std::int64_t batch = out.dim(0), rows = out.size() / r.elements, each = rows / batch;
  const auto* offsets = c.data<std::int64_t>(1);
  const std::int64_t count = c.input(1).size();
  dispatch(out.dtype(), FloatTypes{}, "rope", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    std::vector<Angles<C>> angles;
    for (std::int64_t i = 0; i < count; ++i) angles.push_back(angles_of<C>(c, r, offsets[i]));
    const auto* x = c.data<T>(0);
    auto* y = static_cast<T*>(out.mutable_data());
    const std::int64_t grain = ops::grain_for(r.elements * static_cast<std::int64_t>(sizeof(T)));
    parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Angles<C>& a = angles[static_cast<std::size_t>(count == 1 ? 0 : i / each)];
        const std::int64_t at = i % r.positions * r.half();
        rotate<T, C>(r, x + i * r.elements, a.cosine.data() + at, a.sine.data() + at, y + i * r.elements);
      }
    });
  });
}

}  // namespace

const ArrayOp& rope_op() {
  static const ArrayOp op = array_op("Rope", run_rope);
  return op;
}

}  // namespace sdx::array::detail
