#include "kernels/cpu/rows/norm_simd.h"

#include <cmath>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/norm_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/rows/rows-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

RowMoments moments(const float* x, std::int64_t n) {
  const DF d;
  const auto count = static_cast<float>(n);
  RowMoments m;
  m.mean = sum_of(x, n, [](VF v) HWY_ATTR { return v; }) / count;
  const VF vm = hn::Set(d, m.mean);
  const auto square = [&](VF v) HWY_ATTR {
    const VF c = hn::Sub(v, vm);
    return hn::Mul(c, c);
  };
  m.variance = sum_of(x, n, square) / count;
  if (!m.is_far()) return m;
  m.rest = sum_of(x, n, [&](VF v) HWY_ATTR { return hn::Sub(v, vm); }) / count;
  const float variance = m.variance - m.rest * m.rest;
  m.variance = variance < 0 ? 0.0F : variance;
  return m;
}

void layer_norm(const LayerNormArgs& a, std::int64_t row, std::int64_t n) {
  const DF d;
  const float* x = a.x + row * n;
  float* y = a.y + row * n;
  if (a.skip != nullptr) {
    const float* skip = a.skip + row * n;
    // y is the buffer for the sum if the caller does not want the sum.
    float* sum = a.sum_out != nullptr ? a.sum_out + row * n : y;
    each(x, n, [&](std::int64_t i, VF v, std::int64_t count) HWY_ATTR {
      v = hn::Add(v, load_floats(skip + i, count));
      if (a.skip_bias != nullptr) v = hn::Add(v, load_floats(a.skip_bias + i, count));
      store_floats(v, sum + i, count);
    });
    x = sum;
  }
  RowMoments m;
  if (a.rms) {
    m.variance = sum_of(x, n, [](VF v) HWY_ATTR { return hn::Mul(v, v); }) / static_cast<float>(n);
  } else {
    m = moments(x, n);
  }
  const float inv = 1.0F / std::sqrt(m.variance + a.epsilon);
  const VF vm = hn::Set(d, m.mean);
  const VF vr = hn::Set(d, m.rest);
  const VF vi = hn::Set(d, inv);
  each(x, n, [&](std::int64_t i, VF v, std::int64_t count) HWY_ATTR {
    v = hn::Mul(hn::Mul(hn::Sub(hn::Sub(v, vm), vr), vi), load_floats(a.scale + i, count));
    if (a.bias != nullptr) v = hn::Add(v, load_floats(a.bias + i, count));
    store_floats(v, y + i, count);
  });
  if (a.mean_out != nullptr) a.mean_out[row] = m.mean + m.rest;
  if (a.inv_std_out != nullptr) a.inv_std_out[row] = inv;
}

void affine(const float* x, float scale, float shift, float* y, std::int64_t n) {
  const DF d;
  const VF vs = hn::Set(d, scale);
  const VF vb = hn::Set(d, shift);
  each(x, n, [&](std::int64_t i, VF v, std::int64_t count) HWY_ATTR { store_floats(hn::MulAdd(v, vs, vb), y + i, count); });
}

void centred(const float* x, const RowMoments& m, float scale, float shift, float* y, std::int64_t n) {
  const DF d;
  const VF vm = hn::Set(d, m.mean);
  const VF vr = hn::Set(d, m.rest);
  const VF vs = hn::Set(d, scale);
  const VF vb = hn::Set(d, shift);
  each(x, n, [&](std::int64_t i, VF v, std::int64_t count) HWY_ATTR {
    store_floats(hn::MulAdd(hn::Sub(hn::Sub(v, vm), vr), vs, vb), y + i, count);
  });
}

void affine_columns(const float* x, const float* scale, const float* shift, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += lanes_f32()) {
    const std::int64_t left = n - i;
    store_floats(hn::MulAdd(load_floats(x + i, left), load_floats(scale + i, left), load_floats(shift + i, left)), y + i, left);
  }
}

// Squares in the window are summed anew for each channel: size is small (5), and a running sum would lose precision.
template <int kQuarters>
void lrn_loop(const float* x, float* y, std::int64_t channels, std::int64_t inner, std::int64_t begin, std::int64_t end,
              std::int64_t size, float alpha, float beta, float bias) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF va = hn::Set(d, alpha / static_cast<float>(size));
  const VF vb = hn::Set(d, bias);
  const VF vbeta = hn::Set(d, beta);
  const std::int64_t down = (size - 1) / 2;
  const std::int64_t up = size / 2;
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::int64_t from = c > down ? c - down : 0;
    const std::int64_t to = channels - 1 - c > up ? c + up : channels - 1;
    for (std::int64_t i = begin; i < end; i += lanes) {
      const std::int64_t count = end - i < lanes ? end - i : lanes;
      VF s = hn::Zero(d);
      for (std::int64_t k = from; k <= to; ++k) {
        const VF v = load_floats(x + k * inner + i, count);
        s = hn::MulAdd(v, v, s);
      }
      const VF base = hn::MulAdd(va, s, vb);
      store_floats(hn::Mul(load_floats(x + c * inner + i, count), inverse_power<kQuarters>(base, vbeta)), y + c * inner + i,
                   count);
    }
  }
}

void lrn(const float* x, float* y, std::int64_t channels, std::int64_t inner, std::int64_t begin, std::int64_t end,
         std::int64_t size, float alpha, float beta, float bias) {
  if (beta == 0.75F) return lrn_loop<3>(x, y, channels, inner, begin, end, size, alpha, beta, bias);
  if (beta == 0.5F) return lrn_loop<2>(x, y, channels, inner, begin, end, size, alpha, beta, bias);
  if (beta == 1.0F) return lrn_loop<4>(x, y, channels, inner, begin, end, size, alpha, beta, bias);
  lrn_loop<0>(x, y, channels, inner, begin, end, size, alpha, beta, bias);
}

}  // namespace

const NormKernels& norm_table() {
  static const NormKernels table{layer_norm, affine, affine_columns, centred, moments, lrn};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const NormKernels&, norm_kernels, norm_table)
#endif
