#include "kernels/cpu/conv/training/conv_winograd_grad_simd.h"

#include "kernels/cpu/simd/repeat.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/training/conv_winograd_grad_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/conv/blocked/blocked-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// The points of conv/winograd/winograd-inl.h: 0, +-1/sqrt 2, +-sqrt 2 and infinity. These are the transposes of its backward()
// and of its expand_row().
constexpr float kRoot = 0.70710678118654752F;

struct Six {
  VF v0, v1, v2, v3, v4, v5;
};
HWY_INLINE Six spread(VF y0, VF y1, VF y2, VF y3) {
  const DF d;
  const VF half = hn::Set(d, 0.5F), two = hn::Set(d, 2.0F);
  const VF even1 = hn::MulAdd(half, y2, y0), odd1 = hn::Mul(hn::Set(d, kRoot), hn::MulAdd(half, y3, y1));
  const VF even2 = hn::MulAdd(two, y2, y0), odd2 = hn::Mul(hn::Set(d, 2 * kRoot), hn::MulAdd(two, y3, y1));
  return {y0, hn::Add(even1, odd1), hn::Sub(even1, odd1), hn::Add(even2, odd2), hn::Sub(even2, odd2), y3};
}

struct Three {
  VF v0, v1, v2;
};
HWY_INLINE Three gather(const Six& u) {
  const DF d;
  const VF sum1 = hn::Add(u.v1, u.v2), sum2 = hn::Add(u.v3, u.v4);
  const VF odd1 = hn::Sub(u.v2, u.v1), odd2 = hn::Sub(u.v3, u.v4);
  const VF third = hn::Set(d, 1.0F / 3);
  return {hn::MulAdd(hn::Set(d, 1.0F / 6), sum2, hn::NegMulAdd(hn::Set(d, 2.0F / 3), sum1, u.v0)),
          hn::MulAdd(hn::Set(d, 0.47140452079103168F), odd1, hn::Mul(hn::Set(d, 0.23570226039551584F), odd2)),
          hn::MulAdd(third, hn::Sub(sum2, sum1), u.v5)};
}

HWY_INLINE void put(const Six& s, float* to, std::int64_t step) {
  const DF d;
  hn::StoreU(s.v0, d, to);
  hn::StoreU(s.v1, d, to + step);
  hn::StoreU(s.v2, d, to + 2 * step);
  hn::StoreU(s.v3, d, to + 3 * step);
  hn::StoreU(s.v4, d, to + 4 * step);
  hn::StoreU(s.v5, d, to + 5 * step);
}
HWY_INLINE Six six_at(const float* from, std::int64_t step) {
  const DF d;
  return {hn::LoadU(d, from),
          hn::LoadU(d, from + step),
          hn::LoadU(d, from + 2 * step),
          hn::LoadU(d, from + 3 * step),
          hn::LoadU(d, from + 4 * step),
          hn::LoadU(d, from + 5 * step)};
}

void tile(const WinogradGradTile& t) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  HWY_ALIGN float half[6 * 4 * kMaxF32Lanes];  // A dy, [row][column]
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    for (std::int64_t c = 0; c < 4; ++c) {
      const auto at = [&](std::int64_t r) HWY_ATTR {
        return r < t.rows && c < t.columns ? hn::LoadU(d, t.dy + r * t.row_step + c * kBlock + v) : hn::Zero(d);
      };
      put(spread(at(0), at(1), at(2), at(3)), half + c * lanes, 4 * lanes);
    }
    for (std::int64_t r = 0; r < 6; ++r) {
      const float* const row = half + r * 4 * lanes;
      put(spread(hn::Load(d, row), hn::Load(d, row + lanes), hn::Load(d, row + 2 * lanes), hn::Load(d, row + 3 * lanes)),
          t.m + r * 6 * t.e_step + v, t.e_step);
    }
  }
}

// Rows of sums at a time: named accumulators, since GCC 12 spills arrays of vectors.
#if SDX_512_BITS
constexpr int kRows = 8;
#define SDX_ROWS(X) SDX_REPEAT_6(X) X(6) X(7)
#else
constexpr int kRows = 4;
#define SDX_ROWS(X) SDX_REPEAT_4(X)
#endif

void some_products(const float* HWY_RESTRICT v, const float* HWY_RESTRICT m, std::int64_t tiles, bool add, float* sums) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
#define SDX_BEGIN(I)                                                \
  VF a##I = add ? hn::LoadU(d, sums + 2 * I * lanes) : hn::Zero(d); \
  VF b##I = add ? hn::LoadU(d, sums + (2 * I + 1) * lanes) : hn::Zero(d);
  SDX_ROWS(SDX_BEGIN)
#undef SDX_BEGIN
  for (std::int64_t t = 0; t < tiles; ++t, v += kBlock, m += 2 * lanes) {
    const VF m0 = hn::LoadU(d, m), m1 = hn::LoadU(d, m + lanes);
#define SDX_STEP(I)                     \
  {                                     \
    const VF value = hn::Set(d, v[I]);  \
    a##I = hn::MulAdd(value, m0, a##I); \
    b##I = hn::MulAdd(value, m1, b##I); \
  }
    SDX_ROWS(SDX_STEP)
#undef SDX_STEP
  }
#define SDX_END(I)                           \
  hn::StoreU(a##I, d, sums + 2 * I * lanes); \
  hn::StoreU(b##I, d, sums + (2 * I + 1) * lanes);
  SDX_ROWS(SDX_END)
#undef SDX_END
}

void products(const float* v, const float* m, std::int64_t tiles, bool add, float* sums) {
  static_assert(kBlock % kRows == 0);
  for (std::int64_t i = 0; i < kBlock; i += kRows) some_products(v + i, m, tiles, add, sums + i * 2 * lanes_f32());
}
#undef SDX_ROWS

void taps(const float* sums, std::int64_t inputs, std::int64_t outputs, float* dw, std::int64_t step) {
  const DF d;
  const std::int64_t lanes = lanes_f32(), width = 2 * lanes, element = kBlock * width;
  HWY_ALIGN float half[3 * 6 * kMaxF32Lanes];  // G^T u, [row][column]
  HWY_ALIGN float result[9 * kMaxF32Lanes];
  for (std::int64_t i = 0; i < inputs; ++i) {
    for (std::int64_t j = 0; j < outputs; j += lanes) {
      const float* const u = sums + i * width + j;
      for (std::int64_t c = 0; c < 6; ++c) {
        const Three column = gather(six_at(u + c * element, 6 * element));
        hn::Store(column.v0, d, half + c * lanes);
        hn::Store(column.v1, d, half + (6 + c) * lanes);
        hn::Store(column.v2, d, half + (12 + c) * lanes);
      }
      for (std::int64_t r = 0; r < 3; ++r) {
        const Three row = gather(six_at(half + r * 6 * lanes, lanes));
        hn::Store(row.v0, d, result + 3 * r * lanes);
        hn::Store(row.v1, d, result + (3 * r + 1) * lanes);
        hn::Store(row.v2, d, result + (3 * r + 2) * lanes);
      }
      const std::int64_t some = outputs - j < lanes ? outputs - j : lanes;
      for (std::int64_t n = 0; n < some; ++n) {
        float* const to = dw + (j + n) * step + i * 9;
        for (std::int64_t k = 0; k < 9; ++k) to[k] = result[k * lanes + n];
      }
    }
  }
}

}  // namespace

const WinogradGradKernels& winograd_grad_table() {
  static const WinogradGradKernels table{static_cast<int>(2 * lanes_f32()), tile, products, taps};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const WinogradGradKernels&, winograd_grad_kernels, winograd_grad_table)
#endif
