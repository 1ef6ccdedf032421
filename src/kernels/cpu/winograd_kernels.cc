#include "kernels/cpu/winograd_kernels.h"

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/winograd_kernels.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// o = B^T d over elements `step` vectors apart.
template <int T>
HWY_INLINE void forward(const float* d, std::int64_t step, float* o, std::int64_t out_step) {
  const DF f;
  const auto at = [&](int i) HWY_ATTR { return hn::LoadU(f, d + i * step); };
  const auto to = [&](int i, VF v) HWY_ATTR { hn::StoreU(v, f, o + i * out_step); };
  if constexpr (T == 2) {
    const VF d0 = at(0), d1 = at(1), d2 = at(2), d3 = at(3);
    to(0, hn::Sub(d0, d2));
    to(1, hn::Add(d1, d2));
    to(2, hn::Sub(d2, d1));
    to(3, hn::Sub(d1, d3));
  } else {
    const VF d0 = at(0), d1 = at(1), d2 = at(2), d3 = at(3), d4 = at(4), d5 = at(5);
    // The points of kG4 in winograd.cc.
    const VF a = hn::Set(f, 0.70710678118654752F), b = hn::Set(f, 1.41421356237309505F);
    const VF half = hn::Set(f, 0.5F), two = hn::Set(f, 2.0F), middle = hn::Set(f, 2.5F);
    const VF even = hn::NegMulAdd(two, d2, d4), odd = hn::NegMulAdd(two, d1, d3);
    const VF even2 = hn::NegMulAdd(half, d2, d4), odd2 = hn::NegMulAdd(half, d1, d3);
    to(0, hn::NegMulAdd(middle, d2, hn::Add(d0, d4)));
    to(1, hn::MulAdd(a, odd, even));
    to(2, hn::NegMulAdd(a, odd, even));
    to(3, hn::MulAdd(b, odd2, even2));
    to(4, hn::NegMulAdd(b, odd2, even2));
    to(5, hn::NegMulAdd(middle, d3, hn::Add(d1, d5)));
  }
}

template <int T>
HWY_INLINE void backward(const VF (&m)[T + 2], VF (&o)[T]) {
  const DF f;
  if constexpr (T == 2) {
    o[0] = hn::Add(hn::Add(m[0], m[1]), m[2]);
    o[1] = hn::Sub(hn::Sub(m[1], m[2]), m[3]);
  } else {
    const VF sum1 = hn::Add(m[1], m[2]), difference1 = hn::Sub(m[1], m[2]);
    const VF sum2 = hn::Add(m[3], m[4]), difference2 = hn::Sub(m[3], m[4]);
    o[0] = hn::Add(m[0], hn::Add(sum1, sum2));
    const VF a = hn::Set(f, 0.70710678118654752F), half = hn::Set(f, 0.5F), two = hn::Set(f, 2.0F);
    o[1] = hn::Mul(a, hn::MulAdd(two, difference2, difference1));
    o[2] = hn::MulAdd(two, sum2, hn::Mul(half, sum1));
    o[3] = hn::MulAdd(a, hn::MulAdd(hn::Set(f, 4.0F), difference2, hn::Mul(half, difference1)), m[5]);
  }
}

template <int T>
void input_tiles(const float* rows, std::int64_t phase_width, std::int64_t count, float* out, std::int64_t ld) {
  constexpr int kIn = T + 2;
  const std::int64_t lanes = lanes_f32();
  HWY_ALIGN float half[kIn * kIn * kMaxF32Lanes];  // B^T d, [row][column]
  for (std::int64_t i = 0; i < count; i += lanes) {
    for (int c = 0; c < kIn; ++c) {
      forward<T>(rows + c % T * phase_width + c / T + i, T * phase_width, half + c * lanes, kIn * lanes);
    }
    for (int r = 0; r < kIn; ++r) forward<T>(half + r * kIn * lanes, lanes, out + r * kIn * ld + i, ld);
  }
}

void input(int t, const float* rows, std::int64_t phase_width, std::int64_t count, float* out, std::int64_t ld) {
  if (t == 2) {
    input_tiles<2>(rows, phase_width, count, out, ld);
  } else {
    input_tiles<4>(rows, phase_width, count, out, ld);
  }
}

void spread(const float* tiles, std::int64_t ld, std::int64_t elements, std::int64_t columns, float* v, std::int64_t e_step,
            std::int64_t panel_step) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t e = 0; e < elements; ++e) {
    const float* from = tiles + e * ld;
    float* to = v + e * e_step;
    for (std::int64_t p = 0; p < columns; p += 2 * lanes, to += panel_step) {
      hn::StoreU(hn::LoadU(d, from + p), d, to);
      hn::StoreU(hn::LoadU(d, from + p + lanes), d, to + lanes);
    }
  }
}

template <int T>
void output_tiles(const float* m, std::int64_t step, std::int64_t count, float* out, std::int64_t ld) {
  constexpr int kIn = T + 2;
  const DF d;
  const std::int64_t lanes = lanes_f32();
  HWY_ALIGN float half[T * kIn * kMaxF32Lanes];  // A^T m, [row][column]
  for (std::int64_t i = 0; i < count; i += lanes) {
    for (int c = 0; c < kIn; ++c) {
      VF column[kIn];
      VF result[T];
      for (int r = 0; r < kIn; ++r) column[r] = hn::LoadU(d, m + (r * kIn + c) * step + i);
      backward<T>(column, result);
      for (int r = 0; r < T; ++r) hn::Store(result[r], d, half + (r * kIn + c) * lanes);
    }
    for (int r = 0; r < T; ++r) {
      VF row[kIn];
      VF y[T];
      for (int c = 0; c < kIn; ++c) row[c] = hn::Load(d, half + (r * kIn + c) * lanes);
      backward<T>(row, y);
      float* to = out + r * ld + i * T;
      if constexpr (T == 2) {
        hn::StoreInterleaved2(y[0], y[1], d, to);
      } else {
        hn::StoreInterleaved4(y[0], y[1], y[2], y[3], d, to);
      }
    }
  }
}

void output(int t, const float* m, std::int64_t step, std::int64_t count, float* out, std::int64_t ld) {
  if (t == 2) {
    output_tiles<2>(m, step, count, out, ld);
  } else {
    output_tiles<4>(m, step, count, out, ld);
  }
}

}  // namespace

const WinogradKernels* winograd_table() {
  static const WinogradKernels table{static_cast<int>(lanes_f32()), input, spread, output};
  return &table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/dispatch.h"

namespace sdx::cpu {

const WinogradKernels& winograd_kernels() { return *SDX_CPU_PICK(winograd_table)(); }

}  // namespace sdx::cpu
#endif
