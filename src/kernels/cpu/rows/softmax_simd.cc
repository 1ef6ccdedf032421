#include "kernels/cpu/rows/softmax_simd.h"

#include <cmath>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/softmax_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/rows/rows-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// For a maximum that is NaN or infinite: plain arithmetic gives the result of the definition.
void softmax_special(const float* x, float* y, std::int64_t n, float max, bool log) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (x[i] != x[i]) max = x[i];
  }
  float sum = 0.0F;
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - max);
  for (std::int64_t i = 0; i < n; ++i) y[i] = log ? x[i] - max - std::log(sum) : std::exp(x[i] - max) / sum;
}

void softmax(const float* x, float* y, std::int64_t n, bool log) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const float max = row_extreme<true, false>(x, n);
  if (!is_finite(max)) return softmax_special(x, y, n, max, log);
  const VF vm = hn::Set(d, max);
  if (log) {
    // One subtraction would do, but x - max is exact near the maximum, where the result is small.
    const float sum = sum_of(x, n, [&](VF v) HWY_ATTR { return exp_row(hn::Sub(v, vm)); });
    const VF shift = hn::Set(d, std::log(sum));
    each(x, n,
         [&](std::int64_t i, VF v, std::int64_t count) HWY_ATTR { store_floats(hn::Sub(hn::Sub(v, vm), shift), y + i, count); });
    return;
  }
  VF s0 = hn::Zero(d), s1 = s0;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const VF e0 = exp_row(hn::Sub(hn::LoadU(d, x + i), vm));
    const VF e1 = exp_row(hn::Sub(hn::LoadU(d, x + i + lanes), vm));
    hn::StoreU(e0, d, y + i);
    hn::StoreU(e1, d, y + i + lanes);
    s0 = hn::Add(s0, e0);
    s1 = hn::Add(s1, e1);
  }
  for (; i + lanes <= n; i += lanes) {
    const VF e = exp_row(hn::Sub(hn::LoadU(d, x + i), vm));
    hn::StoreU(e, d, y + i);
    s0 = hn::Add(s0, e);
  }
  VF tail = hn::Zero(d);
  if (i < n) {
    tail = first_lanes(exp_row(hn::Sub(load_tail(d, x + i, n - i), vm)), n - i);
    s1 = hn::Add(s1, tail);
  }
  const VF scale = hn::Set(d, 1.0F / sum_lanes(d, hn::Add(s0, s1)));
  for (std::int64_t at = 0; at < i; at += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, y + at), scale), d, y + at);
  if (i < n) store_tail(hn::Mul(tail, scale), d, y + i, n - i);
}

// kWide vectors of columns at a time: whole cache lines, and independent sums.
template <int kWide>
HWY_INLINE void softmax_some(const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t count, bool log) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  VF m[kWide], s[kWide];
  for (int j = 0; j < kWide; ++j) {
    m[j] = load_floats(x + j * lanes, count);
    s[j] = hn::Zero(d);
  }
  for (std::int64_t a = 1; a < axis; ++a) {
    for (int j = 0; j < kWide; ++j) m[j] = hn::Max(m[j], load_floats(x + a * inner + j * lanes, count));
  }
  for (std::int64_t a = 0; a < axis; ++a) {
    for (int j = 0; j < kWide; ++j) {
      const VF e = exp_row(hn::Sub(load_floats(x + a * inner + j * lanes, count), m[j]));
      if (!log) store_floats(e, y + a * inner + j * lanes, count);
      s[j] = hn::Add(s[j], e);
    }
  }
  for (int j = 0; j < kWide; ++j) s[j] = log ? log_f32(s[j]) : hn::Div(hn::Set(d, 1.0F), s[j]);
  for (std::int64_t a = 0; a < axis; ++a) {
    for (int j = 0; j < kWide; ++j) {
      float* to = y + a * inner + j * lanes;
      store_floats(log ? hn::Sub(hn::Sub(load_floats(x + a * inner + j * lanes, count), m[j]), s[j])
                       : hn::Mul(load_floats(to, count), s[j]),
                   to, count);
    }
  }
}

void softmax_columns(const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t begin, std::int64_t end,
                     bool log) {
  const std::int64_t lanes = lanes_f32();
  std::int64_t c = begin;
  for (; c + 2 * lanes <= end; c += 2 * lanes) softmax_some<2>(x + c, y + c, axis, inner, lanes, log);
  for (; c < end; c += lanes) softmax_some<1>(x + c, y + c, axis, inner, end - c < lanes ? end - c : lanes, log);
}

// A row of two to four vectors, which stay in registers. False if its largest element is not finite.
template <int kVectors>
HWY_INLINE bool softmax_in_registers(const float* x, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32(), rest = n - (kVectors - 1) * lanes;
  VF v[kVectors], m = hn::Set(d, hn::GetLane(hn::LoadU(d, x)));
  for (int i = 0; i + 1 < kVectors; ++i) v[i] = hn::LoadU(d, x + i * lanes);
  v[kVectors - 1] = load_floats(x + (kVectors - 1) * lanes, rest);
  const auto in_row = hn::FirstN(d, static_cast<std::size_t>(rest));
  m = hn::IfThenElse(in_row, v[kVectors - 1], m);
  for (int i = 0; i + 1 < kVectors; ++i) m = hn::Max(m, v[i]);
  const VF vm = hn::MaxOfLanes(d, m);
  if (!is_finite(hn::GetLane(vm))) return false;
  for (int i = 0; i < kVectors; ++i) v[i] = exp_row(hn::Sub(v[i], vm));
  v[kVectors - 1] = hn::IfThenElseZero(in_row, v[kVectors - 1]);
  VF s = v[0];
  for (int i = 1; i < kVectors; ++i) s = hn::Add(s, v[i]);
  const VF scale = hn::Div(hn::Set(d, 1.0F), hn::SumOfLanes(d, s));
  for (int i = 0; i + 1 < kVectors; ++i) hn::StoreU(hn::Mul(v[i], scale), d, y + i * lanes);
  store_floats(hn::Mul(v[kVectors - 1], scale), y + (kVectors - 1) * lanes, rest);
  return true;
}

bool softmax_short(const float* x, float* y, std::int64_t n) {
  const std::int64_t lanes = lanes_f32();
  return n <= 2 * lanes   ? softmax_in_registers<2>(x, y, n)
         : n <= 3 * lanes ? softmax_in_registers<3>(x, y, n)
                          : softmax_in_registers<4>(x, y, n);
}

void softmax_rows(const float* x, float* y, std::int64_t rows, std::int64_t n, bool log) {
  const std::int64_t lanes = lanes_f32();
  if (n < lanes) {
    return short_rows_as_columns(x, rows, n, [&](float* columns, std::int64_t first, std::int64_t count) HWY_ATTR {
      HWY_ALIGN float results[kMaxF32Lanes * kMaxF32Lanes];
      softmax_columns(columns, columns, n, lanes, 0, lanes, log);
      columns_to_rows(columns, n, results);
      std::copy_n(results, count * n, y + first * n);
    });
  }
  for (; rows > 0; --rows, x += n, y += n) {
    if (n == lanes || n > 4 * lanes || log || !softmax_short(x, y, n)) softmax(x, y, n, log);
  }
}

}  // namespace

const SoftmaxKernels& softmax_table() {
  static const SoftmaxKernels table{softmax_rows, softmax_columns};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const SoftmaxKernels&, softmax_kernels, softmax_table)
#endif
