#include "kernels/cpu/conv/plain/conv_narrow_simd.h"

#include "kernels/cpu/simd/target_width.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/plain/conv_narrow_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// Tiles computed at once: 8 sums hide the latency of multiply-add (4 cycles, 2 per cycle). 12 sums fit 16 registers beside the
// weights; with 512 bits there are 32 registers, and two tiles share each value of 8 positions.
constexpr int kMostOfTwo = SDX_512_BITS ? 8 : 6;
constexpr int tiles_for(int positions) { return positions <= 2 ? 4 : positions <= kMostOfTwo ? 2 : 1; }
std::int64_t tiles_at(std::int64_t positions) { return tiles_for(static_cast<int>(positions)); }

template <int kTiles, int kPositions, bool kWhole>
HWY_INLINE void step(const NarrowBlock& b, std::int64_t k, VF (&sums)[kTiles][kPositions]) {
  const DF d;
  const float* x = b.x + b.offset[k];
  VF w[kTiles];
  for (int t = 0; t < kTiles; ++t) {
    const float* from = b.weights[t] + k * b.height[t];
    w[t] = kWhole ? hn::LoadU(d, from) : load_tail(d, from, b.height[t]);
  }
  for (int p = 0; p < kPositions; ++p) {
    const VF value = hn::Set(d, x[b.position_offset[p]]);
    for (int t = 0; t < kTiles; ++t) sums[t][p] = hn::MulAdd(w[t], value, sums[t][p]);
  }
}

template <int kTiles, int kPositions>
void sum_tiles(const NarrowBlock& block) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const NarrowBlock b = block;
  VF sums[kTiles][kPositions];
  for (int t = 0; t < kTiles; ++t) {
    for (int p = 0; p < kPositions; ++p) {
      sums[t][p] = b.accumulate ? hn::Load(d, b.sums + (t * kPositions + p) * lanes) : hn::Zero(d);
    }
  }
  std::int64_t k = 0;
  for (; k < b.whole; ++k) step<kTiles, kPositions, true>(b, k, sums);
  for (; k < b.k; ++k) step<kTiles, kPositions, false>(b, k, sums);
  for (int t = 0; t < kTiles; ++t) {
    for (int p = 0; p < kPositions; ++p) hn::Store(sums[t][p], d, b.sums + (t * kPositions + p) * lanes);
  }
}

template <int kPositions>
void sum_positions(const NarrowBlock& b) {
  constexpr int kTiles = tiles_for(kPositions);
  if (b.tiles == kTiles) return sum_tiles<kTiles, kPositions>(b);
  NarrowBlock one = b;
  one.tiles = 1;
  for (std::int64_t t = 0; t < b.tiles; ++t) {
    one.weights[0] = b.weights[t];
    one.height[0] = b.height[t];
    one.sums = b.sums + t * kPositions * lanes_f32();
    sum_tiles<1, kPositions>(one);
  }
}

void sum(const NarrowBlock& b) {
  switch (b.positions) {
    case 1: return sum_positions<1>(b);
    case 2: return sum_positions<2>(b);
    case 3: return sum_positions<3>(b);
    case 4: return sum_positions<4>(b);
    case 5: return sum_positions<5>(b);
    case 6: return sum_positions<6>(b);
    case 7: return sum_positions<7>(b);
    default: return sum_positions<8>(b);
  }
}

}  // namespace

const NarrowKernels& narrow_table() {
  static const NarrowKernels table{static_cast<int>(lanes_f32()), tiles_at, sum};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const NarrowKernels&, narrow_kernels, narrow_table)
#endif
