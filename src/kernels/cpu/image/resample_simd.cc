#include "kernels/cpu/image/resample_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/image/resample_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

using DBytes = hn::Rebind<std::uint8_t, DD>;  // as many bytes as a vector has doubles

void down_f32(const float* rows, std::int64_t stride, const float* weights, std::int64_t count, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const float* p = rows + i;
    VF w = hn::Set(d, weights[0]);
    VF s0 = hn::Mul(w, hn::LoadU(d, p)), s1 = hn::Mul(w, hn::LoadU(d, p + lanes));
    for (std::int64_t k = 1; k < count; ++k) {
      p += stride;
      w = hn::Set(d, weights[k]);
      s0 = hn::MulAdd(w, hn::LoadU(d, p), s0);
      s1 = hn::MulAdd(w, hn::LoadU(d, p + lanes), s1);
    }
    hn::StoreU(s0, d, y + i);
    hn::StoreU(s1, d, y + i + lanes);
  }
  for (; i < n; i += lanes) {
    const float* p = rows + i;
    VF s = hn::Mul(hn::Set(d, weights[0]), load_floats(p, n - i));
    for (std::int64_t k = 1; k < count; ++k) s = hn::MulAdd(hn::Set(d, weights[k]), load_floats(p + k * stride, n - i), s);
    store_floats(s, y + i, n - i);
  }
}

HWY_INLINE VD doubles_of(const std::uint8_t* p) {
  const DD d;
  const hn::Rebind<std::int32_t, DD> di;
  return hn::PromoteTo(d, hn::PromoteTo(di, hn::LoadU(DBytes(), p)));
}

void down_u8(const std::uint8_t* rows, std::int64_t stride, const double* weights, std::int64_t count, double* y,
             std::int64_t n) {
  const DD d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const std::uint8_t* p = rows + i;
    VD s0 = hn::Zero(d), s1 = s0;
    for (std::int64_t k = 0; k < count; ++k, p += stride) {
      const VD w = hn::Set(d, weights[k]);
      s0 = hn::MulAdd(w, doubles_of(p), s0);
      s1 = hn::MulAdd(w, doubles_of(p + lanes), s1);
    }
    hn::StoreU(s0, d, y + i);
    hn::StoreU(s1, d, y + i + lanes);
  }
  for (; i < n; ++i) {
    double s = 0;
    for (std::int64_t k = 0; k < count; ++k) s += weights[k] * static_cast<double>(rows[k * stride + i]);
    y[i] = s;
  }
}

// Sums of `count` neighbours, 0: any number. In two parts: additions wait for each other.
template <int kCount, class W>
HWY_INLINE W weighed(const W* p, const W* w, std::int64_t count) {
  if constexpr (kCount == 1) return w[0] * p[0];
  if constexpr (kCount == 2) return w[0] * p[0] + w[1] * p[1];
  if constexpr (kCount == 4) return (w[0] * p[0] + w[2] * p[2]) + (w[1] * p[1] + w[3] * p[3]);
  W even = 0, odd = 0;
  std::int64_t k = 0;
  for (; k + 2 <= count; k += 2) {
    even += w[k] * p[k];
    odd += w[k + 1] * p[k + 1];
  }
  if (k < count) even += w[k] * p[k];
  return even + odd;
}

HWY_INLINE void put(float v, float* to) { *to = v; }
HWY_INLINE void put(double v, std::uint8_t* to) {
  const double bounded = v < 0 ? 0 : (v > 255 ? 255 : v);
  *to = static_cast<std::uint8_t>(static_cast<std::int32_t>(bounded + 1e-9));
}

template <int kCount, class W, class T>
void across_count(const W* row, const AxisWeights<W>& c, T* y) {
  const W* w = c.weights;
  for (std::int64_t i = 0; i < c.out; ++i, w += c.count) put(weighed<kCount>(row + c.first[i], w, c.count), y + i);
}

template <class W, class T>
void across(const W* row, const AxisWeights<W>& columns, T* y) {
  switch (columns.count) {
    case 1: return across_count<1>(row, columns, y);
    case 2: return across_count<2>(row, columns, y);
    case 4: return across_count<4>(row, columns, y);
    default: return across_count<0>(row, columns, y);
  }
}

}  // namespace

const ResampleKernels& resample_table() {
  static const ResampleKernels table{down_f32, down_u8, across<float, float>, across<double, std::uint8_t>};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const ResampleKernels&, resample_kernels, resample_table)
#endif
