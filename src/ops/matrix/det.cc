// Det (ai.onnx 11, 22) and com.microsoft Inverse, over the last two axes.

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/math/elementwise.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

void check_square(const SymShape& s) {
  if (s.size() < 2) fail(ErrorCode::invalid_model, "expected matrices (rank 2 or more), received {}", to_string(s));
  const Dim& rows = s[s.size() - 2];
  const Dim& columns = s[s.size() - 1];
  if (rows.is_const() && columns.is_const() && !(rows == columns)) {
    fail(ErrorCode::invalid_model, "expected square matrices, received {}", to_string(s));
  }
}

void infer_det(InferContext& c) {
  const SymShape* s = c.shape(0);
  if (s == nullptr) return c.output(0, c.dtype(0));
  check_square(*s);
  c.output(0, c.dtype(0), SymShape(s->begin(), s->end() - 2));
}

void infer_inverse(InferContext& c) {
  if (c.shape(0) != nullptr) check_square(*c.shape(0));
  infer_same(c);
}

std::size_t pivot_row(const std::vector<double>& a, std::size_t n, std::size_t width, std::size_t column) {
  std::size_t best = column;
  for (std::size_t r = column + 1; r < n; ++r) {
    if (std::fabs(a[r * width + column]) > std::fabs(a[best * width + column])) best = r;
  }
  return best;
}

void swap_rows(std::vector<double>& a, std::size_t width, std::size_t r, std::size_t s) {
  if (r != s)
    std::swap_ranges(a.begin() + static_cast<std::ptrdiff_t>(r * width), a.begin() + static_cast<std::ptrdiff_t>((r + 1) * width),
                     a.begin() + static_cast<std::ptrdiff_t>(s * width));
}

// Gaussian elimination with partial pivoting. The empty matrix has determinant 1.
double determinant(std::vector<double>& a, std::size_t n) {
  double det = 1;
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t p = pivot_row(a, n, n, k);
    if (a[p * n + k] == 0) return 0;
    if (p != k) det = -det;
    swap_rows(a, n, p, k);
    det *= a[k * n + k];
    for (std::size_t r = k + 1; r < n; ++r) {
      const double f = a[r * n + k] / a[k * n + k];
      for (std::size_t j = k; j < n; ++j) a[r * n + j] -= f * a[k * n + j];
    }
  }
  return det;
}

// Gauss-Jordan on [A | I]; `a` is n rows of 2n. A singular matrix gives infinities and NaN, as IEEE division does.
void invert(std::vector<double>& a, std::size_t n) {
  const std::size_t width = 2 * n;
  for (std::size_t k = 0; k < n; ++k) {
    swap_rows(a, width, pivot_row(a, n, width, k), k);
    const double scale = 1 / a[k * width + k];
    for (std::size_t j = 0; j < width; ++j) a[k * width + j] *= scale;
    for (std::size_t r = 0; r < n; ++r) {
      const double f = a[r * width + k];
      if (r == k || f == 0) continue;
      for (std::size_t j = 0; j < width; ++j) a[r * width + j] -= f * a[k * width + j];
    }
  }
}

// Calls fn(T tag, matrix number, first element, n) for each matrix.
template <class F>
void for_each_matrix(OpContext& c, const Tensor& in, F fn) {
  const Shape& s = in.shape();
  check_square(to_sym(s));
  const std::int64_t n = s.back();
  const Shape batch(s.begin(), s.end() - 2);
  const std::int64_t count = element_count(batch);
  const double work = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  const auto grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(1e5 / std::max(work, 1.0)));
  dispatch(in.dtype(), FloatTypes{}, c.node().op_type, [&](auto tag) {
    parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t m = begin; m < end; ++m) {
        c.stop().check();
        fn(tag, m, static_cast<std::size_t>(n));
      }
    });
  });
}

void run_det(OpContext& c) {
  const Tensor& in = c.input(0);
  check_square(to_sym(in.shape()));
  Tensor& out = c.output(0, in.dtype(), Shape(in.shape().begin(), in.shape().end() - 2));
  for_each_matrix(c, in, [&](auto tag, std::int64_t m, std::size_t n) {
    using T = typename decltype(tag)::type;
    const T* x = static_cast<const T*>(in.data()) + static_cast<std::size_t>(m) * n * n;
    std::vector<double> a(n * n);
    for (std::size_t i = 0; i < n * n; ++i) a[i] = static_cast<double>(static_cast<ComputeType<T>>(x[i]));
    static_cast<T*>(out.mutable_data())[m] = saturating_cast<T>(determinant(a, n));
  });
}

void run_inverse(OpContext& c) {
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0, in.dtype(), in.shape());
  if (in.size() == 0) return check_square(to_sym(in.shape()));
  for_each_matrix(c, in, [&](auto tag, std::int64_t m, std::size_t n) {
    using T = typename decltype(tag)::type;
    const T* x = static_cast<const T*>(in.data()) + static_cast<std::size_t>(m) * n * n;
    T* y = static_cast<T*>(out.mutable_data()) + static_cast<std::size_t>(m) * n * n;
    std::vector<double> a(n * n * 2, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) a[i * 2 * n + j] = static_cast<double>(static_cast<ComputeType<T>>(x[i * n + j]));
      a[i * 2 * n + n + i] = 1;
    }
    invert(a, n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) y[i * n + j] = saturating_cast<T>(a[i * 2 * n + n + j]);
    }
  });
}

}  // namespace

void register_det(OpTable& t) {
  t.add(OpDef("Det", 11).in("X", "T", types::floats).out("Y", "T", types::floats).infer_with(infer_det).run_with(run_det));
  t.add(OpDef("com.microsoft", "Inverse", 1)
            .in("X", "T", types::floats)
            .out("Y", "T", types::floats)
            .infer_with(infer_inverse)
            .run_with(run_inverse));
}

}  // namespace sdx::ops
