// Vector code shared by softmax, norms and reductions; included once per instruction set.
#if defined(SDX_KERNELS_CPU_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SDX_KERNELS_CPU_ROWS_INL_H_
#undef SDX_KERNELS_CPU_ROWS_INL_H_
#else
#define SDX_KERNELS_CPU_ROWS_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/simd/columns-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {

// Calls body(vector offset, vector, count) over x; the last vector may hold fewer than Lanes elements, followed by zeros.
template <class F>
HWY_INLINE void each(const float* x, std::int64_t n, F&& body) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, hn::LoadU(d, x + i), lanes);
  if (i < n) body(i, load_tail(d, x + i, n - i), n - i);
}

// Keeps the first n lanes, with zeros after them.
HWY_INLINE VF first_lanes(VF v, std::int64_t n) { return hn::IfThenElseZero(hn::FirstN(DF(), static_cast<std::size_t>(n)), v); }

// `lanes` rows of n < lanes elements side by side, element a of row i at out[a * lanes + i]: rows shorter than a vector are
// computed as columns. And the reverse.
HWY_INLINE void rows_to_columns(const float* x, std::int64_t n, float* HWY_RESTRICT out) {
  const DF d;
#if HWY_TARGET != HWY_SCALAR
  // Four columns at a time, the last of which overlap those before: half the time of a gather for each column.
  for (std::int64_t a = 0; n >= 4 && a < n; a += 4) {
    const std::int64_t first = std::min(a, n - 4);
    VF c0, c1, c2, c3;
    four_columns<kMaxF32Lanes>([&](int r) HWY_ATTR { return x + r * n + first; }, c0, c1, c2, c3);
    float* const to = out + first * lanes_f32();
    hn::Store(c0, d, to);
    hn::Store(c1, d, to + lanes_f32());
    hn::Store(c2, d, to + 2 * lanes_f32());
    hn::Store(c3, d, to + 3 * lanes_f32());
  }
  if (n >= 4) return;
#endif
  const hn::RebindToSigned<DF> di;
  const auto at = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<std::int32_t>(n)));
  for (std::int64_t a = 0; a < n; ++a) hn::Store(hn::GatherIndex(d, x + a, at), d, out + a * lanes_f32());
}
HWY_INLINE void columns_to_rows(const float* HWY_RESTRICT x, std::int64_t n, float* out) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const auto at = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<std::int32_t>(n)));
  for (std::int64_t a = 0; a < n; ++a) hn::ScatterIndex(hn::Load(d, x + a * lanes_f32()), d, out + a, at);
}

// Rows of n < lanes elements as columns: body(columns, first, count) for rows [first, first + count) side by side, the last of
// which are followed by zeros. So no row's result depends on its place.
template <class F>
HWY_INLINE void short_rows_as_columns(const float* x, std::int64_t rows, std::int64_t n, F&& body) {
  const std::int64_t lanes = lanes_f32();
  HWY_ALIGN float columns[kMaxF32Lanes * kMaxF32Lanes];
  std::int64_t i = 0;
  for (; i + lanes <= rows; i += lanes) {
    rows_to_columns(x + i * n, n, columns);
    body(columns, i, lanes);
  }
  if (i == rows) return;
  HWY_ALIGN float last[kMaxF32Lanes * kMaxF32Lanes] = {};
  std::copy_n(x + i * n, (rows - i) * n, last);
  rows_to_columns(last, n, columns);
  body(columns, i, rows - i);
}

// Blocks of 4096 elements bound the growth of rounding errors: a float sum of n terms errs by about n / lanes ulp.
inline constexpr std::int64_t kSumBlock = 4096;

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
    // Zeros after the tail would be mapped too (to mean^2, for a variance).
    if (i < e) s1 = hn::Add(s1, first_lanes(map(load_tail(d, x + i, e - i)), e - i));
    total += sum_lanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
  }
  return total;
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

// The largest (smallest) element. If there is a NaN: with kNan a NaN, else anything.
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
  // Overlaps the last vector instead of masking it: the operation is idempotent.
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
    // A sum with a NaN is NaN, and so is inf - inf: checked again below.
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

HWY_INLINE bool is_finite(float v) { return v - v == 0; }

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#endif
