#include "kernels/cpu/rows/row_simd.h"

#include <cmath>
#include <type_traits>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/row_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// Calls body(vector offset, vector, count) over x; the last vector may hold fewer than Lanes elements, zeros behind.
template <class F>
HWY_INLINE void each(const float* x, std::int64_t n, F&& body) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, hn::LoadU(d, x + i), lanes);
  if (i < n) body(i, load_tail(d, x + i, n - i), n - i);
}

HWY_INLINE void put(VF v, float* y, std::int64_t count) {
  const DF d;
  if (count >= lanes_f32()) {
    hn::StoreU(v, d, y);
  } else {
    store_tail(v, d, y, count);
  }
}
HWY_INLINE VF get(const float* x, std::int64_t count) {
  const DF d;
  return count >= lanes_f32() ? hn::LoadU(d, x) : load_tail(d, x, count);
}

// Blocks of 4096 elements bound the growth of rounding errors: a float sum of n terms errs by about n / lanes ulp.
constexpr std::int64_t kSumBlock = 4096;

template <class F>
HWY_INLINE float sum_of(const float* x, std::int64_t n, F&& map) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  float total = 0.0F;
  for (std::int64_t b = 0; b < n; b += kSumBlock) {
    const std::int64_t e = b + kSumBlock < n ? b + kSumBlock : n;
    VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    std::int64_t i = b;
    for (; i + 4 * lanes <= e; i += 4 * lanes) {
      s0 = hn::Add(s0, map(hn::LoadU(d, x + i)));
      s1 = hn::Add(s1, map(hn::LoadU(d, x + i + lanes)));
      s2 = hn::Add(s2, map(hn::LoadU(d, x + i + 2 * lanes)));
      s3 = hn::Add(s3, map(hn::LoadU(d, x + i + 3 * lanes)));
    }
    for (; i + lanes <= e; i += lanes) s0 = hn::Add(s0, map(hn::LoadU(d, x + i)));
    float rest = 0.0F;
    if (i < e) {
      // Zeros behind the tail would be mapped too (to mean^2, for a variance).
      HWY_ALIGN float tail[kMaxF32Lanes];
      hn::Store(map(load_tail(d, x + i, e - i)), d, tail);
      for (std::int64_t j = 0; j < e - i; ++j) rest += tail[j];
    }
    total += sum_lanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))) + rest;
  }
  return total;
}

// exp(x) for x <= 0; NaN stays NaN, and values below -87.7 give 0. The integer part comes from a sum with 1.5 * 2^23 + 127, whose
// low bits are the exponent (0 from -126.5 ln 2 on). The polynomial is a minimax fit made for this file (degree 6, relative error
// 4e-9): with the roundings at most 1.5 ulp in 15 operations, which are most of a softmax's time.
HWY_INLINE VF exp_row(VF x) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const VF magic = hn::Set(d, 12582912.0F + 127.0F);
  const VF xc = at_least(hn::Set(d, -88.0F), x);
  const VF t = hn::MulAdd(xc, hn::Set(d, 1.44269504088896341F), magic);
  const VF n = hn::Sub(t, magic);
  VF r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), xc);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
  VF p = hn::MulAdd(hn::Set(d, 0.00138145406F), r, hn::Set(d, 0.00836874545F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.041668389F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.166665211F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.49999994F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, t))));
}

template <bool kMax>
HWY_INLINE VF extreme(VF a, VF v) {
  return kMax ? hn::Max(a, v) : hn::Min(a, v);
}
template <bool kMax>
HWY_INLINE float extreme_lanes(VF v) {
  const DF d;
  return kMax ? hn::GetLane(hn::MaxOfLanes(d, v)) : hn::GetLane(hn::MinOfLanes(d, v));
}

// The largest (smallest) element; where there is a NaN, anything: kNan has it returned.
template <bool kMax, bool kNan>
HWY_INLINE float row_extreme(const float* x, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const auto better = [](float v, float best) { return (kMax ? v > best : v < best) || v != v; };
  if (n < lanes) {
    float best = x[0];
    for (std::int64_t i = 1; i < n && best == best; ++i) best = better(x[i], best) ? x[i] : best;
    return best;
  }
  // Overlapping the last vector instead of masking it: the operation is idempotent.
  const VF last = hn::LoadU(d, x + n - lanes);
  VF m0 = last, m1 = last, m2 = last, m3 = last;
  auto whole = hn::Eq(last, last);
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const VF v0 = hn::LoadU(d, x + i), v1 = hn::LoadU(d, x + i + lanes), v2 = hn::LoadU(d, x + i + 2 * lanes),
             v3 = hn::LoadU(d, x + i + 3 * lanes);
    m0 = extreme<kMax>(m0, v0);
    m1 = extreme<kMax>(m1, v1);
    m2 = extreme<kMax>(m2, v2);
    m3 = extreme<kMax>(m3, v3);
    // A sum with a NaN is one, and so is inf - inf: that is looked at again below.
    if constexpr (kNan) {
      const VF s = hn::Add(hn::Add(v0, v1), hn::Add(v2, v3));
      whole = hn::And(whole, hn::Eq(s, s));
    }
  }
  for (; i + lanes <= n; i += lanes) {
    const VF v = hn::LoadU(d, x + i);
    m0 = extreme<kMax>(m0, v);
    if constexpr (kNan) whole = hn::And(whole, hn::Eq(v, v));
  }
  if constexpr (kNan) {
    if (!hn::AllTrue(d, whole)) {
      for (i = 0; i < n; ++i) {
        if (x[i] != x[i]) return x[i];
      }
    }
  }
  return extreme_lanes<kMax>(extreme<kMax>(extreme<kMax>(m0, m1), extreme<kMax>(m2, m3)));
}

// NaN, infinities alone: plain arithmetic gives what the definition gives.
void softmax_special(const float* x, float* y, std::int64_t n, float max, bool log) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (x[i] != x[i]) max = x[i];
  }
  float sum = 0.0F;
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - max);
  for (std::int64_t i = 0; i < n; ++i) y[i] = log ? x[i] - max - std::log(sum) : std::exp(x[i] - max) / sum;
}

bool is_finite(float v) { return v - v == 0; }

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
    each(x, n, [&](std::int64_t i, VF v, std::int64_t count) HWY_ATTR { put(hn::Sub(hn::Sub(v, vm), shift), y + i, count); });
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
  float total = sum_lanes(d, hn::Add(s0, s1));
  if (i < n) {
    store_tail(exp_row(hn::Sub(load_tail(d, x + i, n - i), vm)), d, y + i, n - i);
    for (std::int64_t j = i; j < n; ++j) total += y[j];
  }
  const VF scale = hn::Set(d, 1.0F / total);
  each(y, n, [&](std::int64_t at, VF v, std::int64_t count) HWY_ATTR { put(hn::Mul(v, scale), y + at, count); });
}

// kWide vectors of columns at a time: whole cache lines, and sums that do not wait for each other.
template <int kWide>
HWY_INLINE void softmax_some(const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t count, bool log) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  VF m[kWide], s[kWide];
  for (int j = 0; j < kWide; ++j) {
    m[j] = get(x + j * lanes, count);
    s[j] = hn::Zero(d);
  }
  for (std::int64_t a = 1; a < axis; ++a) {
    for (int j = 0; j < kWide; ++j) m[j] = hn::Max(m[j], get(x + a * inner + j * lanes, count));
  }
  for (std::int64_t a = 0; a < axis; ++a) {
    for (int j = 0; j < kWide; ++j) {
      const VF e = exp_row(hn::Sub(get(x + a * inner + j * lanes, count), m[j]));
      if (!log) put(e, y + a * inner + j * lanes, count);
      s[j] = hn::Add(s[j], e);
    }
  }
  for (int j = 0; j < kWide; ++j) s[j] = log ? log_f32(s[j]) : hn::Div(hn::Set(d, 1.0F), s[j]);
  for (std::int64_t a = 0; a < axis; ++a) {
    for (int j = 0; j < kWide; ++j) {
      float* to = y + a * inner + j * lanes;
      put(log ? hn::Sub(hn::Sub(get(x + a * inner + j * lanes, count), m[j]), s[j]) : hn::Mul(get(to, count), s[j]), to, count);
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

void moments(const float* x, std::int64_t n, float* mean, float* variance) {
  const DF d;
  *mean = sum_of(x, n, [](VF v) HWY_ATTR { return v; }) / static_cast<float>(n);
  const VF vm = hn::Set(d, *mean);
  *variance = sum_of(x, n,
                     [&](VF v) HWY_ATTR {
                       const VF c = hn::Sub(v, vm);
                       return hn::Mul(c, c);
                     }) /
              static_cast<float>(n);
}

void layer_norm(const LayerNormArgs& a, std::int64_t row, std::int64_t n) {
  const DF d;
  const float* x = a.x + row * n;
  float* y = a.y + row * n;
  if (a.skip != nullptr) {
    const float* skip = a.skip + row * n;
    // y serves as the buffer of the sum when no one asks for it.
    float* sum = a.sum_out != nullptr ? a.sum_out + row * n : y;
    each(x, n, [&](std::int64_t i, VF v, std::int64_t count) HWY_ATTR {
      v = hn::Add(v, get(skip + i, count));
      if (a.skip_bias != nullptr) v = hn::Add(v, get(a.skip_bias + i, count));
      put(v, sum + i, count);
    });
    x = sum;
  }
  float mean = 0.0F;
  float variance = 0.0F;
  if (a.rms) {
    variance = sum_of(x, n, [](VF v) HWY_ATTR { return hn::Mul(v, v); }) / static_cast<float>(n);
  } else {
    moments(x, n, &mean, &variance);
  }
  const float inv = 1.0F / std::sqrt(variance + a.epsilon);
  const VF vm = hn::Set(d, mean);
  const VF vi = hn::Set(d, inv);
  each(x, n, [&](std::int64_t i, VF v, std::int64_t count) HWY_ATTR {
    v = hn::Mul(hn::Mul(hn::Sub(v, vm), vi), get(a.scale + i, count));
    if (a.bias != nullptr) v = hn::Add(v, get(a.bias + i, count));
    put(v, y + i, count);
  });
  if (a.mean_out != nullptr) a.mean_out[row] = mean;
  if (a.inv_std_out != nullptr) a.inv_std_out[row] = inv;
}

void affine(const float* x, float scale, float shift, float* y, std::int64_t n) {
  const DF d;
  const VF vs = hn::Set(d, scale);
  const VF vb = hn::Set(d, shift);
  each(x, n, [&](std::int64_t i, VF v, std::int64_t count) HWY_ATTR { put(hn::MulAdd(v, vs, vb), y + i, count); });
}

// Squares that neither overflow nor vanish: beyond, sums are formed anew in double.
bool safe_square_sum(float sum) { return sum > 1e-30F && sum < 1e37F; }

double norm_in_double(const float* x, std::int64_t n, std::int64_t step) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i * step]) * static_cast<double>(x[i * step]);
  return std::sqrt(sum);
}

// In double, as partial products leave float's range sooner than the whole.
float product(const float* x, std::int64_t n) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(dd));
  auto p0 = hn::Set(dd, 1.0), p1 = p0, p2 = p0, p3 = p0;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    p0 = hn::Mul(p0, hn::PromoteTo(dd, hn::LoadU(df, x + i)));
    p1 = hn::Mul(p1, hn::PromoteTo(dd, hn::LoadU(df, x + i + lanes)));
    p2 = hn::Mul(p2, hn::PromoteTo(dd, hn::LoadU(df, x + i + 2 * lanes)));
    p3 = hn::Mul(p3, hn::PromoteTo(dd, hn::LoadU(df, x + i + 3 * lanes)));
  }
  HWY_ALIGN double parts[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(hn::Mul(hn::Mul(p0, p1), hn::Mul(p2, p3)), dd, parts);
  double all = parts[0];
  for (std::int64_t j = 1; j < lanes; ++j) all *= parts[j];
  for (; i < n; ++i) all *= static_cast<double>(x[i]);
  return static_cast<float>(all);
}

float log_sum_exp(const float* x, std::int64_t n) {
  const DF d;
  const float max = row_extreme<true, true>(x, n);
  if (!is_finite(max)) return max;
  const VF vm = hn::Set(d, max);
  return max + std::log(sum_of(x, n, [&](VF v) HWY_ATTR { return exp_row(hn::Sub(v, vm)); }));
}

float reduce(Reduce op, const float* x, std::int64_t n) {
  const auto sum = [&] { return sum_of(x, n, [](VF v) HWY_ATTR { return v; }); };
  const auto squares = [&] { return sum_of(x, n, [](VF v) HWY_ATTR { return hn::Mul(v, v); }); };
  switch (op) {
    case Reduce::sum: return sum();
    case Reduce::mean: return sum() / static_cast<float>(n);
    case Reduce::log_sum: return std::log(sum());
    case Reduce::sum_square: return squares();
    case Reduce::sum_abs: return sum_of(x, n, [](VF v) HWY_ATTR { return hn::Abs(v); });
    case Reduce::norm: {
      const float s = squares();
      return safe_square_sum(s) ? std::sqrt(s) : static_cast<float>(norm_in_double(x, n, 1));
    }
    case Reduce::max: return row_extreme<true, true>(x, n);
    case Reduce::min: return row_extreme<false, true>(x, n);
    case Reduce::product: return product(x, n);
    case Reduce::log_sum_exp: return log_sum_exp(x, n);
  }
  return 0.0F;
}

template <Reduce kOp>
HWY_INLINE VF join(VF a, VF v) {
  if constexpr (kOp == Reduce::max) return max_nan(a, v);
  if constexpr (kOp == Reduce::min) return min_nan(a, v);
  if constexpr (kOp == Reduce::sum_square || kOp == Reduce::norm) return hn::MulAdd(v, v, a);
  if constexpr (kOp == Reduce::sum_abs) return hn::Add(a, hn::Abs(v));
  return hn::Add(a, v);
}

// kWide vectors of columns at a time: whole cache lines, and sums that do not wait for each other.
template <Reduce kOp, int kWide>
HWY_INLINE void columns_some(const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t count) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  constexpr bool kExtreme = kOp == Reduce::max || kOp == Reduce::min;
  VF total[kWide], s[kWide];
  for (int j = 0; j < kWide; ++j) total[j] = kExtreme ? get(x + j * lanes, count) : hn::Zero(d);
  // Blocks again, so that long columns lose no more than short ones.
  for (std::int64_t b = kExtreme ? 1 : 0; b < axis; b += 512) {
    const std::int64_t e = b + 512 < axis ? b + 512 : axis;
    for (int j = 0; j < kWide; ++j) s[j] = kExtreme ? total[j] : hn::Zero(d);
    for (std::int64_t a = b; a < e; ++a) {
      for (int j = 0; j < kWide; ++j) s[j] = join<kOp>(s[j], get(x + a * inner + j * lanes, count));
    }
    for (int j = 0; j < kWide; ++j) total[j] = kExtreme ? s[j] : hn::Add(total[j], s[j]);
  }
  const VF scale = hn::Set(d, 1.0F / static_cast<float>(axis));
  for (int j = 0; j < kWide; ++j) {
    if constexpr (kOp == Reduce::mean) total[j] = hn::Mul(total[j], scale);
    if constexpr (kOp == Reduce::log_sum) total[j] = log_f32(total[j]);
    put(total[j], y + j * lanes, count);
  }
}

template <Reduce kOp>
void columns(const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t begin, std::int64_t end) {
  const std::int64_t lanes = lanes_f32();
  std::int64_t c = begin;
  for (; c + 4 * lanes <= end; c += 4 * lanes) columns_some<kOp, 4>(x + c, y + c, axis, inner, lanes);
  for (; c < end; c += lanes) columns_some<kOp, 1>(x + c, y + c, axis, inner, end - c < lanes ? end - c : lanes);
}

void product_columns(const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kSome = 256;
  double p[kSome];
  for (std::int64_t c = begin; c < end; c += kSome) {
    const std::int64_t count = end - c < kSome ? end - c : kSome;
    for (std::int64_t i = 0; i < count; ++i) p[i] = static_cast<double>(x[c + i]);
    for (std::int64_t a = 1; a < axis; ++a) {
      const float* from = x + a * inner + c;
      for (std::int64_t i = 0; i < count; ++i) p[i] *= static_cast<double>(from[i]);
    }
    for (std::int64_t i = 0; i < count; ++i) y[c + i] = static_cast<float>(p[i]);
  }
}

void norm_columns(const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t begin, std::int64_t end) {
  columns<Reduce::norm>(x, y, axis, inner, begin, end);
  for (std::int64_t c = begin; c < end; ++c) {
    y[c] = safe_square_sum(y[c]) ? std::sqrt(y[c]) : static_cast<float>(norm_in_double(x + c, axis, inner));
  }
}

void log_sum_exp_columns(const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t begin, std::int64_t end) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  columns<Reduce::max>(x, y, axis, inner, begin, end);
  for (std::int64_t c = begin; c < end; c += lanes) {
    const std::int64_t count = end - c < lanes ? end - c : lanes;
    const VF m = get(y + c, count);
    VF s = hn::Zero(d);
    for (std::int64_t a = 0; a < axis; ++a) s = hn::Add(s, exp_row(hn::Sub(get(x + a * inner + c, count), m)));
    // An infinite maximum, or a NaN, is the result.
    const VF finite = hn::Add(m, log_f32(s));
    put(hn::IfThenElse(hn::Eq(hn::Sub(m, m), hn::Zero(d)), finite, m), y + c, count);
  }
}

void reduce_columns(Reduce op, const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t begin,
                    std::int64_t end) {
  switch (op) {
    case Reduce::sum: return columns<Reduce::sum>(x, y, axis, inner, begin, end);
    case Reduce::mean: return columns<Reduce::mean>(x, y, axis, inner, begin, end);
    case Reduce::max: return columns<Reduce::max>(x, y, axis, inner, begin, end);
    case Reduce::min: return columns<Reduce::min>(x, y, axis, inner, begin, end);
    case Reduce::sum_square: return columns<Reduce::sum_square>(x, y, axis, inner, begin, end);
    case Reduce::sum_abs: return columns<Reduce::sum_abs>(x, y, axis, inner, begin, end);
    case Reduce::log_sum: return columns<Reduce::log_sum>(x, y, axis, inner, begin, end);
    case Reduce::norm: return norm_columns(x, y, axis, inner, begin, end);
    case Reduce::product: return product_columns(x, y, axis, inner, begin, end);
    case Reduce::log_sum_exp: return log_sum_exp_columns(x, y, axis, inner, begin, end);
  }
}

// The first (last) position of the row's largest (smallest) element; a NaN beats everything.
template <bool kMax>
std::int64_t arg_row(const float* x, std::int64_t n, bool last) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const float best = row_extreme<kMax, true>(x, n);
  const auto same = [best](float v) { return v == best || (v != v && best != best); };
  if (best != best || last) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = last ? n - 1 - i : i;
      if (same(x[at])) return at;
    }
  }
  const VF want = hn::Set(d, best);
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto hit = hn::Or(hn::Eq(hn::LoadU(d, x + i), want), hn::Eq(hn::LoadU(d, x + i + lanes), want));
    if (!hn::AllFalse(d, hit)) break;
  }
  while (i < n && x[i] != best) ++i;
  return i;
}

template <bool kMax>
void arg_columns(const float* x, std::int64_t* y, std::int64_t axis, std::int64_t inner, std::int64_t begin, std::int64_t end,
                 bool last) {
  const hn::RebindToSigned<DF> di;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t c = begin; c < end; c += lanes) {
    const std::int64_t count = end - c < lanes ? end - c : lanes;
    VF best = get(x + c, count);
    auto at = hn::Zero(di);
    for (std::int64_t a = 1; a < axis; ++a) {
      const VF v = get(x + a * inner + c, count);
      const auto number = hn::Eq(v, v);
      const auto above = kMax ? (last ? hn::Ge(v, best) : hn::Gt(v, best)) : (last ? hn::Le(v, best) : hn::Lt(v, best));
      // The first NaN stays, unless the last is wanted.
      const auto nan = last ? hn::Not(number) : hn::AndNot(number, hn::Eq(best, best));
      const auto take = hn::Or(above, nan);
      best = hn::IfThenElse(take, v, best);
      at = hn::IfThenElse(hn::RebindMask(di, take), hn::Set(di, static_cast<std::int32_t>(a)), at);
    }
    HWY_ALIGN std::int32_t found[kMaxF32Lanes];
    hn::Store(at, di, found);
    for (std::int64_t i = 0; i < count; ++i) y[c + i] = found[i];
  }
}

std::int64_t arg_extreme_row(const float* x, std::int64_t n, bool max, bool last) {
  return max ? arg_row<true>(x, n, last) : arg_row<false>(x, n, last);
}
void arg_extreme_columns(const float* x, std::int64_t* y, std::int64_t axis, std::int64_t inner, std::int64_t begin,
                         std::int64_t end, bool max, bool last) {
  (max ? arg_columns<true> : arg_columns<false>)(x, y, axis, inner, begin, end, last);
}

// The first position from `i` on whose element is above (below) the bound or NaN; n if there is none.
std::int64_t next_beyond(const float* x, std::int64_t i, std::int64_t n, float bound, bool above) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF b = hn::Set(d, bound);
  const auto within = [&](VF v) HWY_ATTR { return above ? hn::Le(v, b) : hn::Ge(v, b); };
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto w = hn::And(hn::And(within(hn::LoadU(d, x + i)), within(hn::LoadU(d, x + i + lanes))),
                           hn::And(within(hn::LoadU(d, x + i + 2 * lanes)), within(hn::LoadU(d, x + i + 3 * lanes))));
    if (!hn::AllTrue(d, w)) break;
  }
  while (i < n && (above ? x[i] <= bound : x[i] >= bound)) ++i;
  return i;
}

// Integers wrap. Only sum, max and min.
template <class T>
HWY_INLINE T join_int(Reduce op, T a, T v) {
  using U = std::make_unsigned_t<T>;
  if (op == Reduce::sum) return static_cast<T>(static_cast<U>(a) + static_cast<U>(v));
  return op == Reduce::max ? (v > a ? v : a) : (v < a ? v : a);
}
template <class T, Reduce kOp>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> join_ints(hn::Vec<hn::ScalableTag<T>> a, hn::Vec<hn::ScalableTag<T>> v) {
  if constexpr (kOp == Reduce::sum) return hn::Add(a, v);
  if constexpr (kOp == Reduce::max) return hn::Max(a, v);
  return hn::Min(a, v);
}

template <class T, Reduce kOp>
T int_row(const T* x, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  T all = x[0];
  std::int64_t i = 1;
  if (n >= 2 * lanes) {
    auto v0 = hn::LoadU(d, x), v1 = hn::LoadU(d, x + lanes);
    for (i = 2 * lanes; i + 2 * lanes <= n; i += 2 * lanes) {
      v0 = join_ints<T, kOp>(v0, hn::LoadU(d, x + i));
      v1 = join_ints<T, kOp>(v1, hn::LoadU(d, x + i + lanes));
    }
    HWY_ALIGN T parts[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(join_ints<T, kOp>(v0, v1), d, parts);
    all = parts[0];
    for (std::int64_t j = 1; j < lanes; ++j) all = join_int(kOp, all, parts[j]);
  }
  for (; i < n; ++i) all = join_int(kOp, all, x[i]);
  return all;
}

template <class T, Reduce kOp>
void int_columns(const T* x, T* y, std::int64_t axis, std::int64_t inner, std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t c = begin;
  for (; c + 2 * lanes <= end; c += 2 * lanes) {
    auto v0 = hn::LoadU(d, x + c), v1 = hn::LoadU(d, x + c + lanes);
    for (std::int64_t a = 1; a < axis; ++a) {
      v0 = join_ints<T, kOp>(v0, hn::LoadU(d, x + a * inner + c));
      v1 = join_ints<T, kOp>(v1, hn::LoadU(d, x + a * inner + c + lanes));
    }
    hn::StoreU(v0, d, y + c);
    hn::StoreU(v1, d, y + c + lanes);
  }
  for (; c < end; ++c) {
    T all = x[c];
    for (std::int64_t a = 1; a < axis; ++a) all = join_int(kOp, all, x[a * inner + c]);
    y[c] = all;
  }
}

template <class T>
void reduce_ints(Reduce op, const T* x, T* y, std::int64_t axis, std::int64_t inner, std::int64_t begin, std::int64_t end) {
  if (inner == 1) {
    *y = op == Reduce::sum   ? int_row<T, Reduce::sum>(x, axis)
         : op == Reduce::max ? int_row<T, Reduce::max>(x, axis)
                             : int_row<T, Reduce::min>(x, axis);
    return;
  }
  (op == Reduce::sum   ? int_columns<T, Reduce::sum>
   : op == Reduce::max ? int_columns<T, Reduce::max>
                       : int_columns<T, Reduce::min>)(x, y, axis, inner, begin, end);
}

// Squares of the window are summed anew for each channel: size is small (5), and a running sum would lose precision.
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
        const VF v = get(x + k * inner + i, count);
        s = hn::MulAdd(v, v, s);
      }
      const VF base = hn::MulAdd(va, s, vb);
      put(hn::Mul(get(x + c * inner + i, count), inverse_power<kQuarters>(base, vbeta)), y + c * inner + i, count);
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

const RowKernels* row_table() {
  static const RowKernels table{static_cast<int>(lanes_f32()),
                                softmax,
                                softmax_columns,
                                layer_norm,
                                affine,
                                moments,
                                reduce,
                                reduce_columns,
                                reduce_ints<std::int32_t>,
                                reduce_ints<std::int64_t>,
                                arg_extreme_row,
                                arg_extreme_columns,
                                next_beyond,
                                lrn};
  return &table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

namespace sdx::cpu {

const RowKernels& row_kernels() { return *SDX_CPU_PICK(row_table)(); }

}  // namespace sdx::cpu
#endif
