#include "kernels/cpu/winograd_kernels.h"

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/winograd_kernels.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

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
