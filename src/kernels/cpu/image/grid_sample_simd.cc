#include "kernels/cpu/image/grid_sample_simd.h"

#include <algorithm>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/image/grid_sample_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// Two taps of an axis, [first, first + 1], both inside.
struct Pair {
  VD first, left, right;
};

HWY_INLINE Pair pair_of(VD normalized, std::int64_t extent, bool align, bool border) {
  const DD d;
  const auto set = [](double v) { return hn::Set(DD(), v); };
  const VD one = set(1), n = set(static_cast<double>(extent)), last = set(static_cast<double>(extent - 1));
  VD v = hn::Add(normalized, one);
  v = align ? hn::Mul(hn::Mul(v, set(0.5)), last) : hn::Mul(hn::Sub(hn::Mul(v, n), one), set(0.5));
  // Infinity and NaN are outside. Further than four away nothing changes, and conversions to integers stay in range.
  v = hn::IfThenElse(hn::Le(hn::Abs(v), set(1e300)), v, set(-2));
  v = border ? hn::Min(hn::Max(v, hn::Zero(d)), last) : hn::Min(hn::Max(v, set(-4)), hn::Add(n, set(4)));
  const VD base = hn::Floor(v), f = hn::Sub(v, base), g = hn::Sub(one, f);
  const VD first = hn::Min(hn::Max(base, hn::Zero(d)), hn::Sub(last, one)), ahead = hn::Sub(base, first);
  const auto inside = hn::Eq(ahead, hn::Zero(d));
  return {first, hn::IfThenElse(inside, g, hn::IfThenElseZero(hn::Eq(ahead, set(-1)), f)),
          hn::IfThenElse(inside, f, hn::IfThenElseZero(hn::Eq(ahead, one), g))};
}

HWY_INLINE void store_weights(VD row, const Pair& across, float* to) {
  const DFHalf dh;
  hn::StoreInterleaved2(hn::DemoteTo(dh, hn::Mul(row, across.left)), hn::DemoteTo(dh, hn::Mul(row, across.right)), dh, to);
}

void prepare(const GridSample& s, const float* grid, std::int64_t count, SampleTaps& taps) {
  const DD d;
  const DFHalf dh;
  const std::int64_t lanes = lanes_f32(), step = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = (count + lanes - 1) / lanes * lanes;
  HWY_ALIGN float padded[2 * kSampleBlock];
  std::copy_n(grid, 2 * count, padded);
  std::fill(padded + 2 * count, padded + 2 * whole, 0.0F);
  HWY_ALIGN double places[kSampleBlock];
  const VD width = hn::Set(d, static_cast<double>(s.width));
  for (std::int64_t p = 0; p < whole; p += step) {
    VFHalf gx, gy;
    hn::LoadInterleaved2(dh, padded + 2 * p, gx, gy);
    const Pair across = pair_of(hn::PromoteTo(d, gx), s.width, s.align_corners, s.border);
    const Pair down = pair_of(hn::PromoteTo(d, gy), s.height, s.align_corners, s.border);
    hn::Store(hn::MulAdd(down.first, width, across.first), d, places + p);
    store_weights(down.left, across, taps.upper_weights + 2 * p);
    store_weights(down.right, across, taps.lower_weights + 2 * p);
  }
  for (std::int64_t p = 0; p < whole; ++p) taps.upper[p] = static_cast<std::int64_t>(places[p]) * 4;
}

#if HWY_TARGET <= HWY_AVX2
// The pairs of as many positions as a vector has doubles, times their weights.
HWY_INLINE VF products(const float* plane, std::int64_t row_bytes, const SampleTaps& taps, std::int64_t p) {
  const DF d;
  const hn::RebindToSigned<DD> di;
  const auto at = hn::Load(di, taps.upper + p);
  const auto* from = reinterpret_cast<const double*>(plane);
  const VF upper = hn::BitCast(d, hn::GatherOffset(DD(), from, at));
  const VF lower = hn::BitCast(d, hn::GatherOffset(DD(), from, hn::Add(at, hn::Set(di, row_bytes))));
  return hn::MulAdd(lower, hn::Load(d, taps.lower_weights + 2 * p), hn::Mul(upper, hn::Load(d, taps.upper_weights + 2 * p)));
}

bool sample(const float* plane, std::int64_t width, const SampleTaps& taps, std::int64_t count, float* y) {
  const DF d;
  const std::int64_t lanes = lanes_f32(), row_bytes = width * 4;
  auto numbers = hn::Eq(hn::Zero(d), hn::Zero(d));
  for (std::int64_t p = 0; p < count; p += lanes) {
    const VF a = products(plane, row_bytes, taps, p), b = products(plane, row_bytes, taps, p + lanes / 2);
    const VF sum = hn::Add(hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a));
    numbers = hn::And(numbers, hn::Eq(sum, sum));
    store_floats(sum, y + p, count - p);
  }
  return hn::AllTrue(d, numbers);
}
#else
bool sample(const float* plane, std::int64_t width, const SampleTaps& taps, std::int64_t count, float* y) {
  bool numbers = true;
  for (std::int64_t p = 0; p < count; ++p) {
    const float *upper = plane + taps.upper[p] / 4, *lower = upper + width;
    const float *w0 = taps.upper_weights + 2 * p, *w1 = taps.lower_weights + 2 * p;
    y[p] = (w0[0] * upper[0] + w1[0] * lower[0]) + (w0[1] * upper[1] + w1[1] * lower[1]);
    numbers &= y[p] == y[p];
  }
  return numbers;
}
#endif

}  // namespace

const GridSampleKernels& grid_sample_table() {
  static const GridSampleKernels table{prepare, sample};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const GridSampleKernels&, grid_sample_kernels, grid_sample_table)
#endif
