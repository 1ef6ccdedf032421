#include "kernels/cpu/conv/int8/neon/quant_quads_neon.h"

#if defined(__aarch64__) && defined(__GNUC__)

#include <arm_neon.h>

#include <cstring>

#include "base/system/cpu_features.h"
#include "kernels/cpu/conv/int8/quant_quads_gather-inl.h"
#include "kernels/cpu/simd/attributes.h"
#include "kernels/cpu/simd/prefetch.h"

#define SDX_QUADS_INLINE [[gnu::always_inline]] inline

namespace sdx::cpu {
namespace {

constexpr std::int64_t kRows = 8, kColumns = 8;  // of a tile: 16 vectors of sums, 8 of rows

using BytesTile = void (*)(const QQuadPanel& g, std::int64_t row, const char* ahead, std::int64_t ahead_step);

// One quad in all lanes.
SDX_QUADS_INLINE int8x16_t quad_at(const std::int8_t* p) {
  std::int32_t quad;
  std::memcpy(&quad, p, sizeof(quad));
  return vreinterpretq_s8_s32(vdupq_n_s32(quad));
}

// Scales, bounds and rounds sums. Bounds are whole numbers, so rounding keeps them; a scale that is NaN gives the lower one.
SDX_QUADS_INLINE int32x4_t rounded(const QQuadFinish& f, int32x4_t sums, const float* scale) {
  const float32x4_t v = vmulq_f32(vcvtq_f32_s32(sums), vld1q_f32(scale));
  return vcvtnq_s32_f32(vminnmq_f32(vmaxnmq_f32(v, vdupq_n_f32(f.low)), vdupq_n_f32(f.high)));
}

SDX_QUADS_INLINE uint8x8_t bytes_of(const QQuadFinish& f, int32x4_t low, int32x4_t high) {
  const int16x8_t words = vqmovn_high_s32(vqmovn_s32(rounded(f, low, f.scale)), rounded(f, high, f.scale + 4));
  const int16x8_t v = vaddq_s16(words, vdupq_n_s16(static_cast<std::int16_t>(f.zero_point)));
  return f.is_signed ? vreinterpret_u8_s8(vqmovn_s16(v)) : vqmovun_s16(v);
}

SDX_QUADS_INLINE void store_bytes(const QQuadPanel& g, uint8x8_t v, std::uint8_t* y) {
  if (g.columns == kColumns) return vst1_u8(y, v);
  std::uint8_t all[kColumns];
  vst1_u8(all, v);
  std::memcpy(y, all, static_cast<std::size_t>(g.columns));
}

}  // namespace
}  // namespace sdx::cpu

#define SDX_TARGET SDX_NEON_DOTS
#define SDX_SPACE quads_dots
#define SDX_SUMS DotSums
#include "kernels/cpu/conv/int8/neon/quant_quads_neon-inl.h"

#define SDX_MATRICES
#define SDX_TARGET SDX_NEON_I8MM
#define SDX_SPACE quads_i8mm
#define SDX_SUMS MatrixSums
#include "kernels/cpu/conv/int8/neon/quant_quads_neon-inl.h"

namespace sdx::cpu {
namespace {

void panel(const QQuadPanel& g) {
  const auto& tiles = use_i8mm() ? quads_i8mm::kBytes : quads_dots::kBytes;
  const std::int64_t count = (g.m + kRows - 1) / kRows;
  // Weights come from memory, one panel after the other: each four quads prefetch a line until the next panel is complete.
  const std::int64_t fetched = g.quads / 4 * 64;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = g.m * i / count, m = g.m * (i + 1) / count - row;
    const bool fetches = i * fetched < g.ahead_bytes;
    // SMMLA gains nothing from a single row.
    const BytesTile tile = m == 1 ? quads_dots::kBytes[0] : tiles[m - 1];
    tile(g, row, fetches ? g.ahead + i * fetched : reinterpret_cast<const char*>(g.b), fetches ? 64 : 0);
  }
}

void sums(const QRows& t) {
  if (t.m > 1 && use_i8mm()) return quads_i8mm::kSums[t.m - 1](t);
  quads_dots::kSums[t.m - 1](t);
}

// Copying and filling may overwrite up to 15 bytes more. Reads stop where the source ends.
struct Copy128 {
  uint8x16_t flip, zero;
  const std::uint8_t* end;
  explicit Copy128(const QSource& q)
      : flip(vdupq_n_u8(q.is_signed ? 0 : 0x80)),
        zero(veorq_u8(vdupq_n_u8(static_cast<std::uint8_t>(q.zero)), flip)),
        end(q.end) {}

  std::uint8_t* run(std::uint8_t* to, const std::uint8_t* from, std::int64_t n) const {
    std::int64_t i = 0;
    for (; i < n && end - (from + i) >= 16; i += 16) vst1q_u8(to + i, veorq_u8(vld1q_u8(from + i), flip));
    if (i < n) {
      std::uint8_t last[16] = {};
      std::memcpy(last, from + i, static_cast<std::size_t>(n - i));
      vst1q_u8(to + i, veorq_u8(vld1q_u8(last), flip));
    }
    return to + n;
  }

  std::uint8_t* padding(std::uint8_t* to, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; i += 16) vst1q_u8(to + i, zero);
    return to + n;
  }

  void windows(const std::uint8_t* x, std::int64_t step, const std::int64_t* offsets, std::int64_t runs, std::int64_t bytes,
               std::int64_t count, std::uint8_t* to, std::int64_t row_bytes) const {
    for (std::int64_t i = 0; i < count; ++i, x += step, to += row_bytes) {
      std::uint8_t* at = to;
      for (std::int64_t r = 0; r < runs; ++r) at = run(at, x + offsets[r], bytes);
    }
  }
};

void gather(const QQuadWindow& w, std::int64_t first, std::int64_t count, std::uint8_t* rows) {
  gather_by(Copy128(w.source), w, first, count, rows);
}

constexpr QQuadKernels kKernels = {kColumns, panel, gather, true};

}  // namespace

const QQuadKernels* qquad_neon_kernels() { return &kKernels; }
QRowsSums qnhwc_neon_quads() { return sums; }

}  // namespace sdx::cpu

#else

namespace sdx::cpu {

const QQuadKernels* qquad_neon_kernels() { return nullptr; }
QRowsSums qnhwc_neon_quads() { return nullptr; }

}  // namespace sdx::cpu

#endif
