#include "kernels/cpu/conv/winograd/winograd_simd.h"

#include <algorithm>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/winograd/winograd_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/conv/winograd/winograd-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
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

// o = G g for the points of forward(): rows come in pairs that differ in the sign of the odd part.
template <int T>
HWY_INLINE void expand(VD g0, VD g1, VD g2, VD* o) {
  const DD d;
  o[0] = g0;
  o[T + 1] = g2;
  if constexpr (T == 2) {
    const VD half = hn::Set(d, 0.5);
    const VD even = hn::Mul(half, hn::Add(g0, g2)), odd = hn::Mul(half, g1);
    o[1] = hn::Add(even, odd);
    o[2] = hn::Sub(even, odd);
  } else {
    const VD third = hn::Set(d, 1.0 / 3);
    const VD even = hn::Neg(hn::MulAdd(hn::Set(d, 2.0 / 3), g0, hn::Mul(third, g2)));
    const VD odd = hn::Mul(hn::Set(d, 0.47140452079103168), g1);
    o[1] = hn::Sub(even, odd);
    o[2] = hn::Add(even, odd);
    const VD even2 = hn::MulAdd(hn::Set(d, 1.0 / 6), g0, hn::Mul(third, g2));
    const VD odd2 = hn::Mul(hn::Set(d, 0.23570226039551584), g1);
    o[3] = hn::Add(even2, odd2);
    o[4] = hn::Sub(even2, odd2);
  }
}

template <int T>
void weight_tiles(const float* g, std::int64_t ld, std::int64_t count, float* out, std::int64_t step) {
  const DD d;
  const DFHalf f;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; i += lanes) {
    VD half[3][T + 2];  // columns of G g
    for (int j = 0; j < 3; ++j) {
      const auto at = [&](int k) HWY_ATTR { return hn::PromoteTo(d, hn::LoadU(f, g + (k * 3 + j) * ld + i)); };
      expand<T>(at(0), at(1), at(2), half[j]);
    }
    for (int r = 0; r < T + 2; ++r) {
      VD u[T + 2];
      expand<T>(half[0][r], half[1][r], half[2][r], u);
      for (int c = 0; c < T + 2; ++c) {
        float* to = out + (r * (T + 2) + c) * step + i;
        if (i + lanes <= count) {
          hn::StoreU(hn::DemoteTo(f, u[c]), f, to);
        } else {
          HWY_ALIGN float last[kMaxF32Lanes];
          hn::Store(hn::DemoteTo(f, u[c]), f, last);
          std::copy_n(last, count - i, to);
        }
      }
    }
  }
}

void weights(int t, const float* g, std::int64_t ld, std::int64_t count, float* out, std::int64_t step) {
  if (t == 2) {
    weight_tiles<2>(g, ld, count, out, step);
  } else {
    weight_tiles<4>(g, ld, count, out, step);
  }
}

void filters(int t, const float* u, std::int64_t step, std::int64_t count, float* g) {
  const int side = t + 2;
  for (std::int64_t i = 0; i < count; i += lanes_f32()) {
    const std::int64_t n = count - i;
    const auto at = [&](int row, int column) HWY_ATTR { return load_floats(u + (row * side + column) * step + i, n); };
    taps_of(t, at, [&](int k, VF v) HWY_ATTR { store_floats(v, g + k * count + i, n); });
  }
}

void squares(const float* x, std::int64_t step, std::int64_t channels, std::int64_t n, float* sums) {
  const DF d;
  for (std::int64_t c = 0; c < channels; c += 4) {
    const std::int64_t some = std::min<std::int64_t>(4, channels - c);
    for (std::int64_t i = 0; i < n; i += lanes_f32()) {
      VF sum = c == 0 ? hn::Zero(d) : load_floats(sums + i, n - i);
      for (std::int64_t k = 0; k < some; ++k) {
        const VF v = load_floats(x + (c + k) * step + i, n - i);
        sum = hn::MulAdd(v, v, sum);
      }
      store_floats(sum, sums + i, n - i);
    }
  }
}

bool extremes(const float* x, std::int64_t rows, std::int64_t n, float* least, float* most) {
  const DF d;
  const VF zero = hn::Zero(d);
  VF finite = zero;  // NaN once an element was not
  for (std::int64_t i = 0; i < n; i += lanes_f32()) {
    VF low = load_floats(x + i, n - i), high = low;
    finite = hn::MulAdd(low, zero, finite);
    for (std::int64_t r = 1; r < rows; ++r) {
      const VF v = load_floats(x + r * n + i, n - i);
      low = hn::Min(low, v);
      high = hn::Max(high, v);
      finite = hn::MulAdd(v, zero, finite);
    }
    store_floats(low, least + i, n - i);
    store_floats(high, most + i, n - i);
  }
  return hn::AllTrue(d, hn::Eq(finite, finite));
}

bool even(const float* least, const float* most, int window, float times) {
  const DF d;
  VF low = hn::LoadU(d, least), high = hn::LoadU(d, most);
  for (int i = 1; i < window; ++i) {
    low = hn::Min(low, hn::LoadU(d, least + i));
    high = hn::Max(high, hn::LoadU(d, most + i));
  }
  return hn::AllTrue(d, hn::Le(high, hn::Mul(low, hn::Set(d, times))));
}

}  // namespace

const WinogradKernels& winograd_table() {
  static const WinogradKernels table{
      static_cast<int>(lanes_f32()), input, spread, output, weights, filters, squares, extremes, even};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const WinogradKernels&, winograd_kernels, winograd_table)
#endif
