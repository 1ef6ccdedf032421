#include "kernels/cpu/attention/attention_simd.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/attention_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/columns-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

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
  for (std::int64_t i = 0; i < n; i += lanes_f32()) store_floats(hn::Mul(load_floats(x + i, n - i), f), y + i, n - i);
}

// exp(x - base) of x <= base: the integer part comes from kExponentSum, and is -127 for values below -87.7, so the result is 0
// without a comparison. NaN stays NaN.
HWY_INLINE VF exp_of_difference(VF x, VF base) {
  const DF d;
  const VF magic = hn::Set(d, kExponentSum);
  const VF low = hn::Set(d, -88.0F), difference = hn::Sub(x, base);
  const VF xc = at_least(low, difference);
  const VF t = hn::MulAdd(xc, hn::Set(d, 1.44269504088896341F), magic);
  const VF n = hn::Sub(t, magic);
  const VF p = exp_of_rest(xc, n);
  return hn::Mul(p, exponent_of(t));
}

// One vector of columns. A column with no visible key yet has the maximum -inf: its exponentials are taken relative to 0 instead,
// and are 0. NaN and +inf propagate by themselves: inf - inf is NaN.
void panel_softmax_lanes(float* s, std::int64_t n, std::int64_t width, float* max, float* sum, float* sums, std::int64_t m) {
  const DF d;
  const VF never = hn::Set(d, -std::numeric_limits<float>::infinity());
  const VF before = hn::LoadU(d, max);
  // The maximum may skip a NaN here; the sums do not.
  VF m0 = before, m1 = before;
  std::int64_t i = 0;
  for (; i + 2 <= n; i += 2) {
    m0 = hn::Max(hn::LoadU(d, s + i * width), m0);
    m1 = hn::Max(hn::LoadU(d, s + (i + 1) * width), m1);
  }
  if (i < n) m0 = hn::Max(hn::LoadU(d, s + i * width), m0);
  const VF best = hn::Max(m0, m1);
  hn::StoreU(best, d, max);
  const VF base = hn::IfThenElse(hn::Eq(best, never), hn::Zero(d), best);
  VF total = hn::Zero(d), total2 = total;
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
  total = hn::Add(total, total2);
  hn::StoreU(hn::MulAdd(hn::LoadU(d, sum), factor, total), d, sum);
  const bool fresh = hn::AllTrue(d, hn::Eq(before, never));
  if (fresh || hn::AllTrue(d, hn::Eq(factor, hn::Set(d, 1.0F)))) return;
  for (i = 0; i < m; ++i) hn::StoreU(hn::Mul(hn::LoadU(d, sums + i * width), factor), d, sums + i * width);
}

void panel_softmax(float* s, std::int64_t n, std::int64_t width, std::int64_t count, float* max, float* sum, float* sums,
                   std::int64_t m) {
  for (std::int64_t c = 0; c < count; c += lanes_f32()) panel_softmax_lanes(s + c, n, width, max + c, sum + c, sums + c, m);
}

void add_rows(float* x, const float* row, std::int64_t n, std::int64_t width) {
  const DF d;
  for (std::int64_t i = 0; i < n; ++i) {
    const VF v = hn::Set(d, row[i]);
    for (std::int64_t c = 0; c < width; c += lanes_f32())
      hn::StoreU(hn::Add(hn::LoadU(d, x + i * width + c), v), d, x + i * width + c);
  }
}

#if HWY_TARGET != HWY_SCALAR
// Rows [i, n) of x as far as they fill vectors of kRows; returns the first row left.
template <int kRows>
HWY_INLINE std::int64_t store_some_columns(const float* x, std::int64_t width, const float* factors, float* y, std::int64_t ldy,
                                           std::int64_t i, std::int64_t n, std::int64_t count) {
  const hn::FixedTag<float, kRows> d;
  for (; i + kRows <= n; i += kRows) {
    for (std::int64_t j = 0; j < count; j += 4) {
      ColumnOf<kRows> c0, c1, c2, c3;
      four_columns<kRows>([&](int r) HWY_ATTR { return x + (i + r) * width + j; }, c0, c1, c2, c3);
      float* const to = y + j * ldy + i;
      hn::StoreU(hn::Mul(c0, hn::Set(d, factors[j])), d, to);
      if (j + 1 < count) hn::StoreU(hn::Mul(c1, hn::Set(d, factors[j + 1])), d, to + ldy);
      if (j + 2 < count) hn::StoreU(hn::Mul(c2, hn::Set(d, factors[j + 2])), d, to + 2 * ldy);
      if (j + 3 < count) hn::StoreU(hn::Mul(c3, hn::Set(d, factors[j + 3])), d, to + 3 * ldy);
    }
  }
  return i;
}

// Adds the columns of `rows` rows of a mask to a vector of queries; the lanes after these may get anything.
HWY_INLINE std::int64_t add_some_columns(float* x, std::int64_t width, const float* mask, std::int64_t ld, std::int64_t n,
                                         std::int64_t rows) {
  const DF d;
  constexpr int kRows = HWY_MAX_BYTES / 4;
  const float* from[kRows];
  for (std::int64_t r = 0; r < kRows; ++r) from[r] = mask + std::min(r, rows - 1) * ld;
  std::int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    VF c0, c1, c2, c3;
    four_columns<kRows>([&](int r) HWY_ATTR { return from[r] + k; }, c0, c1, c2, c3);
    float* const to = x + k * width;
    hn::StoreU(hn::Add(hn::LoadU(d, to), c0), d, to);
    hn::StoreU(hn::Add(hn::LoadU(d, to + width), c1), d, to + width);
    hn::StoreU(hn::Add(hn::LoadU(d, to + 2 * width), c2), d, to + 2 * width);
    hn::StoreU(hn::Add(hn::LoadU(d, to + 3 * width), c3), d, to + 3 * width);
  }
  return k;
}
#endif

void store_columns(const float* x, std::int64_t width, const float* factors, float* y, std::int64_t ldy, std::int64_t n,
                   std::int64_t count) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
#if HWY_MAX_BYTES >= 64
  i = store_some_columns<16>(x, width, factors, y, ldy, i, n, count);
#endif
#if HWY_MAX_BYTES >= 32
  i = store_some_columns<8>(x, width, factors, y, ldy, i, n, count);
#endif
  i = store_some_columns<4>(x, width, factors, y, ldy, i, n, count);
#endif
  for (; i < n; ++i) {
    for (std::int64_t j = 0; j < count; ++j) y[j * ldy + i] = x[i * width + j] * factors[j];
  }
}

void add_columns(float* x, std::int64_t width, const float* mask, std::int64_t ld, std::int64_t n, std::int64_t count) {
  for (std::int64_t c = 0; c < count; c += lanes_f32()) {
    const std::int64_t rows = std::min(lanes_f32(), count - c);
    std::int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
    k = add_some_columns(x + c, width, mask + c * ld, ld, n, rows);
#endif
    for (; k < n; ++k) {
      for (std::int64_t r = 0; r < rows; ++r) x[k * width + c + r] += mask[(c + r) * ld + k];
    }
  }
}

// Row by row, into all tiles: tiles are a few write streams, and a row of a matrix of heads is a few cache lines on its own page.
void column_tiles(const float* x, std::int64_t ldx, std::int64_t n, std::int64_t first, std::int64_t count, std::int64_t size,
                  std::int64_t most, float* out) {
  const DF d;
  const std::int64_t lanes = lanes_f32(), step = (most + lanes - 1) / lanes * lanes;
  const Cuts tiles(size, most);
  for (std::int64_t i = first; i < first + count; ++i) {
    const float* row = x + (i - first) * ldx;
    if (i + 8 < first + count) {
      for (std::int64_t c = 0; c < size; c += 16) __builtin_prefetch(row + 8 * ldx + c);
    }
    float* to = out + i * step;
    for (std::int64_t t = 0; t < tiles.parts; ++t, to += n * step) {
      const std::int64_t begin = tiles.begin(t), width = tiles.size(t);
      for (std::int64_t c = 0; c < width; c += lanes) {
        hn::Store(load_floats(row + begin + c, size - begin - c), d, to + c);
      }
    }
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

// 0 times infinity or NaN is NaN.
bool ordinary_columns(const float* x, std::int64_t width, const float* max, const float* sum, float least, float most,
                      std::int64_t n, std::int64_t count) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF zero = hn::Zero(d), low = hn::Set(d, least), high = hn::Set(d, most);
  for (std::int64_t j = 0; j < count; j += lanes) {
    VF zeros = hn::Mul(hn::LoadU(d, sum + j), zero);
    for (std::int64_t i = 0; i < n; ++i) zeros = hn::MulAdd(hn::LoadU(d, x + i * width + j), zero, zeros);
    const VF largest = hn::LoadU(d, max + j);
    const auto fine = hn::And(hn::Eq(zeros, zero), hn::And(hn::Gt(largest, low), hn::Lt(largest, high)));
    if (count - j >= lanes) {
      if (!hn::AllTrue(d, fine)) return false;
    } else if (!hn::AllFalse(d, hn::AndNot(fine, hn::FirstN(d, static_cast<std::size_t>(count - j))))) {
      return false;
    }
  }
  return true;
}

bool all_finite(const float* x, std::int64_t n) {
  const DF d;
  const VF zero = hn::Zero(d);
  VF zeros = zero;
  for (std::int64_t i = 0; i < n; i += lanes_f32()) zeros = hn::MulAdd(load_floats(x + i, n - i), zero, zeros);
  return hn::AllTrue(d, hn::Eq(zeros, zero));
}

}  // namespace

const AttentionKernels& attention_table() {
  static constexpr AttentionKernels kTable{online_softmax,   scale,      panel_softmax, add_rows, add_columns, store_columns,
                                           ordinary_columns, all_finite, column_tiles,  rotate};
  return kTable;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const AttentionKernels&, attention_kernels, attention_table)
#endif
