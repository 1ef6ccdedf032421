#include "kernels/cpu/attention_kernels.h"

#include <cmath>
#include <limits>

#include "kernels/cpu/recurrent.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_kernels.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

HWY_INLINE VF get(const float* x, std::int64_t left) {
  const DF d;
  return left >= lanes_f32() ? hn::LoadU(d, x) : load_tail(d, x, left);
}
HWY_INLINE void put(VF v, float* y, std::int64_t left) {
  const DF d;
  if (left >= lanes_f32()) {
    hn::StoreU(v, d, y);
  } else {
    store_tail(v, d, y, left);
  }
}

float online_softmax(float* s, std::int64_t n, float* max, float* sum) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  VF m = hn::Set(d, -kInf);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) m = max_nan(m, hn::LoadU(d, s + i));
  HWY_ALIGN float values[kMaxF32Lanes];
  hn::Store(m, d, values);
  float best = *max;
  for (std::int64_t j = 0; j < lanes; ++j) best = values[j] > best || values[j] != values[j] ? values[j] : best;
  for (; i < n; ++i) best = s[i] > best || s[i] != s[i] ? s[i] : best;
  if (best == -kInf) {  // nothing visible so far
    for (std::int64_t j = 0; j < n; ++j) s[j] = 0.0F;
    return 1.0F;
  }
  if (!(best < kInf)) {  // NaN, or inf - inf
    for (std::int64_t j = 0; j < n; ++j) s[j] = std::numeric_limits<float>::quiet_NaN();
    *max = *sum = std::numeric_limits<float>::quiet_NaN();
    return *max;
  }
  const VF vm = hn::Set(d, best);
  VF total = hn::Zero(d);
  for (i = 0; i + lanes <= n; i += lanes) {
    const VF e = exp_nonpositive_f32(hn::Sub(hn::LoadU(d, s + i), vm));
    hn::StoreU(e, d, s + i);
    total = hn::Add(total, e);
  }
  float added = sum_lanes(d, total);
  if (i < n) {
    store_tail(exp_nonpositive_f32(hn::Sub(load_tail(d, s + i, n - i), vm)), d, s + i, n - i);
    for (; i < n; ++i) added += s[i];
  }
  const float factor = std::exp(*max - best);
  *max = best;
  *sum = *sum * factor + added;
  return factor;
}

void scale(const float* x, float factor, float* y, std::int64_t n) {
  const DF d;
  const VF f = hn::Set(d, factor);
  for (std::int64_t i = 0; i < n; i += lanes_f32()) put(hn::Mul(get(x + i, n - i), f), y + i, n - i);
}

// exp_nonpositive_f32 with the integer part taken from a sum with 1.5 * 2^23 + 127, whose low bits are the exponent: three
// operations fewer. NaN gives 0, as there.
HWY_INLINE VF exp_of_difference(VF x, VF base) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const VF low = hn::Set(d, -87.3F);
  const VF magic = hn::Set(d, 12582912.0F + 127.0F);
  const VF difference = hn::Sub(x, base);
  const VF xc = hn::Max(difference, low);
  const VF t = hn::MulAdd(xc, hn::Set(d, 1.44269504088896341F), magic);
  const VF n = hn::Sub(t, magic);
  const VF p = exp_of_rest(xc, n);
  const VF scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, t)));
  return hn::IfThenElseZero(hn::Ge(difference, low), hn::Mul(p, scale));
}

// One vector of columns. A column that has seen nothing yet has the maximum -inf: its exponents are taken from 0 instead, and
// come out as 0. NaN and +inf spread by themselves: inf - inf is NaN.
void panel_softmax_lanes(float* s, std::int64_t n, std::int64_t width, float* max, float* sum, float* sums, std::int64_t m) {
  const DF d;
  const VF never = hn::Set(d, -std::numeric_limits<float>::infinity());
  const VF before = hn::LoadU(d, max);
  // Four chains: a comparison and two selections take 6 cycles and more.
  VF m0 = before, m1 = before, m2 = before, m3 = before;
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    m0 = max_nan(m0, hn::LoadU(d, s + i * width));
    m1 = max_nan(m1, hn::LoadU(d, s + (i + 1) * width));
    m2 = max_nan(m2, hn::LoadU(d, s + (i + 2) * width));
    m3 = max_nan(m3, hn::LoadU(d, s + (i + 3) * width));
  }
  for (; i < n; ++i) m0 = max_nan(m0, hn::LoadU(d, s + i * width));
  // The operands' order matters: max_nan keeps the NaN of its first, and a NaN that is its second.
  const VF best = max_nan(max_nan(m0, m1), max_nan(m2, m3));
  hn::StoreU(best, d, max);
  const VF base = hn::IfThenElse(hn::Eq(best, never), hn::Zero(d), best);
  VF total = hn::Zero(d), total2 = total;
  const VF poison = hn::Sub(hn::Mul(base, hn::Zero(d)), hn::Mul(base, hn::Zero(d)));  // NaN where base is no number
  for (i = 0; i + 2 <= n; i += 2) {
    const VF e = exp_of_difference(hn::LoadU(d, s + i * width), base);
    const VF f = exp_of_difference(hn::LoadU(d, s + (i + 1) * width), base);
    hn::StoreU(e, d, s + i * width);
    hn::StoreU(f, d, s + (i + 1) * width);
    total = hn::Add(total, e);
    total2 = hn::Add(total2, f);
  }
  if (i < n) {
    const VF e = exp_of_difference(hn::LoadU(d, s + i * width), base);
    hn::StoreU(e, d, s + i * width);
    total = hn::Add(total, e);
  }
  const VF factor = exp_of_difference(before, base);
  total = hn::Add(hn::Add(total, total2), poison);
  hn::StoreU(hn::MulAdd(hn::LoadU(d, sum), factor, total), d, sum);
  const bool fresh = hn::AllTrue(d, hn::Eq(before, never));
  if (fresh || hn::AllTrue(d, hn::Eq(factor, hn::Set(d, 1.0F)))) return;
  for (i = 0; i < m; ++i) hn::StoreU(hn::Mul(hn::LoadU(d, sums + i * width), factor), d, sums + i * width);
}

void panel_softmax(float* s, std::int64_t n, std::int64_t width, float* max, float* sum, float* sums, std::int64_t m) {
  for (std::int64_t c = 0; c < width; c += lanes_f32()) panel_softmax_lanes(s + c, n, width, max + c, sum + c, sums + c, m);
}

void add_rows(float* x, const float* row, std::int64_t n, std::int64_t width) {
  const DF d;
  for (std::int64_t i = 0; i < n; ++i) {
    const VF v = hn::Set(d, row[i]);
    for (std::int64_t c = 0; c < width; c += lanes_f32())
      hn::StoreU(hn::Add(hn::LoadU(d, x + i * width + c), v), d, x + i * width + c);
  }
}

void store_columns(const float* x, std::int64_t width, const float* factors, float* y, std::int64_t ldy, std::int64_t n,
                   std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j) {
    for (std::int64_t i = 0; i < n; ++i) y[j * ldy + i] = x[i * width + j] * factors[j];
  }
}

void rotate(const float* x, const float* cos, const float* sin, float* y, std::int64_t half) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  std::int64_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    const VF a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + half + i), c = hn::LoadU(d, cos + i), s = hn::LoadU(d, sin + i);
    hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, y + i);
    hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, y + half + i);
  }
  for (; i < half; ++i) {
    const float a = x[i], b = x[half + i];
    y[i] = a * cos[i] - b * sin[i];
    y[half + i] = a * sin[i] + b * cos[i];
  }
}

void lstm(const float* gates, const float* peephole, float limit, const float* c_prev, float* c, float* h, std::int64_t hidden) {
  const DF d;
  const VF hi = hn::Set(d, limit);
  const VF lo = hn::Neg(hi);
  const auto clamp = [&](VF v) HWY_ATTR { return limit > 0.0F ? clip(v, lo, hi) : v; };
  for (std::int64_t j = 0; j < hidden; j += lanes_f32()) {
    const std::int64_t left = hidden - j;
    VF i = get(gates + j, left);
    VF o = get(gates + hidden + j, left);
    VF f = get(gates + 2 * hidden + j, left);
    const VF g = tanh_f32(clamp(get(gates + 3 * hidden + j, left)));
    const VF before = get(c_prev + j, left);
    if (peephole != nullptr) {
      i = hn::MulAdd(get(peephole + j, left), before, i);
      f = hn::MulAdd(get(peephole + 2 * hidden + j, left), before, f);
    }
    const VF after = hn::MulAdd(sigmoid_f32(clamp(f)), before, hn::Mul(sigmoid_f32(clamp(i)), g));
    if (peephole != nullptr) o = hn::MulAdd(get(peephole + hidden + j, left), after, o);
    put(after, c + j, left);
    put(hn::Mul(sigmoid_f32(clamp(o)), tanh_f32(after)), h + j, left);
  }
}

void gru(const float* z_sum, const float* n_sum, const float* h_prev, float* h, std::int64_t hidden) {
  const DF d;
  for (std::int64_t j = 0; j < hidden; j += lanes_f32()) {
    const std::int64_t left = hidden - j;
    const VF z = sigmoid_f32(get(z_sum + j, left));
    const VF n = tanh_f32(get(n_sum + j, left));
    put(hn::MulAdd(z, get(h_prev + j, left), hn::Mul(hn::Sub(hn::Set(d, 1.0F), z), n)), h + j, left);
  }
}

}  // namespace

const AttentionKernels* attention_table() {
  static constexpr AttentionKernels kTable{online_softmax, scale, panel_softmax, add_rows, store_columns, rotate, lstm, gru};
  return &kTable;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/dispatch.h"

namespace sdx::cpu {

const AttentionKernels& attention_kernels() { return *SDX_CPU_PICK(attention_table)(); }

void lstm_cell_f32(const float* gates, const float* peephole, float clip, const float* c_prev, float* c, float* h,
                   std::int64_t hidden) {
  attention_kernels().lstm(gates, peephole, clip, c_prev, c, h, hidden);
}

void gru_combine_f32(const float* z_sum, const float* n_sum, const float* h_prev, float* h, std::int64_t hidden) {
  attention_kernels().gru(z_sum, n_sum, h_prev, h, hidden);
}

}  // namespace sdx::cpu
#endif
