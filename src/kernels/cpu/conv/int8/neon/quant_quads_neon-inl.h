// Tiles of rows by a panel of quads, for quant_quads_neon.cc, which includes this once for each instruction. It sets SDX_TARGET,
// SDX_SPACE and SDX_SUMS: the class with a tile's sums. No header: no guard.

HWY_PUSH_ATTRIBUTES(SDX_TARGET)
namespace sdx::cpu::SDX_SPACE {
namespace {

// M rows of sums; sum(i, v): row i's columns 4 v to 4 v + 3.
template <int M>
struct DotSums {
  int32x4_t of[M][2];

  SDX_QUADS_INLINE void start(const int32x4_t (&first)[M][2]) { std::memcpy(of, first, sizeof(of)); }
  SDX_QUADS_INLINE int32x4_t sum(int i, int v) const { return of[i][v]; }
  SDX_QUADS_INLINE void merge(const DotSums& other) {
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      of[i][0] = vaddq_s32(of[i][0], other.of[i][0]);
      of[i][1] = vaddq_s32(of[i][1], other.of[i][1]);
    }
  }

  // Four quads of each row.
  SDX_QUADS_INLINE void add_four(const std::int8_t* const (&rows)[M], std::int64_t k, const std::int8_t* b) {
    int8x16_t a[M];
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) a[i] = vld1q_s8(rows[i] + k);
#define SDX_QUAD(Q)                                       \
  {                                                       \
    const int8x16_t b0 = vld1q_s8(b + 32 * (Q));          \
    const int8x16_t b1 = vld1q_s8(b + 32 * (Q) + 16);     \
    _Pragma("GCC unroll 8") for (int i = 0; i < M; ++i) { \
      of[i][0] = vdotq_laneq_s32(of[i][0], b0, a[i], Q);  \
      of[i][1] = vdotq_laneq_s32(of[i][1], b1, a[i], Q);  \
    }                                                     \
  }
    SDX_QUAD(0)
    SDX_QUAD(1)
    SDX_QUAD(2)
    SDX_QUAD(3)
#undef SDX_QUAD
  }
  SDX_QUADS_INLINE void add_one(const std::int8_t* const (&rows)[M], std::int64_t k, const std::int8_t* b) {
    const int8x16_t b0 = vld1q_s8(b), b1 = vld1q_s8(b + 16);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const int8x16_t a = quad_at(rows[i] + k);
      of[i][0] = vdotq_s32(of[i][0], b0, a);
      of[i][1] = vdotq_s32(of[i][1], b1, a);
    }
  }
};

#ifdef SDX_MATRICES

// The same by matrices of two rows and two columns; an odd last row is multiplied twice.
template <int M>
struct MatrixSums {
  static constexpr int kPairs = (M + 1) / 2;
  int32x4_t of[kPairs][4];

  SDX_QUADS_INLINE void start(const int32x4_t (&first)[M][2]) {
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
      const int second = 2 * p + 1 < M ? 2 * p + 1 : 2 * p;
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const int64x2_t x = vreinterpretq_s64_s32(first[2 * p][v]), y = vreinterpretq_s64_s32(first[second][v]);
        of[p][2 * v] = vreinterpretq_s32_s64(vzip1q_s64(x, y));
        of[p][2 * v + 1] = vreinterpretq_s32_s64(vzip2q_s64(x, y));
      }
    }
  }
  SDX_QUADS_INLINE int32x4_t sum(int i, int v) const {
    const int64x2_t x = vreinterpretq_s64_s32(of[i / 2][2 * v]), y = vreinterpretq_s64_s32(of[i / 2][2 * v + 1]);
    return vreinterpretq_s32_s64(i % 2 == 0 ? vzip1q_s64(x, y) : vzip2q_s64(x, y));
  }
  SDX_QUADS_INLINE void merge(const MatrixSums& other) {
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) of[p][j] = vaddq_s32(of[p][j], other.of[p][j]);
    }
  }

  // Eight bytes of each pair of rows times two quads.
  SDX_QUADS_INLINE void add_eight(const int8x16_t (&a)[kPairs], const std::int8_t* b, const std::int8_t* next) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const int32x4_t x = vreinterpretq_s32_s8(vld1q_s8(b + 16 * v));
      const int32x4_t y = next != nullptr ? vreinterpretq_s32_s8(vld1q_s8(next + 16 * v)) : vdupq_n_s32(0);
      const int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(x, y)), high = vreinterpretq_s8_s32(vzip2q_s32(x, y));
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) {
        of[p][2 * v] = vmmlaq_s32(of[p][2 * v], a[p], low);
        of[p][2 * v + 1] = vmmlaq_s32(of[p][2 * v + 1], a[p], high);
      }
    }
  }
  SDX_QUADS_INLINE void add_four(const std::int8_t* const (&rows)[M], std::int64_t k, const std::int8_t* b) {
    int8x16_t first[kPairs], second[kPairs];
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
      const int64x2_t x = vreinterpretq_s64_s8(vld1q_s8(rows[2 * p] + k));
      const int64x2_t y = 2 * p + 1 < M ? vreinterpretq_s64_s8(vld1q_s8(rows[2 * p + 1 < M ? 2 * p + 1 : 0] + k)) : x;
      first[p] = vreinterpretq_s8_s64(vzip1q_s64(x, y));
      second[p] = vreinterpretq_s8_s64(vzip2q_s64(x, y));
    }
    add_eight(first, b, b + 32);
    add_eight(second, b + 64, b + 96);
  }
  SDX_QUADS_INLINE void add_one(const std::int8_t* const (&rows)[M], std::int64_t k, const std::int8_t* b) {
    int8x16_t a[kPairs];
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
      const int64x2_t x = vreinterpretq_s64_s8(quad_at(rows[2 * p] + k));
      const int64x2_t y = 2 * p + 1 < M ? vreinterpretq_s64_s8(quad_at(rows[2 * p + 1 < M ? 2 * p + 1 : 0] + k)) : x;
      a[p] = vreinterpretq_s8_s64(vzip1q_s64(x, y));
    }
    add_eight(a, b, nullptr);  // the panel's second quad is zero, so a's does not matter
  }
};

#endif

// Adds all quads of M rows, `stride` bytes apart. One and two rows have two sets of sums, to hide the instruction's latency.
template <int M>
SDX_QUADS_INLINE void multiply(const std::int8_t* a, std::int64_t stride, std::int64_t quads, const std::int8_t* b,
                               const char* ahead, std::int64_t ahead_step, SDX_SUMS<M>& sums) {
  const std::int8_t* rows[M];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) rows[i] = a + i * stride;
  std::int64_t q = 0;
  if constexpr (M <= 2) {
    const int32x4_t zero[M][2] = {};
    SDX_SUMS<M> other;
    other.start(zero);
    for (; q + 8 <= quads; q += 8, b += 256) {
      // Few rows wait for weights from memory, and the hardware's prefetch stops at page borders.
#pragma GCC unroll 4
      for (int line = 0; line < 256; line += 64) prefetch_after(b, 4096 + line);
      sums.add_four(rows, 4 * q, b);
      other.add_four(rows, 4 * q + 16, b + 128);
    }
    sums.merge(other);
  }
  for (; q + 4 <= quads; q += 4, b += 128, ahead += ahead_step) {
    __builtin_prefetch(ahead, 0, 2);
    sums.add_four(rows, 4 * q, b);
  }
  for (; q < quads; ++q, b += 32) sums.add_one(rows, 4 * q, b);
}

// Computes M rows of bytes.
template <int M>
void bytes_tile(const QQuadPanel& g, std::int64_t row, const char* ahead, std::int64_t ahead_step) {
  const QQuadFinish& f = *g.finish;
  int32x4_t bias[M][2];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) bias[i][0] = vld1q_s32(f.bias), bias[i][1] = vld1q_s32(f.bias + 4);
  SDX_SUMS<M> sums;
  sums.start(bias);
  multiply<M>(reinterpret_cast<const std::int8_t*>(g.a) + row * g.stride, g.stride, g.quads, g.b, ahead, ahead_step, sums);
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) store_bytes(g, bytes_of(f, sums.sum(i, 0), sums.sum(i, 1)), g.y + (row + i) * g.ldc);
}

// Computes M rows of int32 sums.
template <int M>
void sums_tile(const QRows& t) {
  int32x4_t first[M][2] = {};
  if (t.add) {
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) first[i][0] = vld1q_s32(t.sums + 8 * i), first[i][1] = vld1q_s32(t.sums + 8 * i + 4);
  }
  SDX_SUMS<M> sums;
  sums.start(first);
  const auto* b = reinterpret_cast<const std::int8_t*>(t.b);
  multiply<M>(reinterpret_cast<const std::int8_t*>(t.a), 2 * t.stride, t.pairs, b, reinterpret_cast<const char*>(b), 0, sums);
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
    vst1q_s32(t.sums + 8 * i, sums.sum(i, 0));
    vst1q_s32(t.sums + 8 * i + 4, sums.sum(i, 1));
  }
}

}  // namespace

inline constexpr BytesTile kBytes[kRows] = {bytes_tile<1>, bytes_tile<2>, bytes_tile<3>, bytes_tile<4>,
                                            bytes_tile<5>, bytes_tile<6>, bytes_tile<7>, bytes_tile<8>};
inline constexpr QRowsSums kSums[kRows] = {sums_tile<1>, sums_tile<2>, sums_tile<3>, sums_tile<4>,
                                           sums_tile<5>, sums_tile<6>, sums_tile<7>, sums_tile<8>};

}  // namespace sdx::cpu::SDX_SPACE
HWY_POP_ATTRIBUTES

#undef SDX_TARGET
#undef SDX_SPACE
#undef SDX_SUMS
