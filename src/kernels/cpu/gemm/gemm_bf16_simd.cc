// Tiles of bfloat16 products: the same code for the vectors of AVX512-BF16 and of Arm. Both multiply a broadcast pair of a row by
// the pairs of as many columns as a vector has floats. Arm multiplies several rows by BFMMLA instead.

#include "kernels/cpu/gemm/gemm_bf16_simd.h"

#include <cstring>
#include <utility>

#include "kernels/cpu/simd/attributes.h"
#include "kernels/cpu/simd/prefetch.h"

#if defined(__GNUC__) && defined(__x86_64__) && !defined(SDX_NO_AVX512)
#define SDX_BF16_DOTS
#include <immintrin.h>
#elif defined(__GNUC__) && defined(__aarch64__)
#define SDX_BF16_DOTS
#include <arm_neon.h>
#endif

#ifdef SDX_BF16_DOTS

#if defined(__x86_64__)
#define SDX_BF16_TARGET "avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"
#else
#define SDX_BF16_TARGET SDX_NEON_BF16
#endif

#define SDX_BF16_INLINE [[gnu::always_inline]] inline

HWY_PUSH_ATTRIBUTES(SDX_BF16_TARGET)
namespace sdx::cpu {
namespace {

#if defined(__x86_64__)

// Not __m512: GCC 12 spills accumulators of the intrinsics' types, which halves the speed.
using Floats = float __attribute__((vector_size(64)));
using Pairs = int __attribute__((vector_size(64)));

SDX_BF16_INLINE Pairs load(const std::uint16_t* p) { return reinterpret_cast<Pairs>(_mm512_loadu_si512(p)); }
SDX_BF16_INLINE Pairs broadcast(const std::uint16_t* p) {
  int pair;
  std::memcpy(&pair, p, sizeof(pair));
  return reinterpret_cast<Pairs>(_mm512_set1_epi32(pair));
}
SDX_BF16_INLINE Floats dot(Floats sum, Pairs a, Pairs b) {
#if defined(__clang__)
  // Assembly, because Clang 16 crashes on broadcasts that become its type of 32 bfloat16.
  __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
#else
  const __m512 s = _mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  return reinterpret_cast<Floats>(s);
#endif
}

SDX_BF16_INLINE __m512i rounded(__m512 low, __m512 high) { return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)); }

void round(const float* x, std::int64_t n, std::uint16_t* y) {
  std::int64_t i = 0;
  for (; i + 32 <= n; i += 32) _mm512_storeu_si512(y + i, rounded(_mm512_loadu_ps(x + i), _mm512_loadu_ps(x + i + 16)));
  if (i == n) return;
  const std::uint32_t some = (std::uint32_t{1} << (n - i)) - 1;  // n - i < 32
  const auto low = static_cast<__mmask16>(some), high = static_cast<__mmask16>(some >> 16);
  const __m512i last = rounded(_mm512_maskz_loadu_ps(low, x + i), _mm512_maskz_loadu_ps(high, x + i + 16));
  const std::uint32_t and_zero = n % 2 != 0 ? some << 1 : 0;
  _mm512_mask_storeu_epi16(y + i, some | and_zero, last);
}

#else

using Floats = float32x4_t;
using Pairs = bfloat16x8_t;

SDX_BF16_INLINE Pairs load(const std::uint16_t* p) { return vreinterpretq_bf16_u16(vld1q_u16(p)); }
SDX_BF16_INLINE Pairs broadcast(const std::uint16_t* p) {
  std::uint32_t pair;
  std::memcpy(&pair, p, sizeof(pair));
  return vreinterpretq_bf16_u32(vdupq_n_u32(pair));
}
SDX_BF16_INLINE Floats dot(Floats sum, Pairs a, Pairs b) { return vbfdotq_f32(sum, a, b); }

SDX_BF16_INLINE uint16x8_t rounded(const float* from) {
  const bfloat16x8_t low = vcvtq_low_bf16_f32(vld1q_f32(from));
  return vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(low, vld1q_f32(from + 4)));
}

void round(const float* x, std::int64_t n, std::uint16_t* y) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) vst1q_u16(y + i, rounded(x + i));
  if (i == n) return;
  float rest[8] = {};
  std::uint16_t last[8];
  std::memcpy(rest, x + i, static_cast<std::size_t>(n - i) * sizeof(float));
  vst1q_u16(last, rounded(rest));
  std::memcpy(y + i, last, static_cast<std::size_t>((n - i + 1) / 2 * 2) * sizeof(std::uint16_t));
}

#endif

// Works in two steps so that compilers can vectorize the second.
void interleave(const float* x0, const float* x1, std::int64_t n, std::uint16_t* y) {
  constexpr std::int64_t kPiece = 32;
  for (std::int64_t j = 0; j < n; j += kPiece) {
    const std::int64_t some = n - j < kPiece ? n - j : kPiece;
    std::uint16_t even[kPiece] = {}, odd[kPiece] = {};
    round(x0 + j, some, even);
    if (x1 != nullptr) round(x1 + j, some, odd);
    std::uint16_t pairs[2 * kPiece];
    for (std::int64_t i = 0; i < kPiece; ++i) pairs[2 * i] = even[i], pairs[2 * i + 1] = odd[i];
    std::memcpy(y + 2 * j, pairs, static_cast<std::size_t>(2 * some) * sizeof(std::uint16_t));
  }
}

constexpr int kLanes = sizeof(Floats) / sizeof(float);
// 24 vectors of sums, two of columns and a broadcast pair use 27 of 32 registers. On Arm, GCC 12 runs out of registers from 11
// rows on.
constexpr int kMr = kLanes == 4 ? 10 : 12;
constexpr int kNr = 2 * kLanes;

template <int M, int S>
struct Sums {
  Floats of[S][M][2];
};

// Multiplies S pairs of M rows. One pointer serves three rows.
template <int M, int S>
SDX_BF16_INLINE void step(const std::uint16_t* const* rows, std::int64_t stride, const std::uint16_t* b, Sums<M, S>& sums) {
#pragma GCC unroll 4
  for (int s = 0; s < S; ++s) {
    const Pairs b0 = load(b + 2 * s * kNr), b1 = load(b + 2 * s * kNr + kNr);
#pragma GCC unroll 12
    for (int i = 0; i < M; ++i) {
      const Pairs v = broadcast(rows[i / 3] + i % 3 * stride + 2 * s);
      sums.of[s][i][0] = dot(sums.of[s][i][0], v, b0);
      sums.of[s][i][1] = dot(sums.of[s][i][1], v, b1);
    }
  }
}

// One and two rows have several sets of sums, to hide the instruction's latency. Few rows wait for weights from memory, and the
// hardware's prefetch stops at page borders, so this prefetches 4 KB ahead.
template <int M>
void product(const Bf16Tile& t) {
  constexpr int kSets = M == 1 ? 4 : M == 2 ? 2 : 1;
  const std::int64_t stride = t.stride;
  const std::uint16_t* rows[4] = {t.a, t.a + 3 * stride, t.a + 6 * stride, t.a + 9 * stride};
  const std::uint16_t* b = t.b;
  Sums<M, kSets> sums = {};
  std::int64_t p = 0;
  for (; p + kSets <= t.pairs; p += kSets) {
    if constexpr (M <= 4) {
#pragma GCC unroll 8
      for (int line = 0; line < kSets * kNr * 4; line += 64) prefetch_after(b, 4096 + line);
    }
    step<M, kSets>(rows, stride, b, sums);
#pragma GCC unroll 4
    for (int i = 0; i < (M + 2) / 3; ++i) rows[i] += 2 * kSets;
    b += 2 * kSets * kNr;
  }
  if constexpr (kSets > 1) {
    Sums<M, 1> last = {};
    for (; p < t.pairs; ++p, rows[0] += 2, b += 2 * kNr) step<M, 1>(rows, stride, b, last);
#pragma GCC unroll 2
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
#pragma GCC unroll 4
        for (int s = 0; s < kSets; ++s) last.of[0][i][v] += sums.of[s][i][v];
        sums.of[0][i][v] = last.of[0][i][v];
      }
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      float* out = t.sums + i * kNr + v * kLanes;
      Floats sum = sums.of[0][i][v];
      if (t.add) {
        Floats before;
        std::memcpy(&before, out, sizeof(before));
        sum += before;
      }
      std::memcpy(out, &sum, sizeof(sum));
    }
  }
}

#if defined(__aarch64__)

// BFMMLA multiplies two rows by two columns, four numbers each: twice as many products as BFDOT. It adds them pair by pair as
// BFDOT does (Arm ARM, BFMatMulAdd), so sums are the same bits. An odd last row is multiplied twice.
template <int M>
struct MatrixSums {
  static constexpr int kRowPairs = (M + 1) / 2;
  Floats of[kRowPairs][4];
};

SDX_BF16_INLINE Floats joined(Floats x, Floats y, bool second) {
  const float64x2_t a = vreinterpretq_f64_f32(x), b = vreinterpretq_f64_f32(y);
  return vreinterpretq_f32_f64(second ? vzip2q_f64(a, b) : vzip1q_f64(a, b));
}

// Four numbers of each row times two pairs of the panel; a null `next` stands for zeros.
template <int M>
SDX_BF16_INLINE void matrix_step(const bfloat16x8_t* a, const std::uint16_t* b, const std::uint16_t* next, MatrixSums<M>& s) {
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    const uint32x4_t x = vreinterpretq_u32_u16(vld1q_u16(b + 8 * v));
    const uint32x4_t y = next != nullptr ? vreinterpretq_u32_u16(vld1q_u16(next + 8 * v)) : vdupq_n_u32(0);
    const bfloat16x8_t low = vreinterpretq_bf16_u32(vzip1q_u32(x, y)), high = vreinterpretq_bf16_u32(vzip2q_u32(x, y));
#pragma GCC unroll 5
    for (int p = 0; p < MatrixSums<M>::kRowPairs; ++p) {
      s.of[p][2 * v] = vbfmmlaq_f32(s.of[p][2 * v], a[p], low);
      s.of[p][2 * v + 1] = vbfmmlaq_f32(s.of[p][2 * v + 1], a[p], high);
    }
  }
}

// All pairs of M rows; `rows` has the addresses of both rows of each pair.
template <int M>
SDX_BF16_INLINE void multiply_matrices(const std::uint16_t* const (&rows)[(M + 1) / 2 * 2], std::int64_t pairs,
                                       const std::uint16_t* b, MatrixSums<M>& s) {
  constexpr int kRowPairs = (M + 1) / 2;
  bfloat16x8_t first[kRowPairs], second[kRowPairs];
  std::int64_t p = 0;
  for (; p + 4 <= pairs; p += 4, b += 8 * kNr) {
    if constexpr (M <= 4) {
#pragma GCC unroll 2
      for (int line = 0; line < 16 * kNr; line += 64) prefetch_after(b, 4096 + line);
    }
#pragma GCC unroll 5
    for (int i = 0; i < kRowPairs; ++i) {
      const uint64x2_t x = vreinterpretq_u64_u16(vld1q_u16(rows[2 * i] + 2 * p));
      const uint64x2_t y = vreinterpretq_u64_u16(vld1q_u16(rows[2 * i + 1] + 2 * p));
      first[i] = vreinterpretq_bf16_u64(vzip1q_u64(x, y));
      second[i] = vreinterpretq_bf16_u64(vzip2q_u64(x, y));
    }
    matrix_step<M>(first, b, b + 2 * kNr, s);
    matrix_step<M>(second, b + 4 * kNr, b + 6 * kNr, s);
  }
  for (; p < pairs; ++p, b += 2 * kNr) {
#pragma GCC unroll 5
    for (int i = 0; i < kRowPairs; ++i) {
      std::uint32_t x, y;
      std::memcpy(&x, rows[2 * i] + 2 * p, sizeof(x));
      std::memcpy(&y, rows[2 * i + 1] + 2 * p, sizeof(y));
      first[i] = vreinterpretq_bf16_u64(vcombine_u64(vcreate_u64(x), vcreate_u64(y)));
    }
    matrix_step<M>(first, b, nullptr, s);
  }
}

template <int M>
void matrix_product(const Bf16Tile& t) {
  constexpr int kRowPairs = (M + 1) / 2;
  const std::uint16_t* rows[2 * kRowPairs];
#pragma GCC unroll 10
  for (int i = 0; i < 2 * kRowPairs; ++i) rows[i] = t.a + (i < M ? i : M - 1) * t.stride;
  MatrixSums<M> s = {};
  multiply_matrices<M>(rows, t.pairs, t.b, s);
#pragma GCC unroll 10
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      float* out = t.sums + i * kNr + 4 * v;
      const Floats sum = joined(s.of[i / 2][2 * v], s.of[i / 2][2 * v + 1], i % 2 != 0);
      vst1q_f32(out, t.add ? vaddq_f32(sum, vld1q_f32(out)) : sum);
    }
  }
}

#endif

// The best way to multiply M rows.
template <int M>
constexpr auto best() {
#if defined(__aarch64__)
  if constexpr (M > 1) return matrix_product<M>;
#endif
  return product<M>;
}

}  // namespace
}  // namespace sdx::cpu
HWY_POP_ATTRIBUTES

namespace sdx::cpu {
namespace {

template <std::size_t... kIndex>
void choose(const Bf16Tile& t, std::int64_t m, std::index_sequence<kIndex...>) {
  constexpr void (*kTable[])(const Bf16Tile&) = {best<static_cast<int>(kIndex) + 1>()...};
  kTable[m - 1](t);
}

void tile(const Bf16Tile& t, std::int64_t m) { choose(t, m, std::make_index_sequence<kMr>()); }

}  // namespace

const Bf16Kernels* bf16_kernels() {
  static const Bf16Kernels table{kMr, kNr, tile, round, interleave};
  return &table;
}

}  // namespace sdx::cpu

#else

namespace sdx::cpu {

const Bf16Kernels* bf16_kernels() { return nullptr; }

}  // namespace sdx::cpu

#endif
