#include "kernels/cpu/rows/reduce_simd.h"

#include <cmath>
#include <type_traits>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/reduce_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/rows/rows-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// Whether a sum of squares neither overflowed nor underflowed; otherwise it is computed again in double.
bool safe_square_sum(float sum) { return sum > 1e-30F && sum < 1e37F; }

double norm_in_double(const float* x, std::int64_t n, std::int64_t step) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i * step]) * static_cast<double>(x[i * step]);
  return std::sqrt(sum);
}

// In double: partial products leave float's range sooner than the whole product.
float product(const float* x, std::int64_t n) {
  const DD dd;
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

// kWide vectors of columns at a time: whole cache lines, and independent sums.
template <Reduce kOp, int kWide>
HWY_INLINE void columns_some(const float* x, float* y, std::int64_t axis, std::int64_t inner, std::int64_t count) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  constexpr bool kExtreme = kOp == Reduce::max || kOp == Reduce::min;
  VF total[kWide], s[kWide];
  for (int j = 0; j < kWide; ++j) total[j] = kExtreme ? load_floats(x + j * lanes, count) : hn::Zero(d);
  // Blocks again, so that long columns lose no more precision than short ones.
  for (std::int64_t b = kExtreme ? 1 : 0; b < axis; b += 512) {
    const std::int64_t e = b + 512 < axis ? b + 512 : axis;
    for (int j = 0; j < kWide; ++j) s[j] = kExtreme ? total[j] : hn::Zero(d);
    for (std::int64_t a = b; a < e; ++a) {
      for (int j = 0; j < kWide; ++j) s[j] = join<kOp>(s[j], load_floats(x + a * inner + j * lanes, count));
    }
    for (int j = 0; j < kWide; ++j) total[j] = kExtreme ? s[j] : hn::Add(total[j], s[j]);
  }
  const VF scale = hn::Set(d, 1.0F / static_cast<float>(axis));
  for (int j = 0; j < kWide; ++j) {
    if constexpr (kOp == Reduce::mean) total[j] = hn::Mul(total[j], scale);
    if constexpr (kOp == Reduce::log_sum) total[j] = log_f32(total[j]);
    store_floats(total[j], y + j * lanes, count);
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
    for (std::int64_t i = 0; i < count; ++i) p[i] = 1.0;
    for (std::int64_t a = 0; a < axis; ++a) {
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
    const VF m = load_floats(y + c, count);
    VF s = hn::Zero(d);
    for (std::int64_t a = 0; a < axis; ++a) s = hn::Add(s, exp_row(hn::Sub(load_floats(x + a * inner + c, count), m)));
    // An infinite or NaN maximum is the result.
    const VF finite = hn::Add(m, log_f32(s));
    store_floats(hn::IfThenElse(hn::Eq(hn::Sub(m, m), hn::Zero(d)), finite, m), y + c, count);
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

// Rows of one to kMediumVectors vectors are added up four at a time: finishing a row alone takes longer than its sum.
#if HWY_TARGET == HWY_SCALAR
constexpr std::int64_t kMediumVectors = 0;
#else
constexpr std::int64_t kMediumVectors = 8;

template <Reduce kOp, class V>
HWY_INLINE V joined(V a, V b) {
  if constexpr (kOp == Reduce::max) {
    return hn::IfThenElse(hn::Eq(a, a), hn::IfThenElse(hn::Gt(a, b), a, b), a);
  } else if constexpr (kOp == Reduce::min) {
    return hn::IfThenElse(hn::Eq(a, a), hn::IfThenElse(hn::Lt(a, b), a, b), a);
  } else {
    return hn::Add(a, b);
  }
}
// Every 128-bit block holds the results of a, b, c and e in that block.
template <Reduce kOp>
HWY_INLINE VF joined_in_blocks(VF a, VF b, VF c, VF e) {
  const DF d;
  const hn::RepartitionToWide<DF> d2;
  const auto ab = hn::BitCast(d2, joined<kOp>(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  const auto ce = hn::BitCast(d2, joined<kOp>(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  return joined<kOp>(hn::BitCast(d, hn::InterleaveLower(d2, ab, ce)), hn::BitCast(d, hn::InterleaveUpper(d2, ab, ce)));
}
template <Reduce kOp, class D>
HWY_INLINE hn::Vec<hn::Full128<float> > joined_blocks(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return joined_blocks<kOp>(half, joined<kOp>(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    (void)d;
    return v;
  }
}

// The last rows are computed as if they were the last of a whole group, so no row's result depends on its place.
template <Reduce kOp>
void medium_rows(const float* x, float* y, std::int64_t rows, std::int64_t n) {
  const DF d;
  const hn::Full128<float> four;
  constexpr bool kExtreme = kOp == Reduce::max || kOp == Reduce::min;
  const std::int64_t lanes = lanes_f32(), rest = n % lanes, whole = n - rest;
  const auto scale = hn::Set(four, static_cast<float>(n));
  for (std::int64_t i = 0; i < rows; i += 4) {
    const std::int64_t last = std::min<std::int64_t>(3, rows - 1 - i);
    const float *const x0 = x + i * n, *const x1 = x0 + std::min<std::int64_t>(1, last) * n;
    const float *const x2 = x0 + std::min<std::int64_t>(2, last) * n, *const x3 = x0 + last * n;
    VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    if constexpr (kExtreme) s0 = hn::LoadU(d, x0), s1 = hn::LoadU(d, x1), s2 = hn::LoadU(d, x2), s3 = hn::LoadU(d, x3);
    const auto add = [&](const auto& load) HWY_ATTR {
      s0 = join<kOp>(s0, load(x0));
      s1 = join<kOp>(s1, load(x1));
      s2 = join<kOp>(s2, load(x2));
      s3 = join<kOp>(s3, load(x3));
    };
    for (std::int64_t j = kExtreme ? lanes : 0; j < whole; j += lanes) {
      add([&](const float* from) HWY_ATTR { return hn::LoadU(d, from + j); });
    }
    if (kExtreme && rest != 0) {  // overlaps what came before
      add([&](const float* from) HWY_ATTR { return hn::LoadU(d, from + n - lanes); });
    } else if (rest != 0) {
      add([&](const float* from) HWY_ATTR { return load_tail(d, from + whole, rest); });
    }
    auto sums = joined_blocks<kOp>(d, joined_in_blocks<kOp>(s0, s1, s2, s3));
    if constexpr (kOp == Reduce::mean) sums = hn::Div(sums, scale);
    if (last == 3) {
      hn::StoreU(sums, four, y + i);
    } else {
      HWY_ALIGN float some[4];
      hn::Store(sums, four, some);
      std::copy_n(some, last + 1, y + i);
    }
  }
}
#endif

void short_rows(Reduce op, const float* x, float* y, std::int64_t rows, std::int64_t n) {
#if HWY_TARGET != HWY_SCALAR
  if (n >= lanes_f32()) {
    switch (op) {
      case Reduce::mean: return medium_rows<Reduce::mean>(x, y, rows, n);
      case Reduce::sum_square: return medium_rows<Reduce::sum_square>(x, y, rows, n);
      case Reduce::sum_abs: return medium_rows<Reduce::sum_abs>(x, y, rows, n);
      case Reduce::max: return medium_rows<Reduce::max>(x, y, rows, n);
      case Reduce::min: return medium_rows<Reduce::min>(x, y, rows, n);
      default: return medium_rows<Reduce::sum>(x, y, rows, n);
    }
  }
#endif
  short_rows_as_columns(x, rows, n, [&](const float* columns, std::int64_t first, std::int64_t count) HWY_ATTR {
    HWY_ALIGN float results[kMaxF32Lanes];
    reduce_columns(op, columns, results, n, lanes_f32(), 0, lanes_f32());
    std::copy_n(results, count, y + first);
  });
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
    VF best = load_floats(x + c, count);
    auto at = hn::Zero(di);
    for (std::int64_t a = 1; a < axis; ++a) {
      const VF v = load_floats(x + a * inner + c, count);
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

}  // namespace

const ReduceKernels& reduce_table() {
  static const ReduceKernels table{reduce,
                                   reduce_columns,
                                   static_cast<int>(lanes_f32()),
                                   static_cast<int>(kMediumVectors * lanes_f32()),
                                   short_rows,
                                   arg_extreme_row,
                                   arg_extreme_columns};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const ReduceKernels&, reduce_kernels, reduce_table)
#endif
