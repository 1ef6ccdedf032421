#include "kernels/cpu/gemm/gemm_strassen_simd.h"

#include <limits>

#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/simd/repeat.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/gemm_strassen_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

constexpr int kMr = kTileRows;

// One step's part of the right operand. The first tile of a panel computes the sum and stores it for the others, on ports and in
// slots that the multiplications leave free.
template <StrassenRight kRight>
struct Right {
  const float* HWY_RESTRICT b;
  const float* HWY_RESTRICT b2;
  float* HWY_RESTRICT made;
  std::int64_t lanes;

  HWY_INLINE VF at(std::int64_t offset) const {
    const DF d;
    const VF v = hn::LoadU(d, b + offset);
    if constexpr (kRight == StrassenRight::one) {
      return v;
    } else {
      const VF w = hn::LoadU(d, b2 + offset);
      const VF r = kRight == StrassenRight::sum ? hn::Add(v, w) : hn::Sub(v, w);
      hn::StoreU(r, d, made + offset);
      return r;
    }
  }
  HWY_INLINE void advance() {
    b += 2 * lanes;
    if constexpr (kRight != StrassenRight::one) {
      b2 += 2 * lanes;
      made += 2 * lanes;
    }
  }
};

#define SDX_BEGIN(I)               \
  VF c##I = hn::Zero(d);           \
  VF e##I = hn::Zero(d);           \
  if constexpr (M > I) {           \
    const VF v = hn::Set(d, a[I]); \
    c##I = hn::Mul(v, b0);         \
    e##I = hn::Mul(v, b1);         \
  }                                \
  (void)c##I;                      \
  (void)e##I;
#define SDX_STEP(I)                 \
  if constexpr (M > I) {            \
    const VF v = hn::Set(d, a[I]);  \
    c##I = hn::MulAdd(v, b0, c##I); \
    e##I = hn::MulAdd(v, b1, e##I); \
  }
#define SDX_KEEP(I)                                 \
  if constexpr (M > I) {                            \
    hn::Store(c##I, d, sums + 2 * I * lanes);       \
    hn::Store(e##I, d, sums + (2 * I + 1) * lanes); \
  }
#define SDX_ADD(I)                                                 \
  if constexpr (M > I) {                                           \
    c##I = hn::Add(c##I, hn::Load(d, sums + 2 * I * lanes));       \
    e##I = hn::Add(e##I, hn::Load(d, sums + (2 * I + 1) * lanes)); \
  }
#define SDX_PUT_FIRST(I)                                         \
  if constexpr (M > I) {                                         \
    hn::Store(hn::Mul(sign, c##I), d, to + 2 * I * lanes);       \
    hn::Store(hn::Mul(sign, e##I), d, to + (2 * I + 1) * lanes); \
  }
#define SDX_PUT(I)                                                                                         \
  if constexpr (M > I) {                                                                                   \
    hn::Store(hn::MulAdd(sign, c##I, hn::Load(d, to + 2 * I * lanes)), d, to + 2 * I * lanes);             \
    hn::Store(hn::MulAdd(sign, e##I, hn::Load(d, to + (2 * I + 1) * lanes)), d, to + (2 * I + 1) * lanes); \
  }

// Computes the tile's sums, M rows of 2 lanes, and adds them to its targets from registers; `sums` holds them between pieces, and
// in the end for targets in C. Each piece begins with a multiplication, so it does not wait for the end of the previous piece.
template <int M, StrassenRight kRight>
HWY_NOINLINE void product(const StrassenTile& t, float* HWY_RESTRICT sums) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const float* HWY_RESTRICT a = t.a;
  float* made = t.made;
  const char* ahead = t.ahead;
  const std::int64_t ahead_step = t.ahead_step;
  for (std::int64_t piece = 0; piece < t.pieces; ++piece) {
    Right<kRight> right{t.b[piece], t.b2[piece], made, lanes};
    std::int64_t k = t.k[piece];
    if constexpr (kRight != StrassenRight::one) made += k * 2 * lanes;
    VF b0 = right.at(0), b1 = right.at(lanes);
    SDX_REPEAT_14(SDX_BEGIN)
    a += M;
    right.advance();
    for (--k; k >= 2; k -= 2) {
      __builtin_prefetch(a + 1024);
      __builtin_prefetch(ahead, 0, 2);
      ahead += ahead_step;
      b0 = right.at(0), b1 = right.at(lanes);
      SDX_REPEAT_14(SDX_STEP)
      a += M;
      right.advance();
      b0 = right.at(0), b1 = right.at(lanes);
      SDX_REPEAT_14(SDX_STEP)
      a += M;
      right.advance();
    }
    if (k > 0) {
      b0 = right.at(0), b1 = right.at(lanes);
      SDX_REPEAT_14(SDX_STEP)
      a += M;
    }
    if (piece > 0) {
      SDX_REPEAT_14(SDX_ADD)
    }
    if (piece + 1 < t.pieces) {
      SDX_REPEAT_14(SDX_KEEP)
      continue;
    }
    for (int i = 0; i < t.targets; ++i) {
      const StrassenTarget& o = t.to[i];
      const VF sign = hn::Set(d, o.sign);
      float* HWY_RESTRICT to = o.sums;
      if (o.c != nullptr) {
        SDX_REPEAT_14(SDX_KEEP)
      } else if (o.accumulate) {
        SDX_REPEAT_14(SDX_PUT)
      } else {
        SDX_REPEAT_14(SDX_PUT_FIRST)
      }
    }
  }
}
#undef SDX_PUT
#undef SDX_PUT_FIRST
#undef SDX_ADD
#undef SDX_KEEP
#undef SDX_STEP
#undef SDX_BEGIN

void finish(const StrassenTile& t, const StrassenTarget& o, const float* HWY_RESTRICT product) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const float inf = std::numeric_limits<float>::infinity();
  const VF sign = hn::Set(d, o.sign);
  const bool is_clip = t.act.op == Unary::clip;
  const VF lo = hn::Set(d, t.act.op == Unary::relu ? 0.0F : (is_clip ? t.act.a : -inf));
  const VF hi = hn::Set(d, is_clip ? t.act.b : inf);
  const VF bias0 = o.bias != nullptr ? hn::LoadU(d, o.bias) : hn::Zero(d);
  const VF bias1 = o.bias != nullptr ? hn::LoadU(d, o.bias + lanes) : hn::Zero(d);
  for (std::int64_t i = 0; i < o.rows; ++i) {
    const std::int64_t at = 2 * i * lanes;
    VF v0 = hn::Add(hn::Mul(sign, hn::Load(d, product + at)), hn::Load(d, o.sums + at));
    VF v1 = hn::Add(hn::Mul(sign, hn::Load(d, product + at + lanes)), hn::Load(d, o.sums + at + lanes));
    if (o.residual != nullptr) {
      v0 = hn::Add(v0, hn::LoadU(d, o.residual + i * t.ld_residual));
      v1 = hn::Add(v1, hn::LoadU(d, o.residual + i * t.ld_residual + lanes));
    }
    hn::StoreU(clip(hn::Add(v0, bias0), lo, hi), d, o.c + i * t.ldc);
    hn::StoreU(clip(hn::Add(v1, bias1), lo, hi), d, o.c + i * t.ldc + lanes);
  }
  const Unary op = t.act.op;
  if (o.rows <= 0 || op == Unary::none || op == Unary::relu || op == Unary::clip) return;
  elementwise_kernels().unary_rows(t.act, o.c, t.ldc, o.rows, 2 * lanes);
}

template <StrassenRight kRight>
void products(const StrassenTile& t, float* sums) {
  switch (t.rows) {
#define SDX_CASE(I)                           \
  case I + 1:                                 \
    if constexpr (I < kMr) {                  \
      constexpr int kM = I < kMr ? I + 1 : 1; \
      product<kM, kRight>(t, sums);           \
    }                                         \
    break;
    SDX_REPEAT_14(SDX_CASE)
#undef SDX_CASE
    default: return;
  }
}

void tile(const StrassenTile& t) {
  HWY_ALIGN float sums[kMr * 2 * kMaxF32Lanes];
  switch (t.right) {
    case StrassenRight::one: products<StrassenRight::one>(t, sums); break;
    case StrassenRight::sum: products<StrassenRight::sum>(t, sums); break;
    case StrassenRight::difference: products<StrassenRight::difference>(t, sums); break;
  }
  for (int i = 0; i < t.targets; ++i) {
    if (t.to[i].c != nullptr) finish(t, t.to[i], sums);
  }
}

void sums(const float* const quarters[4], std::int64_t count, float* const out[5]) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const float *HWY_RESTRICT q11 = quarters[0], *HWY_RESTRICT q12 = quarters[1];
  const float *HWY_RESTRICT q21 = quarters[2], *HWY_RESTRICT q22 = quarters[3];
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const VF a = hn::LoadU(d, q11 + i), b = hn::LoadU(d, q12 + i), c = hn::LoadU(d, q21 + i), e = hn::LoadU(d, q22 + i);
    hn::StoreU(hn::Add(a, e), d, out[0] + i);
    hn::StoreU(hn::Add(a, b), d, out[1] + i);
    hn::StoreU(hn::Add(c, e), d, out[2] + i);
    hn::StoreU(hn::Sub(c, a), d, out[3] + i);
    hn::StoreU(hn::Sub(b, e), d, out[4] + i);
  }
  for (; i < count; ++i) {
    out[0][i] = q11[i] + q22[i];
    out[1][i] = q11[i] + q12[i];
    out[2][i] = q21[i] + q22[i];
    out[3][i] = q21[i] - q11[i];
    out[4][i] = q12[i] - q22[i];
  }
}

float squares(const float* x, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const VF x0 = hn::LoadU(d, x + i), x1 = hn::LoadU(d, x + i + lanes);
    const VF x2 = hn::LoadU(d, x + i + 2 * lanes), x3 = hn::LoadU(d, x + i + 3 * lanes);
    s0 = hn::MulAdd(x0, x0, s0);
    s1 = hn::MulAdd(x1, x1, s1);
    s2 = hn::MulAdd(x2, x2, s2);
    s3 = hn::MulAdd(x3, x3, s3);
  }
  for (; i + lanes <= n; i += lanes) {
    const VF v = hn::LoadU(d, x + i);
    s0 = hn::MulAdd(v, v, s0);
  }
  float rest = 0.0F;
  for (; i < n; ++i) rest += x[i] * x[i];
  return sum_lanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))) + rest;
}

void column_squares(const float* panel, std::int64_t k, float* out) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  VF s0 = hn::LoadU(d, out), s1 = hn::LoadU(d, out + lanes);
  for (std::int64_t i = 0; i < k; ++i) {
    const VF v0 = hn::LoadU(d, panel + 2 * i * lanes), v1 = hn::LoadU(d, panel + (2 * i + 1) * lanes);
    s0 = hn::MulAdd(v0, v0, s0);
    s1 = hn::MulAdd(v1, v1, s1);
  }
  hn::StoreU(s0, d, out);
  hn::StoreU(s1, d, out + lanes);
}

}  // namespace

const StrassenKernels& strassen_table() {
  static const StrassenKernels table{tile, sums, squares, column_squares};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const StrassenKernels&, strassen_kernels, strassen_table)
#endif
