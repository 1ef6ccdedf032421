#include "kernels/cpu/rows/norm_grad_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/norm_grad_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/rows/rows-inl.h"
#include "kernels/cpu/simd/loops.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

void add_to(float* y, const float* x, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, y + i), hn::LoadU(d, x + i)), d, y + i);
  if (i < n) store_tail(hn::Add(load_tail(d, y + i, n - i), load_tail(d, x + i, n - i)), d, y + i, n - i);
}

// Two passes over the row, which stays in the first-level cache up to a few thousand elements.
void norm_row(const LayerNormGradArgs<float>& a, std::int64_t row, std::int64_t n, float* dscale, float* dbias) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const float *dy = a.dy + row * n, *x = a.x + row * n;
  float* dx = a.dx + row * n;
  const VF mean = hn::Set(d, a.mean != nullptr ? a.mean[row] : 0.0F);
  const VF inverse = hn::Set(d, a.inverse[row]);
  VF sum = hn::Zero(d), along = sum;
  for (std::int64_t i = 0; i < n; i += lanes) {
    const std::int64_t left = n - i;
    const VF g = load_floats(dy + i, left);
    const VF normal = hn::Mul(hn::Sub(load_floats(x + i, left), mean), inverse);
    const VF scaled = hn::Mul(g, load_floats(a.scale + i, left));
    sum = hn::Add(sum, scaled);
    along = hn::MulAdd(scaled, normal, along);  // g is 0 after the tail
    store_floats(hn::MulAdd(g, normal, load_floats(dscale + i, left)), dscale + i, left);
    store_floats(hn::Add(g, load_floats(dbias + i, left)), dbias + i, left);
  }
  const float count = static_cast<float>(n);
  const VF m = hn::Set(d, a.mean != nullptr ? sum_lanes(d, sum) / count : 0.0F);
  const VF share = hn::Set(d, sum_lanes(d, along) / count);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const std::int64_t left = n - i;
    const VF normal = hn::Mul(hn::Sub(load_floats(x + i, left), mean), inverse);
    const VF scaled = hn::Mul(load_floats(dy + i, left), load_floats(a.scale + i, left));
    store_floats(hn::Mul(inverse, hn::NegMulAdd(normal, share, hn::Sub(scaled, m))), dx + i, left);
  }
}

// In float64 plain loops serve: the compiler makes vectors of them.
void add_doubles(double* y, const double* x, std::int64_t n) {
  SDX_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}

// Several sums side by side, so that additions do not wait for each other; the number is that of all instruction sets.
constexpr std::int64_t kAtOnce = 16;

// Adds `count` <= kAtOnce elements from i on.
struct DoubleSums {
  double sum[kAtOnce] = {}, along[kAtOnce] = {};

  HWY_INLINE void add(const LayerNormGradArgs<double>& a, std::int64_t at, std::int64_t i, std::int64_t count, double mean,
                      double inverse, double* dscale, double* dbias) {
    const double *dy = a.dy + at + i, *x = a.x + at + i, *scale = a.scale + i;
    SDX_INDEPENDENT
    for (std::int64_t k = 0; k < count; ++k) {
      const double normal = (x[k] - mean) * inverse, scaled = dy[k] * scale[k];
      sum[k] += scaled;
      along[k] += scaled * normal;
      dscale[i + k] += dy[k] * normal;
      dbias[i + k] += dy[k];
    }
  }
};

HWY_INLINE double total(const double* x) {
  double y[kAtOnce];
  std::copy_n(x, kAtOnce, y);
  for (std::int64_t half = kAtOnce / 2; half > 0; half /= 2) {
    for (std::int64_t k = 0; k < half; ++k) y[k] += y[k + half];
  }
  return y[0];
}

void norm_row_f64(const LayerNormGradArgs<double>& a, std::int64_t row, std::int64_t n, double* dscale, double* dbias) {
  const double mean = a.mean != nullptr ? a.mean[row] : 0.0, inverse = a.inverse[row];
  DoubleSums s;
  std::int64_t i = 0;
  for (; i + kAtOnce <= n; i += kAtOnce) s.add(a, row * n, i, kAtOnce, mean, inverse, dscale, dbias);
  s.add(a, row * n, i, n - i, mean, inverse, dscale, dbias);
  const auto count = static_cast<double>(n);
  const double m = a.mean != nullptr ? total(s.sum) / count : 0.0, share = total(s.along) / count;
  const double *dy = a.dy + row * n, *x = a.x + row * n, *scale = a.scale;
  double* const dx = a.dx + row * n;
  SDX_INDEPENDENT
  for (std::int64_t k = 0; k < n; ++k) {
    const double normal = (x[k] - mean) * inverse;
    dx[k] = inverse * (dy[k] * scale[k] - m - normal * share);
  }
}

void softmax_row(const float* dy, const float* y, float* dx, std::int64_t n, bool log) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  VF sum = hn::Zero(d);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const VF g = load_floats(dy + i, n - i);
    sum = log ? hn::Add(sum, g) : hn::MulAdd(g, load_floats(y + i, n - i), sum);
  }
  const VF total = hn::Set(d, sum_lanes(d, sum));
  for (std::int64_t i = 0; i < n; i += lanes) {
    const VF g = load_floats(dy + i, n - i), v = load_floats(y + i, n - i);
    store_floats(log ? hn::NegMulAdd(exp_row(v), total, g) : hn::Mul(v, hn::Sub(g, total)), dx + i, n - i);
  }
}

void softmax_columns(const float* dy, const float* y, float* dx, std::int64_t axis, std::int64_t inner, std::int64_t begin,
                     std::int64_t end, bool log) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t c = begin; c < end; c += lanes) {
    const std::int64_t left = end - c;
    VF total = hn::Zero(d);
    for (std::int64_t a = 0; a < axis; ++a) {
      const VF g = load_floats(dy + a * inner + c, left);
      total = log ? hn::Add(total, g) : hn::MulAdd(g, load_floats(y + a * inner + c, left), total);
    }
    for (std::int64_t a = 0; a < axis; ++a) {
      const VF g = load_floats(dy + a * inner + c, left), v = load_floats(y + a * inner + c, left);
      store_floats(log ? hn::NegMulAdd(exp_row(v), total, g) : hn::Mul(v, hn::Sub(g, total)), dx + a * inner + c, left);
    }
  }
}

void scaled_exp(const float* y, float factor, float* dx, std::int64_t n) {
  const VF f = hn::Set(DF(), factor);
  each(y, n, [&](std::int64_t i, VF v, std::int64_t count) HWY_ATTR { store_floats(hn::Mul(exp_row(v), f), dx + i, count); });
}

}  // namespace

const NormGradKernels& norm_grad_table() {
  static const NormGradKernels table{{norm_row, add_to}, {norm_row_f64, add_doubles}, softmax_row, softmax_columns, scaled_exp};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const NormGradKernels&, norm_grad_kernels, norm_grad_table)
#endif
