// Products of lines of digits and panels of codes, for nbits_neon.cc, which includes this once for each instruction. It sets
// SDX_TARGET, SDX_SPACE and SDX_SUMS: the class with a part's sums. No header: no guard.

HWY_PUSH_ATTRIBUTES(SDX_TARGET)
namespace sdx::cpu::SDX_SPACE {
namespace {

// Sums of R lines; get(line, v): columns 4 v to 4 v + 3.
template <int R>
struct DotSums {
  int32x4_t of[R][2];

  SDX_NBITS_INLINE void start(const int32x4_t (&first)[R][2]) { std::memcpy(of, first, sizeof(of)); }
  SDX_NBITS_INLINE int32x4_t get(int line, int v) const { return of[line][v]; }
  SDX_NBITS_INLINE void add(const Unit& u, const std::int8_t* const (&lines)[R]) {
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const int8x8_t digits = vld1_s8(lines[r]);
      of[r][0] = vdotq_lane_s32(of[r][0], u.codes[0][0], digits, 0);
      of[r][1] = vdotq_lane_s32(of[r][1], u.codes[0][1], digits, 0);
      of[r][0] = vdotq_lane_s32(of[r][0], u.codes[1][0], digits, 1);
      of[r][1] = vdotq_lane_s32(of[r][1], u.codes[1][1], digits, 1);
    }
  }
};

#ifdef SDX_MATRICES

// The same by matrices of two lines and two columns; an odd last line is multiplied twice.
template <int R>
struct MatrixSums {
  static constexpr int kPairs = (R + 1) / 2;
  static constexpr int second(int pair) { return 2 * pair + 1 < R ? 2 * pair + 1 : 2 * pair; }
  int32x4_t of[kPairs][4];

  SDX_NBITS_INLINE void start(const int32x4_t (&first)[R][2]) {
#pragma GCC unroll 6
    for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const int64x2_t x = vreinterpretq_s64_s32(first[2 * p][v]), y = vreinterpretq_s64_s32(first[second(p)][v]);
        of[p][2 * v] = vreinterpretq_s32_s64(vzip1q_s64(x, y));
        of[p][2 * v + 1] = vreinterpretq_s32_s64(vzip2q_s64(x, y));
      }
    }
  }
  SDX_NBITS_INLINE int32x4_t get(int line, int v) const {
    const int64x2_t x = vreinterpretq_s64_s32(of[line / 2][2 * v]), y = vreinterpretq_s64_s32(of[line / 2][2 * v + 1]);
    return vreinterpretq_s32_s64(line % 2 == 0 ? vzip1q_s64(x, y) : vzip2q_s64(x, y));
  }
  SDX_NBITS_INLINE void add(const Unit& u, const std::int8_t* const (&lines)[R]) {
    int8x16_t columns[4];
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const int32x4_t x = vreinterpretq_s32_s8(u.codes[0][v]), y = vreinterpretq_s32_s8(u.codes[1][v]);
      columns[2 * v] = vreinterpretq_s8_s32(vzip1q_s32(x, y));
      columns[2 * v + 1] = vreinterpretq_s8_s32(vzip2q_s32(x, y));
    }
#pragma GCC unroll 6
    for (int p = 0; p < kPairs; ++p) {
      const int8x16_t digits = vcombine_s8(vld1_s8(lines[2 * p]), vld1_s8(lines[second(p)]));
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) of[p][j] = vmmlaq_s32(of[p][j], digits, columns[j]);
    }
  }
};

#endif

// The sums of one part start from its corrections: times the zero points if these are integers.
template <int D, int M>
SDX_NBITS_INLINE void start_part(const std::byte* record, std::int64_t row_bytes, const int32x4_t* zero, SDX_SUMS<D * M>& sums) {
  int32x4_t first[D * M][2];
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 3
    for (int d = 0; d < D; ++d) {
      const int32x4_t c = vld1q_dup_s32(reinterpret_cast<const std::int32_t*>(record + i * row_bytes + 8 + 4 * d));
      first[i * D + d][0] = zero != nullptr ? vmulq_s32(c, zero[0]) : c;
      first[i * D + d][1] = zero != nullptr ? vmulq_s32(c, zero[1]) : c;
    }
  }
  sums.start(first);
}

// A part's exact sum over its digits, as a float. With codes of 8 bits three digits exceed an int32.
template <int kBits, int D, class Sums>
SDX_NBITS_INLINE float32x4_t value_of(const Sums& sums, int line, int v) {
  const int32x4_t low = sums.get(line, v);
  if constexpr (D == 1) return vcvtq_f32_s32(low);
  if constexpr (D == 2) return vcvtq_f32_s32(vaddq_s32(low, vshlq_n_s32(sums.get(line + 1, v), 8)));
  const int32x4_t two = vaddq_s32(low, vshlq_n_s32(sums.get(line + 1, v), 7)), high = sums.get(line + 2, v);
  if constexpr (kBits == 4) return vcvtq_f32_s32(vaddq_s32(two, vshlq_n_s32(high, 15)));
  return vfmaq_n_f32(vcvtq_f32_s32(two), vcvtq_f32_s32(high), 32768.0F);
}

// A panel times M rows of D digits.
template <int kBits, int D, int M>
void product(const NBitsLayout& l, const NBitsRowFormat& f, const std::uint32_t* panel, const std::byte* rows, float* out) {
  float32x4_t total[M][2] = {};
  const std::byte* record = rows;
  for (std::int64_t b = 0; b < l.blocks; ++b) {
    const std::uint32_t* block = panel + b * l.block_units();
    const auto* scales = reinterpret_cast<const float*>(block);
    const auto* codes = reinterpret_cast<const std::uint8_t*>(block + kColumns + l.zero_units());
    int32x4_t zero[2];
    const bool multiplies = l.zeros == NBitsZeros::integers;
    if (multiplies) zeros_of<kBits>(block + kColumns, zero);
    for (std::int64_t s = 0; s < f.parts; ++s, record += f.record_bytes) {
      SDX_SUMS<D * M> sums;
      start_part<D, M>(record, f.row_bytes, multiplies ? zero : nullptr, sums);
      const std::byte* digits = record + 8 + 4 * D;
      // Not unrolled: a part has two or four units.
#pragma GCC unroll 1
      for (std::int64_t u = 0; u < f.part; u += 8, digits += 8 * D, codes += kUnitBytes<kBits>) {
        prefetch_after(codes, 4096);
        const std::int8_t* lines[D * M];
#pragma GCC unroll 12
        for (int r = 0; r < D * M; ++r) lines[r] = reinterpret_cast<const std::int8_t*>(digits + r / D * f.row_bytes + r % D * 8);
        sums.add(unit_at<kBits>(codes), lines);
      }
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) {
        const float scale = float_at(record + i * f.row_bytes);
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) {
          float32x4_t part = vmulq_n_f32(value_of<kBits, D>(sums, i * D, v), scale);
          if (l.zeros == NBitsZeros::floats) {
            const float32x4_t z = vld1q_f32(scales + kColumns + 4 * v);
            part = vfmsq_n_f32(part, z, float_at(record + i * f.row_bytes + 4));
          }
          total[i][v] = vfmaq_f32(total[i][v], part, vld1q_f32(scales + 4 * v));
        }
      }
    }
  }
  for (int i = 0; i < M; ++i) {
    vst1q_f32(out + i * kColumns, total[i][0]);
    vst1q_f32(out + i * kColumns + 4, total[i][1]);
  }
}

template <int kBits>
constexpr Product kProducts[3][4] = {{product<kBits, 1, 1>, product<kBits, 1, 2>, product<kBits, 1, 3>, product<kBits, 1, 4>},
                                     {product<kBits, 2, 1>, product<kBits, 2, 2>, product<kBits, 2, 3>, product<kBits, 2, 4>},
                                     {product<kBits, 3, 1>, product<kBits, 3, 2>, product<kBits, 3, 3>, product<kBits, 3, 4>}};

}  // namespace

inline Product product_of(int bits, int digits, std::int64_t m) {
  return (bits == 4 ? kProducts<4> : kProducts<8>)[digits - 1][m - 1];
}

}  // namespace sdx::cpu::SDX_SPACE
HWY_POP_ATTRIBUTES

#undef SDX_TARGET
#undef SDX_SPACE
#undef SDX_SUMS
