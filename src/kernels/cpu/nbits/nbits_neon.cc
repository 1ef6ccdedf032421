#include "kernels/cpu/nbits/nbits_neon.h"

#if defined(__aarch64__) && defined(__GNUC__)

#include <arm_neon.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/system/cpu_features.h"
#include "kernels/cpu/simd/attributes.h"
#include "kernels/cpu/simd/prefetch.h"

#define SDX_NBITS_INLINE [[gnu::always_inline]] inline

namespace sdx::cpu {
namespace {

constexpr std::int64_t kColumns = 8;  // of a panel
// With fewer lines, interleaving codes and sums for SMMLA takes more instructions than it saves.
constexpr std::int64_t kMatrixLines = 8;
template <int kBits>
constexpr std::int64_t kUnitBytes = kColumns * kBits;

using Product = void (*)(const NBitsLayout& l, const NBitsRowFormat& f, const std::uint32_t* panel, const std::byte* rows,
                         float* out);

SDX_NBITS_INLINE float float_at(const std::byte* p) {
  float v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

// Eight codes of each column, in quads as digits lie: codes[quad][half of the columns].
struct Unit {
  int8x16_t codes[2][2];
};

// Codes of 8 bits lose 128, which makes them signed.
template <int kBits>
SDX_NBITS_INLINE Unit unit_at(const std::uint8_t* p) {
  Unit u;
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    if constexpr (kBits == 4) {
      const uint8x16_t pairs = vld1q_u8(p + 16 * v);
      u.codes[0][v] = vreinterpretq_s8_u8(vandq_u8(pairs, vdupq_n_u8(15)));
      u.codes[1][v] = vreinterpretq_s8_u8(vshrq_n_u8(pairs, 4));
    } else {
      u.codes[0][v] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(p + 16 * v), vdupq_n_u8(128)));
      u.codes[1][v] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(p + 32 + 16 * v), vdupq_n_u8(128)));
    }
  }
  return u;
}

// The zero points of codes as unit_at() gives them.
template <int kBits>
SDX_NBITS_INLINE void zeros_of(const void* bytes, int32x4_t* zero) {
  const int16x8_t wide = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(static_cast<const std::uint8_t*>(bytes))));
  const int16x8_t moved = kBits == 8 ? vsubq_s16(wide, vdupq_n_s16(128)) : wide;
  zero[0] = vmovl_s16(vget_low_s16(moved));
  zero[1] = vmovl_high_s16(moved);
}

// The lowest digit of `bits` bits, signed; v becomes the rest above it.
template <int kBits>
SDX_NBITS_INLINE int32x4_t lowest_digit(int32x4_t& v) {
  const int32x4_t half = vdupq_n_s32(1 << (kBits - 1));
  const int32x4_t digit = vsubq_s32(vandq_s32(vaddq_s32(v, half), vdupq_n_s32((1 << kBits) - 1)), half);
  v = vshrq_n_s32(vsubq_s32(v, digit), kBits);
  return digit;
}

template <int D>
SDX_NBITS_INLINE void cut(int32x4_t v, int32x4_t* digits) {
  if constexpr (D == 3) digits[0] = lowest_digit<7>(v), digits[1] = lowest_digit<8>(v);
  if constexpr (D == 2) digits[0] = lowest_digit<8>(v);
  digits[D - 1] = v;
}

// Eight activations in the order of a unit's two quads.
template <int kBits>
SDX_NBITS_INLINE float32x4x2_t eight_at(const float* x) {
  if constexpr (kBits == 4) return vld2q_f32(x);
  return {{vld1q_f32(x), vld1q_f32(x + 4)}};
}

template <int kBits, int D>
bool digitise_part(const NBitsRowFormat& f, const float* x, std::int32_t factor, std::byte* record) {
  constexpr float kMost[3] = {127.0F, 127.0F * 256.0F, 127.0F * 32768.0F};
  uint32x4_t top = vdupq_n_u32(0);
  for (std::int64_t i = 0; i < f.part; i += 4) {
    top = vmaxq_u32(top, vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x + i)), vdupq_n_u32(0x7FFFFFFF)));
  }
  const std::uint32_t bits = vmaxvq_u32(top);
  if (bits == 0) {
    std::memset(record, 0, static_cast<std::size_t>(f.record_bytes));
    return true;
  }
  if (bits >= std::bit_cast<std::uint32_t>(kNBitsMost) || bits < std::bit_cast<std::uint32_t>(1e-30F)) return false;
  const auto most = std::bit_cast<float>(bits);
  const float limit = kMost[D - 1];
  const float32x4_t inverse = vdupq_n_f32(limit / most);
  int32x4_t sum = vdupq_n_s32(0), sums[D];
  for (int d = 0; d < D; ++d) sums[d] = vdupq_n_s32(0);
  auto* to = reinterpret_cast<std::int8_t*>(record + 8 + 4 * D);
  for (std::int64_t i = 0; i < f.part; i += 8) {
    const float32x4x2_t eight = eight_at<kBits>(x + i);
    int32x4_t digits[2][D];
    for (int q = 0; q < 2; ++q) {
      const int32x4_t v = vcvtnq_s32_f32(vmulq_f32(eight.val[q], inverse));
      sum = vaddq_s32(sum, v);
      cut<D>(v, digits[q]);
    }
    for (int d = 0; d < D; ++d, to += 8) {
      sums[d] = vaddq_s32(sums[d], vaddq_s32(digits[0][d], digits[1][d]));
      vst1_s8(to, vmovn_s16(vcombine_s16(vmovn_s32(digits[0][d]), vmovn_s32(digits[1][d]))));
    }
  }
  const float scale = most / limit, total = scale * static_cast<float>(vaddvq_s32(sum));
  std::memcpy(record, &scale, 4);
  std::memcpy(record + 4, &total, 4);
  for (int d = 0; d < D; ++d) {
    const std::int32_t correction = factor * vaddvq_s32(sums[d]);
    std::memcpy(record + 8 + 4 * d, &correction, 4);
  }
  return true;
}

// By what a part's sum of digits is multiplied for its correction: the zero point less 128 for codes of 8 bits (see unit_at()),
// negated; -1 if the kernel multiplies it by that.
std::int32_t factor_of(const NBitsLayout& l) {
  switch (l.zeros) {
    case NBitsZeros::none: return l.bits == 4 ? -8 : 0;
    case NBitsZeros::floats: return l.bits == 4 ? 0 : 128;
    default: return -1;
  }
}

bool digitise(const NBitsLayout& l, const NBitsRowFormat& f, const float* x, std::int64_t n, std::int64_t first,
              std::int64_t count, std::byte* row) {
  constexpr NBitsPart kParts[2][3] = {{digitise_part<4, 1>, digitise_part<4, 2>, digitise_part<4, 3>},
                                      {digitise_part<8, 1>, digitise_part<8, 2>, digitise_part<8, 3>}};
  const NBitsPart part = kParts[l.bits == 8 ? 1 : 0][f.digits - 1];
  return nbits_digitise_parts(part, factor_of(l), f, x, n, first, count, row);
}

}  // namespace
}  // namespace sdx::cpu

#define SDX_TARGET SDX_NEON_DOTS
#define SDX_SPACE nbits_dots
#define SDX_SUMS DotSums
#include "kernels/cpu/nbits/nbits_neon-inl.h"

#define SDX_MATRICES
#define SDX_TARGET SDX_NEON_I8MM
#define SDX_SPACE nbits_i8mm
#define SDX_SUMS MatrixSums
#include "kernels/cpu/nbits/nbits_neon-inl.h"

namespace sdx::cpu {
namespace {

void panel(const NBitsLayout& l, const NBitsRowFormat& f, const std::uint32_t* panel, const std::byte* rows, std::int64_t m,
           float* out) {
  const bool matrices = m * f.digits >= kMatrixLines && use_i8mm();
  (matrices ? nbits_i8mm::product_of : nbits_dots::product_of)(l.bits, f.digits, m)(l, f, panel, rows, out);
}

}  // namespace

const NBitsDigitKernels* nbits_neon_kernels() {
  static constexpr NBitsDigitKernels kKernels{digitise, panel, true};
  return &kKernels;
}

}  // namespace sdx::cpu

#else

namespace sdx::cpu {

const NBitsDigitKernels* nbits_neon_kernels() { return nullptr; }

}  // namespace sdx::cpu

#endif
