#include "kernels/cpu/conv/blocked/tiled/blocked_winograd_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/blocked/tiled/blocked_winograd_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/conv/blocked/blocked-inl.h"
#include "kernels/cpu/conv/winograd/winograd-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

template <int T, bool kWhole>
void input_tile(const WinogradTile& w) {
  constexpr int kIn = T + 2;
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const int rows = kWhole ? kIn : static_cast<int>(w.rows) + 2, columns = kWhole ? kIn : static_cast<int>(w.columns) + 2;
  HWY_ALIGN float half[kIn * kIn * kMaxF32Lanes];  // B^T d, [row][column]
  HWY_ALIGN float edge[kIn * kIn * kBlock];
  const float* x = w.x;
  std::int64_t step = w.row_step;
  if (w.row0 > 0 || w.row1 < rows || w.column0 > 0 || w.column1 < columns) {
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        const bool inside = r >= w.row0 && r < w.row1 && c >= w.column0 && c < w.column1;
        for (std::int64_t v = 0; v < kBlock; v += lanes) {
          const VF value = inside ? hn::LoadU(d, w.x + r * w.row_step + c * kBlock + v) : hn::Zero(d);
          hn::Store(value, d, edge + (r * kIn + c) * kBlock + v);
        }
      }
    }
    x = edge;
    step = kIn * kBlock;
  }
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    with_outputs<T, kWhole>(w.rows, [&](auto n) HWY_ATTR {
      for (int c = 0; c < columns; ++c) forward<T, n>(x + c * kBlock + v, step, half + c * lanes, kIn * lanes);
    });
    with_outputs<T, kWhole>(w.columns, [&](auto n) HWY_ATTR {
      for (int r = 0; r < kIn; ++r) {
        if (r >= rows - 1 && r < kIn - 1) continue;  // a point that the tile lacks
        forward<T, n>(half + r * kIn * lanes, lanes, w.v + r * kIn * w.e_step + v, w.e_step);
      }
    });
  }
}

void winograd_input(int t, const WinogradTile& w) {
  const bool whole = w.rows == t && w.columns == t;
  if (t == 2) return whole ? input_tile<2, true>(w) : input_tile<2, false>(w);
  whole ? input_tile<4, true>(w) : input_tile<4, false>(w);
}

template <int T, bool kWhole>
void output_tile(const WinogradTile& w) {
  constexpr int kIn = T + 2;
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF lo = hn::Set(d, w.lo), hi = hn::Set(d, w.hi);
  HWY_ALIGN float half[T * kIn * kMaxF32Lanes];  // A^T m, [row][column]
  for (std::int64_t v = 0; v < kBlock; v += lanes) {
    with_outputs<T, kWhole>(w.rows, [&](auto n) HWY_ATTR {
      for (int c = 0; c < kIn; ++c) {
        if (!kWhole && c > w.columns && c < kIn - 1) continue;
        VF column[n + 2];
        VF result[n];
        for (int r = 0; r < n + 2; ++r) {
          column[r] = hn::LoadU(d, w.v + (winograd_element<T, n>(r) * kIn + c) * w.e_step + v);
        }
        backward<T, n>(column, result);
        for (int r = 0; r < n; ++r) hn::Store(result[r], d, half + (r * kIn + c) * lanes);
      }
    });
    const VF bias = hn::LoadU(d, w.bias + v);
    with_outputs<T, kWhole>(w.columns, [&](auto n) HWY_ATTR {
      for (int r = 0; r < (kWhole ? T : w.rows); ++r) {
        VF row[n + 2];
        VF y[n];
        for (int c = 0; c < n + 2; ++c) row[c] = hn::Load(d, half + (r * kIn + winograd_element<T, n>(c)) * lanes);
        backward<T, n>(row, y);
        const std::int64_t at = r * w.y_step + v;
        for (int c = 0; c < n; ++c) {
          const float* z = w.residual != nullptr ? w.residual + at + c * kBlock : nullptr;
          hn::StoreU(finished(hn::Add(y[c], bias), z, lo, hi), d, w.y + at + c * kBlock);
        }
      }
    });
  }
}

void winograd_output(int t, const WinogradTile& w) {
  const bool whole = w.rows == t && w.columns == t;
  if (t == 2) return whole ? output_tile<2, true>(w) : output_tile<2, false>(w);
  whole ? output_tile<4, true>(w) : output_tile<4, false>(w);
}

// Rows 2 I + 1 and 2 I + 2 of the transformed filter at `g`, whose taps are `width` apart.
template <int T, int I>
HWY_INLINE void weight_rows(const float* g, std::int64_t width, float* out) {
  const DF d;
  const auto column = [&](int i) HWY_ATTR {
    return expand<T, I>(hn::LoadU(d, g + i * width), hn::LoadU(d, g + (3 + i) * width), hn::LoadU(d, g + (6 + i) * width));
  };
  const Twins a = column(0), b = column(1), c = column(2);
  float* const row = out + (2 * I + 1) * (T + 2) * kWinogradStep;
  expand_row<T>(a.plus, b.plus, c.plus, row, kWinogradStep);
  expand_row<T>(a.minus, b.minus, c.minus, row + (T + 2) * kWinogradStep, kWinogradStep);
}

template <int T>
void weight_tiles(const float* g, std::int64_t channels, std::int64_t width, float* out) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  for (std::int64_t c = 0; c < channels; ++c, g += 9 * width, out += width) {
    for (std::int64_t v = 0; v < width; v += lanes) {
      const auto at = [&](int k) HWY_ATTR { return hn::LoadU(d, g + k * width + v); };
      expand_row<T>(at(0), at(1), at(2), out + v, kWinogradStep);
      weight_rows<T, 0>(g + v, width, out + v);
      if constexpr (T == 4) weight_rows<T, 1>(g + v, width, out + v);
      expand_row<T>(at(6), at(7), at(8), out + v + (T + 1) * (T + 2) * kWinogradStep, kWinogradStep);
    }
  }
}

void winograd_weights(int t, const float* g, std::int64_t channels, std::int64_t width, float* out) {
  t == 2 ? weight_tiles<2>(g, channels, width, out) : weight_tiles<4>(g, channels, width, out);
}

}  // namespace

const BlockedWinogradKernels& blocked_winograd_table() {
  static const BlockedWinogradKernels table{winograd_input, winograd_output, winograd_weights};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const BlockedWinogradKernels&, blocked_winograd_kernels, blocked_winograd_table)
#endif
