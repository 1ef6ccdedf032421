#include "kernels/cpu/rows/running_sum_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/running_sum_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

RunningSumLane shifted(RunningSumLane lane, std::int64_t by) {
  lane.x += by;
  lane.y += by;
  return lane;
}

void one_lane(const RunningSumLane& lane) {
  double total = 0;
  for (std::int64_t k = 0, at = 0; k < lane.count; ++k, at += lane.step) {
    const double next = total + static_cast<double>(lane.x[at]);
    lane.y[at] = static_cast<float>(lane.exclusive ? total : next);
    total = next;
  }
}

// One after the other, additions wait for each other: four lanes at once take the time of one.
template <bool kExclusive>
void four_lanes(const RunningSumLane& lane, std::int64_t distance) {
  const float *x0 = lane.x, *x1 = x0 + distance, *x2 = x1 + distance, *x3 = x2 + distance;
  float *y0 = lane.y, *y1 = y0 + distance, *y2 = y1 + distance, *y3 = y2 + distance;
  double t0 = 0, t1 = 0, t2 = 0, t3 = 0;
  for (std::int64_t k = 0, at = 0; k < lane.count; ++k, at += lane.step) {
    const double s0 = t0 + static_cast<double>(x0[at]), s1 = t1 + static_cast<double>(x1[at]);
    const double s2 = t2 + static_cast<double>(x2[at]), s3 = t3 + static_cast<double>(x3[at]);
    y0[at] = static_cast<float>(kExclusive ? t0 : s0);
    y1[at] = static_cast<float>(kExclusive ? t1 : s1);
    y2[at] = static_cast<float>(kExclusive ? t2 : s2);
    y3[at] = static_cast<float>(kExclusive ? t3 : s3);
    t0 = s0;
    t1 = s1;
    t2 = s2;
    t3 = s3;
  }
}

void lanes(const RunningSumLane& first, std::int64_t n, std::int64_t distance) {
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const RunningSumLane lane = shifted(first, i * distance);
    lane.exclusive ? four_lanes<true>(lane, distance) : four_lanes<false>(lane, distance);
  }
  for (; i < n; ++i) one_lane(shifted(first, i * distance));
}

// Four vectors of doubles.
template <bool kExclusive>
void four_columns(const RunningSumLane& lane, std::int64_t width) {
  const DD d;
  const DFHalf dh;
  VD t0 = hn::Zero(d), t1 = t0, t2 = t0, t3 = t0;
  const float* x = lane.x;
  float* y = lane.y;
  for (std::int64_t k = 0; k < lane.count; ++k, x += lane.step, y += lane.step) {
    const VD s0 = hn::Add(t0, hn::PromoteTo(d, hn::LoadU(dh, x)));
    const VD s1 = hn::Add(t1, hn::PromoteTo(d, hn::LoadU(dh, x + width)));
    const VD s2 = hn::Add(t2, hn::PromoteTo(d, hn::LoadU(dh, x + 2 * width)));
    const VD s3 = hn::Add(t3, hn::PromoteTo(d, hn::LoadU(dh, x + 3 * width)));
    hn::StoreU(hn::DemoteTo(dh, kExclusive ? t0 : s0), dh, y);
    hn::StoreU(hn::DemoteTo(dh, kExclusive ? t1 : s1), dh, y + width);
    hn::StoreU(hn::DemoteTo(dh, kExclusive ? t2 : s2), dh, y + 2 * width);
    hn::StoreU(hn::DemoteTo(dh, kExclusive ? t3 : s3), dh, y + 3 * width);
    t0 = s0;
    t1 = s1;
    t2 = s2;
    t3 = s3;
  }
}

void columns(const RunningSumLane& first, std::int64_t n) {
  const auto width = static_cast<std::int64_t>(hn::Lanes(DD()));
  std::int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    const RunningSumLane lane = shifted(first, i);
    lane.exclusive ? four_columns<true>(lane, width) : four_columns<false>(lane, width);
  }
  lanes(shifted(first, i), n - i, 1);
}

}  // namespace

const RunningSumKernels& running_sum_table() {
  static const RunningSumKernels table{lanes, columns};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const RunningSumKernels&, running_sum_kernels, running_sum_table)
#endif
