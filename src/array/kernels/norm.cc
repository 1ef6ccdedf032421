#include "array/kernels/norm.h"

#include <algorithm>
#include <cmath>

#include "array/array_op.h"
#include "base/thread_pool.h"

namespace sdx::array::detail {
namespace {

template <class T>
struct Rows {
  const T *x, *g, *weight;
  T *dx, *dweight, *dbias;
  std::int64_t count, n;
  bool rms;
  T epsilon;
};

// Four sums side by side, so that additions need not wait for each other.
template <class T, class F>
T sum_of(std::int64_t n, F&& f) {
  T s[4] = {};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (std::int64_t k = 0; k < 4; ++k) s[k] += f(i + k);
  }
  for (; i < n; ++i) s[0] += f(i);
  return (s[0] + s[1]) + (s[2] + s[3]);
}

template <class T>
void one_row(const Rows<T>& r, const T* x, const T* g, T* dx, T* dweight, T* dbias) {
  const auto n = static_cast<T>(r.n);
  const T mean = r.rms ? T{0} : sum_of<T>(r.n, [&](std::int64_t i) { return x[i]; }) / n;
  const T variance = sum_of<T>(r.n, [&](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / n;
  const T inverse = T{1} / std::sqrt(variance + r.epsilon);
  const T* w = r.weight;
  const auto weighed = [&](std::int64_t i) { return w == nullptr ? g[i] : g[i] * w[i]; };
  const T along = sum_of<T>(r.n, [&](std::int64_t i) { return weighed(i) * (x[i] - mean); }) * inverse * inverse / n;
  const T level = r.rms ? T{0} : sum_of<T>(r.n, weighed) / n;
  for (std::int64_t i = 0; i < r.n; ++i) {
    const T centred = x[i] - mean;
    dx[i] = inverse * (weighed(i) - level - centred * along);
    dweight[i] += g[i] * centred * inverse;
    dbias[i] += g[i];
  }
}

template <class T>
void all_rows(const Rows<T>& r) {
  const std::int64_t least = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, r.n));
  const std::int64_t parts = std::clamp<std::int64_t>(r.count / least, 1, current_pool().threads());
  std::vector<T> sums(static_cast<std::size_t>(2 * parts * r.n), T{0});
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      T* sum = sums.data() + 2 * part * r.n;
      for (std::int64_t row = part * r.count / parts; row < (part + 1) * r.count / parts; ++row) {
        one_row(r, r.x + row * r.n, r.g + row * r.n, r.dx + row * r.n, sum, sum + r.n);
      }
    }
  });
  std::copy_n(sums.data(), r.n, r.dweight);
  std::copy_n(sums.data() + r.n, r.n, r.dbias);
  for (std::int64_t part = 1; part < parts; ++part) {
    const T* sum = sums.data() + 2 * part * r.n;
    for (std::int64_t i = 0; i < r.n; ++i) r.dweight[i] += sum[i], r.dbias[i] += sum[i + r.n];
  }
}

void run_norm_gradient(ops::OpContext& c) {
  Tensor &dx = result_tensor(c, 0), &dweight = result_tensor(c, 1), &dbias = result_tensor(c, 2);
  const auto call = [&](auto zero) {
    using T = decltype(zero);
    Rows<T> r;
    r.x = c.data<T>(0), r.g = c.data<T>(1), r.weight = c.has_input(2) ? c.data<T>(2) : nullptr;
    r.dx = static_cast<T*>(dx.mutable_data());
    r.dweight = static_cast<T*>(dweight.mutable_data());
    r.dbias = static_cast<T*>(dbias.mutable_data());
    r.n = dweight.size();
    r.count = r.n == 0 ? 0 : dx.size() / r.n;
    r.rms = c.attrs().get_int("rms") != 0;
    r.epsilon = static_cast<T>(c.attrs().get_tensor("epsilon").values<double>()[0]);
    all_rows(r);
  };
  dx.dtype() == Dtype::float64 ? call(0.0) : call(0.0F);
}

}  // namespace

const ArrayOp& norm_gradient_op() {
  static const ArrayOp op = array_op("NormGradient", run_norm_gradient);
  return op;
}

}  // namespace sdx::array::detail
