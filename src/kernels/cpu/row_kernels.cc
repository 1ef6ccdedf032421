#include "kernels/cpu/row_kernels.h"

#include <cmath>
#include <limits>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_kernels.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"

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

float row_max(const float* x, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  if (n < lanes) {
    float m = x[0];
    for (std::int64_t i = 1; i < n; ++i) m = (x[i] > m || x[i] != x[i]) ? x[i] : m;
    return m;
  }
  // Overlapping the last vector instead of masking it; max is idempotent.
  VF m = hn::LoadU(d, x);
  for (std::int64_t i = lanes; i + lanes <= n; i += lanes) m = max_nan(m, hn::LoadU(d, x + i));
  m = max_nan(m, hn::LoadU(d, x + n - lanes));
  HWY_ALIGN float values[kMaxF32Lanes];
  hn::Store(m, d, values);
  float best = values[0];
  for (std::int64_t i = 1; i < lanes; ++i) best = (values[i] > best || values[i] != values[i]) ? values[i] : best;
  return best;
}

void softmax(const float* x, float* y, std::int64_t n, bool log) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const float max = row_max(x, n);
  if (!(max > -std::numeric_limits<float>::infinity()) || max == std::numeric_limits<float>::infinity()) {
    // NaN, -inf alone, or +inf: inf - inf. Plain arithmetic gives what the definition gives.
    float sum = 0.0F;
    for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - max);
    for (std::int64_t i = 0; i < n; ++i) y[i] = log ? x[i] - max - std::log(sum) : std::exp(x[i] - max) / sum;
    return;
  }
  const VF vm = hn::Set(d, max);
  if (log) {
    const float sum = sum_of(x, n, [&](VF v) HWY_ATTR { return exp_nonpositive_f32(hn::Sub(v, vm)); });
    const VF shift = hn::Set(d, std::log(sum));
    each(x, n, [&](std::int64_t i, VF v, std::int64_t count) HWY_ATTR { put(hn::Sub(hn::Sub(v, vm), shift), y + i, count); });
    return;
  }
  VF s = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VF e = exp_nonpositive_f32(hn::Sub(hn::LoadU(d, x + i), vm));
    hn::StoreU(e, d, y + i);
    s = hn::Add(s, e);
  }
  float total = sum_lanes(d, s);
  if (i < n) {
    store_tail(exp_nonpositive_f32(hn::Sub(load_tail(d, x + i, n - i), vm)), d, y + i, n - i);
    for (std::int64_t j = i; j < n; ++j) total += y[j];
  }
  const VF scale = hn::Set(d, 1.0F / total);
  each(y, n, [&](std::int64_t at, VF v, std::int64_t count) HWY_ATTR { put(hn::Mul(v, scale), y + at, count); });
}

void softmax_columns(const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t begin, std::int64_t end,
                     bool log) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t c = begin; c < end; c += lanes) {
    const std::int64_t count = end - c < lanes ? end - c : lanes;
    VF m = get(x + c, count);
    for (std::int64_t a = 1; a < axis; ++a) m = max_nan(m, get(x + a * inner + c, count));
    VF s = hn::Zero(d);
    for (std::int64_t a = 0; a < axis; ++a) {
      const VF e = exp_f32(hn::Sub(get(x + a * inner + c, count), m));
      if (!log) put(e, y + a * inner + c, count);
      s = hn::Add(s, e);
    }
    if (log) {
      const VF shift = log_f32(s);
      for (std::int64_t a = 0; a < axis; ++a) {
        put(hn::Sub(hn::Sub(get(x + a * inner + c, count), m), shift), y + a * inner + c, count);
      }
    } else {
      const VF scale = hn::Div(hn::Set(d, 1.0F), s);
      for (std::int64_t a = 0; a < axis; ++a) put(hn::Mul(get(y + a * inner + c, count), scale), y + a * inner + c, count);
    }
  }
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

float reduce(Reduce op, const float* x, std::int64_t n) {
  const DF d;
  switch (op) {
    case Reduce::sum: return sum_of(x, n, [](VF v) HWY_ATTR { return v; });
    case Reduce::mean: return sum_of(x, n, [](VF v) HWY_ATTR { return v; }) / static_cast<float>(n);
    case Reduce::sum_square: return sum_of(x, n, [](VF v) HWY_ATTR { return hn::Mul(v, v); });
    case Reduce::sum_abs: return sum_of(x, n, [](VF v) HWY_ATTR { return hn::Abs(v); });
    case Reduce::max: return row_max(x, n);
    case Reduce::min: break;
  }
  const std::int64_t lanes = lanes_f32();
  float best = x[0];
  std::int64_t i = 0;
  if (n >= lanes) {
    VF m = hn::LoadU(d, x);
    for (i = lanes; i + lanes <= n; i += lanes) m = min_nan(m, hn::LoadU(d, x + i));
    HWY_ALIGN float values[kMaxF32Lanes];
    hn::Store(m, d, values);
    best = values[0];
    for (std::int64_t j = 1; j < lanes; ++j) best = (values[j] < best || values[j] != values[j]) ? values[j] : best;
  }
  for (; i < n; ++i) best = (x[i] < best || x[i] != x[i]) ? x[i] : best;
  return best;
}

template <Reduce kOp>
HWY_INLINE VF join(VF a, VF v) {
  if constexpr (kOp == Reduce::max) return max_nan(a, v);
  if constexpr (kOp == Reduce::min) return min_nan(a, v);
  if constexpr (kOp == Reduce::sum_square) return hn::MulAdd(v, v, a);
  if constexpr (kOp == Reduce::sum_abs) return hn::Add(a, hn::Abs(v));
  return hn::Add(a, v);
}

template <Reduce kOp>
void columns(const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t begin, std::int64_t end) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  constexpr bool kExtreme = kOp == Reduce::max || kOp == Reduce::min;
  const VF scale = hn::Set(d, kOp == Reduce::mean ? 1.0F / static_cast<float>(axis) : 1.0F);
  for (std::int64_t c = begin; c < end; c += lanes) {
    const std::int64_t count = end - c < lanes ? end - c : lanes;
    VF total = kExtreme ? get(x + c, count) : hn::Zero(d);
    // Blocks again, so that long columns lose no more than short ones.
    for (std::int64_t b = kExtreme ? 1 : 0; b < axis; b += 512) {
      const std::int64_t e = b + 512 < axis ? b + 512 : axis;
      VF s = kExtreme ? total : hn::Zero(d);
      for (std::int64_t a = b; a < e; ++a) s = join<kOp>(s, get(x + a * inner + c, count));
      total = kExtreme ? s : hn::Add(total, s);
    }
    put(kExtreme ? total : hn::Mul(total, scale), y + c, count);
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
  }
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
  static const RowKernels table{
      static_cast<int>(lanes_f32()), softmax, softmax_columns, layer_norm, affine, moments, reduce, reduce_columns, lrn};
  return &table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/dispatch.h"

namespace sdx::cpu {

const RowKernels& row_kernels() { return *SDX_CPU_PICK(row_table)(); }

}  // namespace sdx::cpu
#endif
