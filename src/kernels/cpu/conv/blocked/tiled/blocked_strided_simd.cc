#include "kernels/cpu/conv/blocked/tiled/blocked_strided_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/blocked/tiled/blocked_strided_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/conv/blocked/blocked-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

constexpr int kPoints = 5;

// Transforms the even inputs d0 .. dV, `step` apart, for V outputs. For V < 4 points are left out, for which Toom and Cook's
// weights would differ: the difference is applied here, so that the weights for all five can be used.
template <int V>
HWY_INLINE void forward(const float* x, std::int64_t step, float* o, std::int64_t out_step) {
  const DF f;
  const auto at = [&](int i) HWY_ATTR { return hn::LoadU(f, x + i * step); };
  const auto to = [&](int i, VF v) HWY_ATTR { hn::StoreU(v, f, o + i * out_step); };
  const VF quarter = hn::Set(f, 0.25F), half = hn::Set(f, 0.5F);
  const VF d0 = at(0), d1 = at(1);
  if constexpr (V == 1) {
    to(0, hn::Mul(hn::Set(f, 1.5F), d0));
    to(4, hn::Sub(d1, d0));
  } else if constexpr (V == 2) {
    to(0, hn::Mul(hn::Set(f, 0.75F), hn::Add(d1, d0)));
    to(1, hn::Mul(hn::Set(f, 0.75F), hn::Sub(d1, d0)));
    to(4, hn::Sub(at(2), d0));
  } else if constexpr (V == 3) {
    const VF d2 = at(2), d3 = at(3), even = hn::Sub(d2, d0);
    to(0, hn::Mul(hn::Set(f, 1.5F), hn::MulAdd(half, hn::Sub(d1, d0), d2)));
    to(1, hn::Mul(half, hn::NegMulAdd(half, d0, hn::MulSub(hn::Set(f, 1.5F), d1, d2))));
    to(2, even);
    to(4, hn::NegMulAdd(half, even, hn::Sub(d3, d1)));
  } else {
    const VF d2 = at(2), d3 = at(3), d4 = at(4);
    const VF even1 = hn::NegMulAdd(quarter, d0, d2), odd1 = hn::NegMulAdd(quarter, d1, d3);
    const VF even2 = hn::Sub(d2, d0), odd2 = hn::Sub(d3, d1);
    to(0, hn::Add(odd1, even1));
    to(1, hn::Sub(odd1, even1));
    to(2, hn::MulAdd(half, even2, odd2));
    to(3, hn::NegMulAdd(half, even2, odd2));
    to(4, hn::Sub(hn::NegMulAdd(quarter, even2, d4), d2));
  }
}

template <int V>
HWY_INLINE void backward(const VF (&m)[kPoints], VF (&o)[V]) {
  const DF f;
  const VF half = hn::Set(f, 0.5F), quarter = hn::Set(f, 0.25F);
  if constexpr (V == 1) {
    o[0] = hn::Add(m[0], m[4]);
  } else {
    const VF sum = hn::Add(m[0], m[1]), difference = hn::Sub(m[0], m[1]);
    if constexpr (V == 2) {
      o[0] = sum;
      o[1] = hn::Add(difference, m[4]);
    } else if constexpr (V == 3) {
      o[0] = hn::Add(sum, m[2]);
      o[1] = hn::MulAdd(half, m[2], difference);
      o[2] = hn::MulAdd(quarter, m[2], hn::Add(sum, m[4]));
    } else {
      const VF sum2 = hn::Add(m[2], m[3]), difference2 = hn::Sub(m[2], m[3]);
      o[0] = hn::Add(sum, sum2);
      o[1] = hn::MulAdd(half, difference2, difference);
      o[2] = hn::MulAdd(quarter, sum2, sum);
      o[3] = hn::MulAdd(hn::Set(f, 0.125F), difference2, hn::Add(difference, m[4]));
    }
  }
}

// backward() of the points at p, `step` apart.
template <int V>
HWY_INLINE void backward_at(const float* p, std::int64_t step, VF (&o)[V]) {
  const DF f;
  VF m[kPoints];
  for (int i = 0; i < V; ++i) m[i] = hn::LoadU(f, p + i * step);
  for (int i = V; i < 4; ++i) m[i] = hn::Zero(f);
  m[4] = hn::LoadU(f, p + 4 * step);
  backward<V>(m, o);
}

constexpr int kSide = 9;  // of a tile's input

// Copies the tile's input with zeros around it, kSide pixels a row.
void copy_tile(const StridedTile& t, float* to) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t r = 0; r < 2 * t.rows + 1; ++r) {
    for (std::int64_t c = 0; c < 2 * t.columns + 1; ++c) {
      const bool inside = r >= t.row0 && r < t.row1 && c >= t.column0 && c < t.column1;
      for (std::int64_t v = 0; v < kBlock; v += lanes) {
        const VF value = inside ? hn::LoadU(d, t.x + r * t.row_step + c * kBlock + v) : hn::Zero(d);
        hn::StoreU(value, d, to + (r * kSide + c) * kBlock + v);
      }
    }
  }
}

void input(const StridedTile& t) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  HWY_ALIGN float edge[kSide * kSide * kBlock];
  HWY_ALIGN float half[kPoints * kPoints * kMaxF32Lanes];  // even columns, transformed along rows: [point][column]
  const float* x = t.x;
  std::int64_t row = t.row_step;
  if (t.row0 > 0 || t.row1 < 2 * t.rows + 1 || t.column0 > 0 || t.column1 < 2 * t.columns + 1) {
    copy_tile(t, edge);
    x = edge;
    row = kSide * kBlock;
  }
  for (std::int64_t v = 0; v < kBlock; v += lanes, x += lanes) {
    with_outputs<4, false>(t.rows, [&](auto rows) HWY_ATTR {
      for (std::int64_t c = 0; c <= t.columns; ++c) {
        forward<rows>(x + 2 * c * kBlock, 2 * row, half + c * lanes, kPoints * lanes);
      }
      for (std::int64_t c = 0; c < t.columns; ++c) {
        forward<rows>(x + (2 * c + 1) * kBlock, 2 * row, t.part[1] + c * kBlock + v, t.step[1]);
      }
    });
    with_outputs<4, false>(t.columns, [&](auto columns) HWY_ATTR {
      for (int r = 0; r < kPoints; ++r) {
        if (r >= t.rows && r < 4) continue;  // a point that the tile lacks
        forward<columns>(half + r * kPoints * lanes, lanes, t.part[0] + r * kPoints * t.step[0] + v, t.step[0]);
      }
      for (std::int64_t r = 0; r < t.rows; ++r) {
        const float* const odd = x + (2 * r + 1) * row;
        forward<columns>(odd, 2 * kBlock, t.part[2] + r * kBlock + v, t.step[2]);
        for (int c = 0; c < columns; ++c) {
          hn::StoreU(hn::LoadU(d, odd + (2 * c + 1) * kBlock), d, t.part[3] + (r * columns + c) * kBlock + v);
        }
      }
    });
  }
}

void output(const StridedTile& t) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF lo = hn::Set(d, t.lo), hi = hn::Set(d, t.hi);
  HWY_ALIGN float half[kPoints * 4 * kMaxF32Lanes];  // [row point][column of outputs]
  HWY_ALIGN float sums[4 * 4 * kMaxF32Lanes];
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    with_outputs<4, false>(t.columns, [&](auto columns) HWY_ATTR {
      for (int r = 0; r < kPoints; ++r) {
        if (r >= t.rows && r < 4) continue;
        VF y[columns];
        backward_at<columns>(t.part[0] + r * kPoints * t.step[0] + v, t.step[0], y);
        for (int c = 0; c < columns; ++c) {
          const VF direct = hn::LoadU(d, t.part[1] + r * t.step[1] + c * kBlock + v);
          hn::Store(hn::Add(y[c], direct), d, half + (r * 4 + c) * lanes);
        }
      }
    });
    with_outputs<4, false>(t.rows, [&](auto rows) HWY_ATTR {
      for (std::int64_t c = 0; c < t.columns; ++c) {
        VF y[rows];
        backward_at<rows>(half + c * lanes, 4 * lanes, y);
        for (int r = 0; r < rows; ++r) hn::Store(y[r], d, sums + (r * 4 + c) * lanes);
      }
    });
    const VF bias = hn::LoadU(d, t.bias + v);
    with_outputs<4, false>(t.columns, [&](auto columns) HWY_ATTR {
      for (std::int64_t r = 0; r < t.rows; ++r) {
        VF y[columns];
        backward_at<columns>(t.part[2] + r * kBlock + v, t.step[2], y);
        const std::int64_t at = r * t.y_step + v;
        for (int c = 0; c < columns; ++c) {
          const VF direct = hn::LoadU(d, t.part[3] + (r * columns + c) * kBlock + v);
          VF sum = hn::Add(hn::Add(y[c], direct), hn::Add(hn::Load(d, sums + (r * 4 + c) * lanes), bias));
          if (t.residual != nullptr) sum = hn::Add(sum, hn::LoadU(d, t.residual + at + c * kBlock));
          hn::StoreU(clip(sum, lo, hi), d, t.y + at + c * kBlock);
        }
      }
    });
  }
}

// The five points of two taps, to out[i * step].
HWY_INLINE void expand(VF g0, VF g1, float* out, std::int64_t step) {
  const DF f;
  const VF a = hn::Mul(hn::Set(f, 2.0F / 3), g0), b = hn::Mul(hn::Set(f, 2.0F / 3), g1);
  const VF twice = hn::Add(a, a);
  hn::StoreU(hn::Add(b, a), f, out);
  hn::StoreU(hn::Sub(b, a), f, out + step);
  hn::StoreU(hn::Neg(hn::Add(twice, b)), f, out + 2 * step);
  hn::StoreU(hn::Sub(twice, b), f, out + 3 * step);
  hn::StoreU(g1, f, out + 4 * step);
}

void weights(const float* g, std::int64_t channels, std::int64_t width, float* out) {
  const DF f;
  const std::int64_t lanes = lanes_f32();
  HWY_ALIGN float half[2 * kPoints * kMaxF32Lanes];
  for (std::int64_t c = 0; c < channels; ++c, g += 9 * width, out += width) {
    for (std::int64_t v = 0; v < width; v += lanes) {
      const auto tap = [&](int row, int column) HWY_ATTR { return hn::LoadU(f, g + (3 * row + column) * width + v); };
      expand(tap(0, 0), tap(2, 0), half, lanes);
      expand(tap(0, 2), tap(2, 2), half + kPoints * lanes, lanes);
      for (int r = 0; r < kPoints; ++r) {
        expand(hn::Load(f, half + r * lanes), hn::Load(f, half + (kPoints + r) * lanes), out + v + r * kPoints * kWinogradStep,
               kWinogradStep);
      }
      expand(tap(0, 1), tap(2, 1), out + v + 25 * kWinogradStep, kWinogradStep);
      expand(tap(1, 0), tap(1, 2), out + v + 30 * kWinogradStep, kWinogradStep);
      hn::StoreU(tap(1, 1), f, out + v + 35 * kWinogradStep);
    }
  }
}

}  // namespace

const StridedKernels& strided_table() {
  static const StridedKernels table{input, output, weights};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const StridedKernels&, strided_kernels, strided_table)
#endif
