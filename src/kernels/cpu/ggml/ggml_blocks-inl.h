// Classes of blocks: each(bytes, add) calls add(turn, offset, w) with vectors of weights; `turn` counts the calls, `offset` is
// the first weight's position in the block. Included once per instruction set.
#if defined(SDX_KERNELS_CPU_GGML_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SDX_KERNELS_CPU_GGML_BLOCKS_INL_H_
#undef SDX_KERNELS_CPU_GGML_BLOCKS_INL_H_
#else
#define SDX_KERNELS_CPU_GGML_BLOCKS_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "kernels/cpu/simd/simd-inl.h"
#include "tensor/ggml.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

using Byte = std::uint8_t;
using DI = hn::RebindToSigned<DF>;
using VI = hn::Vec<DI>;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(DF()));
static_assert(kLanes <= 16, "scales change every 16 weights");

HWY_INLINE std::uint32_t read_u32(const Byte* p) {
  std::uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}
HWY_INLINE std::uint16_t read_u16(const Byte* p) {
  std::uint16_t v;
  std::memcpy(&v, p, 2);
  return v;
}

// Exact, subnormals included.
HWY_INLINE float half_at(const Byte* p) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(read_u16(p))));
#else
  const std::uint32_t half = read_u16(p), magnitude = half & 0x7FFFU;
  std::uint32_t bits = magnitude << 13;
  float v;
  if (magnitude > 0x7BFFU) {
    bits |= 0x7F800000U;
    std::memcpy(&v, &bits, 4);
  } else {
    std::memcpy(&v, &bits, 4);
    v *= 5.192296858534828e+33F;  // 2^112
  }
  return (half & 0x8000U) != 0 ? -v : v;
#endif
}

// Two consecutive halves, each in all lanes.
HWY_INLINE void two_halves(const Byte* p, VF& first, VF& second) {
  const DF d;
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  const __m128 both = _mm_cvtph_ps(_mm_cvtsi32_si128(static_cast<int>(read_u32(p))));
  first = hn::Set(d, _mm_cvtss_f32(both));
  second = hn::Set(d, _mm_cvtss_f32(_mm_movehdup_ps(both)));
#else
  first = hn::Set(d, half_at(p));
  second = hn::Set(d, half_at(p + 2));
#endif
}

HWY_INLINE VI load_bytes(const Byte* p) { return hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<std::uint8_t, DF>(), p)); }
HWY_INLINE VI load_signed(const void* p) {
  return hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<std::int8_t, DF>(), static_cast<const std::int8_t*>(p)));
}
HWY_INLINE VI set_i(int v) { return hn::Set(DI(), v); }
HWY_INLINE VF to_f(VI v) { return hn::ConvertTo(DF(), v); }

struct PlainF32 {
  static constexpr bool kPlain = true;
  static constexpr int kElements = 4 * kLanes, kBytes = 4 * kElements;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) add(i, i * kLanes, hn::LoadU(DF(), reinterpret_cast<const float*>(b) + i * kLanes));
  }
  static float one(const Byte* b) {
    float v;
    std::memcpy(&v, b, 4);
    return v;
  }
};

struct PlainF16 {
  static constexpr bool kPlain = true;
  static constexpr int kElements = 4 * kLanes, kBytes = 2 * kElements;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) add(i, i * kLanes, load(b + 2 * i * kLanes));
  }
  static float one(const Byte* b) { return half_at(b); }

 private:
  static HWY_INLINE VF load(const Byte* p) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
    const hn::Rebind<hwy::float16_t, DF> d16;
    return hn::PromoteTo(DF(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
#else
    return widened_half(reinterpret_cast<const std::uint16_t*>(p));
#endif
  }
};

struct PlainBf16 {
  static constexpr bool kPlain = true;
  static constexpr int kElements = 4 * kLanes, kBytes = 2 * kElements;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) add(i, i * kLanes, widened_bfloat(reinterpret_cast<const std::uint16_t*>(b + 2 * i * kLanes)));
  }
  static float one(const Byte* b) {
    const std::uint32_t bits = static_cast<std::uint32_t>(read_u16(b)) << 16;
    float v;
    std::memcpy(&v, &bits, 4);
    return v;
  }
};

// Weights q * scale + low for codes of 4 bits. With 16 lanes they come from a table of all 16 in a register, indexed by the code
// in place in its word: no masking, no conversion.
struct Nibbles {
#if SDX_512_BITS
  VF table;
  HWY_INLINE Nibbles(VF scale, VF low) : table(hn::MulAdd(hn::Iota(DF(), 0.0F), scale, low)) {}
  HWY_INLINE VF low(VI word) const { return VF{_mm512_permutexvar_ps(word.raw, table.raw)}; }
  HWY_INLINE VF high(VI word) const { return low(hn::ShiftRight<4>(word)); }
#else
  VF scale_, low_;
  HWY_INLINE Nibbles(VF scale, VF low) : scale_(scale), low_(low) {}
  HWY_INLINE VF low(VI word) const { return hn::MulAdd(to_f(hn::And(word, set_i(15))), scale_, low_); }
  HWY_INLINE VF high(VI word) const { return hn::MulAdd(to_f(hn::ShiftRight<4>(word)), scale_, low_); }
#endif
};

template <bool kMin>
struct BlocksQ4 {
  static constexpr bool kPlain = false;
  static constexpr int kElements = 32, kBytes = kMin ? 20 : 18;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    VF scale, low;
    if constexpr (kMin) {
      two_halves(b, scale, low);
    } else {
      scale = hn::Set(DF(), half_at(b));
      low = hn::Mul(scale, hn::Set(DF(), -8.0F));  // exact
    }
    const Nibbles nibbles(scale, low);
    const Byte* codes = b + (kMin ? 4 : 2);
    HWY_UNROLL(4)
    for (int i = 0; i < 16 / kLanes; ++i) {
      const VI word = load_bytes(codes + i * kLanes);
      add(2 * i, i * kLanes, nibbles.low(word));
      add(2 * i + 1, 16 + i * kLanes, nibbles.high(word));
    }
  }
};

template <bool kMin>
struct BlocksQ5 {
  static constexpr bool kPlain = false;
  static constexpr int kElements = 32, kBytes = kMin ? 24 : 22;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    const DI di;
    VF scale, low;
    if constexpr (kMin) {
      two_halves(b, scale, low);
    } else {
      scale = hn::Set(DF(), half_at(b));
      low = hn::Mul(scale, hn::Set(DF(), -16.0F));
    }
    const auto fifth = static_cast<std::int32_t>(read_u32(b + (kMin ? 4 : 2)));
    const Byte* codes = b + (kMin ? 8 : 6);
    HWY_UNROLL(4)
    for (int i = 0; i < 16 / kLanes; ++i) {
      const VI word = load_bytes(codes + i * kLanes);
      // Bit 0 of each lane: the fifth bit of code i * lanes + lane.
      const VI bits = hn::Shl(set_i(1), hn::Iota(di, i * kLanes));
      const VI upper = hn::Shl(set_i(1), hn::Iota(di, 16 + i * kLanes));
      const VI sixteen = set_i(16), all = set_i(fifth);
      const VI first = hn::IfThenElseZero(hn::TestBit(all, bits), sixteen),
               second = hn::IfThenElseZero(hn::TestBit(all, upper), sixteen);
      add(2 * i, i * kLanes, hn::MulAdd(to_f(hn::Or(hn::And(word, set_i(15)), first)), scale, low));
      add(2 * i + 1, 16 + i * kLanes, hn::MulAdd(to_f(hn::Or(hn::ShiftRight<4>(word), second)), scale, low));
    }
  }
};

struct BlocksQ8 {
  static constexpr bool kPlain = false;
  static constexpr int kElements = 32, kBytes = 34;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    const VF scale = hn::Set(DF(), half_at(b));
    HWY_UNROLL(8)
    for (int i = 0; i < 32 / kLanes; ++i) add(i, i * kLanes, hn::Mul(to_f(load_signed(b + 2 + i * kLanes)), scale));
  }
};

// Groups of 16 weights are processed in pairs, so that neighbours have separate sums.
struct BlocksQ2K {
  static constexpr bool kPlain = false;
  static constexpr int kElements = 256, kBytes = 84;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    const float scale = half_at(b + 80), min = half_at(b + 82);
    for (int group = 0; group < 16; group += 2) {
      part(b, group, 0, scale, min, add);
      part(b, group + 1, 2, scale, min, add);
    }
  }

 private:
  template <class Add>
  static HWY_INLINE void part(const Byte* b, int group, int turn, float scale, float min, const Add& add) {
    const DF d;
    const VF s = hn::Set(d, scale * static_cast<float>(b[group] & 15)),
             m = hn::Set(d, -(min * static_cast<float>(b[group] >> 4)));
    const Byte* codes = b + 16 + group / 8 * 32 + group % 2 * 16;
    const int shift = group % 8 / 2 * 2;
    HWY_UNROLL(4)
    for (int i = 0; i < 16 / kLanes; ++i) {
      const VI code = hn::And(hn::ShiftRightSame(load_bytes(codes + i * kLanes), shift), set_i(3));
      add(turn + i, group * 16 + i * kLanes, hn::MulAdd(to_f(code), s, m));
    }
  }
};

struct BlocksQ3K {
  static constexpr bool kPlain = false;
  static constexpr int kElements = 256, kBytes = 110;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    const float scale = half_at(b + 108);
    for (int group = 0; group < 16; group += 2) {
      part(b, group, 0, scale, add);
      part(b, group + 1, 2, scale, add);
    }
  }

 private:
  template <class Add>
  static HWY_INLINE void part(const Byte* b, int group, int turn, float scale, const Add& add) {
    const int low = group < 8 ? b[96 + group] & 15 : b[88 + group] >> 4;
    const int six = (low | (b[104 + group % 4] >> (2 * (group / 4)) & 3) << 4) - 32;
    const VF s = hn::Set(DF(), scale * static_cast<float>(six));
    const Byte *codes = b + 32 + group / 8 * 32 + group % 2 * 16, *high = b + group % 2 * 16;
    const int shift = group % 8 / 2 * 2;
    HWY_UNROLL(4)
    for (int i = 0; i < 16 / kLanes; ++i) {
      const VI two = hn::And(hn::ShiftRightSame(load_bytes(codes + i * kLanes), shift), set_i(3));
      const VI third = hn::And(hn::ShiftRightSame(load_bytes(high + i * kLanes), group / 2), set_i(1));
      add(turn + i, group * 16 + i * kLanes, hn::Mul(to_f(hn::Sub(hn::Or(two, hn::ShiftLeft<2>(third)), set_i(4))), s));
    }
  }
};

// Eight scales and eight minimums of 6 bits from 12 bytes.
HWY_INLINE void unpack_sixes(const Byte* p, Byte* scales, Byte* mins) {
  const std::uint32_t u0 = read_u32(p), u1 = read_u32(p + 4), u2 = read_u32(p + 8);
  const std::uint32_t s[2] = {u0 & 0x3F3F3F3FU, (u2 & 0x0F0F0F0FU) | (u0 >> 6 & 0x03030303U) << 4};
  const std::uint32_t m[2] = {u1 & 0x3F3F3F3FU, (u2 >> 4 & 0x0F0F0F0FU) | (u1 >> 6 & 0x03030303U) << 4};
  std::memcpy(scales, s, 8);
  std::memcpy(mins, m, 8);
}

template <bool kFive>
struct BlocksQ45K {
  static constexpr bool kPlain = false;
  static constexpr int kElements = 256, kBytes = kFive ? 176 : 144;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    const DF d;
    const float scale = half_at(b), min = -half_at(b + 2);
    Byte scales[8], mins[8];
    unpack_sixes(b + 4, scales, mins);
    const Byte* codes = b + (kFive ? 48 : 16);
    HWY_UNROLL(4)
    for (int pair = 0; pair < 4; ++pair, codes += 32) {
      const VF s0 = hn::Set(d, scale * static_cast<float>(scales[2 * pair])),
               m0 = hn::Set(d, min * static_cast<float>(mins[2 * pair]));
      const VF s1 = hn::Set(d, scale * static_cast<float>(scales[2 * pair + 1]));
      const VF m1 = hn::Set(d, min * static_cast<float>(mins[2 * pair + 1]));
      if constexpr (kFive) {
        HWY_UNROLL(8)
        for (int i = 0; i < 32 / kLanes; ++i) {
          const VI word = load_bytes(codes + i * kLanes), high = hn::ShiftRightSame(load_bytes(b + 16 + i * kLanes), 2 * pair);
          const VI first = hn::Or(hn::And(word, set_i(15)), hn::ShiftLeft<4>(hn::And(high, set_i(1))));
          const VI second = hn::Or(hn::ShiftRight<4>(word), hn::ShiftLeft<3>(hn::And(high, set_i(2))));
          add(2 * i, pair * 64 + i * kLanes, hn::MulAdd(to_f(first), s0, m0));
          add(2 * i + 1, pair * 64 + 32 + i * kLanes, hn::MulAdd(to_f(second), s1, m1));
        }
      } else {
        const Nibbles first(s0, m0), second(s1, m1);
        HWY_UNROLL(8)
        for (int i = 0; i < 32 / kLanes; ++i) {
          const VI word = load_bytes(codes + i * kLanes);
          add(2 * i, pair * 64 + i * kLanes, first.low(word));
          add(2 * i + 1, pair * 64 + 32 + i * kLanes, second.high(word));
        }
      }
    }
  }
};

struct BlocksQ6K {
  static constexpr bool kPlain = false;
  static constexpr int kElements = 256, kBytes = 210;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    const float d = half_at(b + 208);
    const auto* scales = reinterpret_cast<const std::int8_t*>(b + 192);
    half<0>(b, b + 128, scales, d, add);
    half<128>(b + 64, b + 160, scales + 8, d, add);
  }

 private:
  template <int kOffset, class Add>
  static HWY_INLINE void half(const Byte* low, const Byte* high, const std::int8_t* scales, float d, const Add& add) {
    const auto scale = [&](int i) HWY_ATTR { return hn::Set(DF(), d * static_cast<float>(scales[i])); };
    const VI two = set_i(0x30), four = set_i(15), middle = set_i(32);
    HWY_UNROLL(8)
    for (int l = 0; l < 32; l += kLanes) {
      const VI a = load_bytes(low + l), b = load_bytes(low + 32 + l), h = load_bytes(high + l);
      const VI q0 = hn::Or(hn::And(a, four), hn::And(hn::ShiftLeft<4>(h), two));
      const VI q1 = hn::Or(hn::And(b, four), hn::And(hn::ShiftLeft<2>(h), two));
      const VI q2 = hn::Or(hn::ShiftRight<4>(a), hn::And(h, two));
      const VI q3 = hn::Or(hn::ShiftRight<4>(b), hn::And(hn::ShiftRight<2>(h), two));
      add(0, kOffset + l, hn::Mul(to_f(hn::Sub(q0, middle)), scale(l / 16)));
      add(1, kOffset + 32 + l, hn::Mul(to_f(hn::Sub(q1, middle)), scale(2 + l / 16)));
      add(2, kOffset + 64 + l, hn::Mul(to_f(hn::Sub(q2, middle)), scale(4 + l / 16)));
      add(3, kOffset + 96 + l, hn::Mul(to_f(hn::Sub(q3, middle)), scale(6 + l / 16)));
    }
  }
};

// The values of codes of 4 bits, as the instruction set looks them up. With 16 lanes: floats in one register. Otherwise: bytes,
// moved so that the least is 0, one in each word. The bytes above a code, which are 0, must find a 0, too: with `kFlip` code 15
// has the least value, and codes are inverted.
template <const std::int8_t (&kValues)[16], int kLeast, bool kFlip>
struct CodeValues {
#if SDX_512_BITS
  VF table;
  explicit HWY_INLINE CodeValues(float scale) : table(hn::Mul(hn::Load(DF(), kFloats.values), hn::Set(DF(), scale))) {}
  HWY_INLINE VF low(VI word) const { return VF{_mm512_permutexvar_ps(word.raw, table.raw)}; }
  HWY_INLINE VF high(VI word) const { return low(hn::ShiftRight<4>(word)); }
#elif HWY_TARGET == HWY_SCALAR
  float scale_;
  explicit HWY_INLINE CodeValues(float scale) : scale_(scale) {}
  HWY_INLINE VF low(VI word) const { return hn::Set(DF(), kFloats.values[hn::GetLane(word) & 15] * scale_); }
  HWY_INLINE VF high(VI word) const { return low(hn::ShiftRight<4>(word)); }
#else
  static constexpr hn::Repartition<std::uint8_t, DF> kBytesTag{};
  hn::Vec<hn::Repartition<std::uint8_t, DF>> table;
  VF scale_, least;
  explicit HWY_INLINE CodeValues(float scale)
      : table(hn::LoadDup128(kBytesTag, kBytes.values)),
        scale_(hn::Set(DF(), scale)),
        least(hn::Set(DF(), scale * static_cast<float>(kLeast))) {}  // exact
  HWY_INLINE VF at(VI code) const {
    const VI found = hn::BitCast(DI(), hn::TableLookupBytes(table, hn::BitCast(kBytesTag, code)));
    return hn::MulAdd(to_f(found), scale_, least);
  }
  HWY_INLINE VF low(VI word) const { return at(kFlip ? hn::AndNot(word, set_i(15)) : hn::And(word, set_i(15))); }
  HWY_INLINE VF high(VI word) const {
    const VI code = hn::ShiftRight<4>(word);
    return at(kFlip ? hn::AndNot(code, set_i(15)) : code);
  }
#endif

 private:
  struct Floats {
    alignas(64) float values[16];
    constexpr Floats() : values() {
      for (int i = 0; i < 16; ++i) values[i] = static_cast<float>(kValues[i]);
    }
  };
  struct Bytes {
    alignas(16) std::uint8_t values[16];
    constexpr Bytes() : values() {
      for (int i = 0; i < 16; ++i) values[kFlip ? 15 - i : i] = static_cast<std::uint8_t>(kValues[i] - kLeast);
    }
  };
  static constexpr Floats kFloats{};
  static constexpr Bytes kBytes{};
  static_assert(kBytes.values[0] == 0);
};
using Uneven = CodeValues<kUnevenValues, -127, false>;
using Float4 = CodeValues<kFloat4Values, -12, true>;

// The weights of 16 bytes of codes: of the low nibbles, then of the high ones.
template <class Values, class Add>
HWY_INLINE void looked_up(const Byte* codes, float scale, int turn, int offset, const Add& add) {
  const Values values(scale);
  HWY_UNROLL(4)
  for (int i = 0; i < 16 / kLanes; ++i) {
    const VI word = load_bytes(codes + i * kLanes);
    add(turn + 2 * i, offset + i * kLanes, values.low(word));
    add(turn + 2 * i + 1, offset + 16 + i * kLanes, values.high(word));
  }
}

struct BlocksIQ4NL {
  static constexpr bool kPlain = false;
  static constexpr int kElements = 32, kBytes = 18;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    looked_up<Uneven>(b + 2, half_at(b), 0, 0, add);
  }
};

struct BlocksMXFP4 {
  static constexpr bool kPlain = false;
  static constexpr int kElements = 32, kBytes = 17;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    const std::uint32_t e = *b, bits = e < 2 ? 0x00200000U << e : (e - 1) << 23;  // half of 2^(e - 127)
    float scale;
    std::memcpy(&scale, &bits, 4);
    looked_up<Float4>(b + 1, scale, 0, 0, add);
  }
};

struct BlocksIQ4XS {
  static constexpr bool kPlain = false;
  static constexpr int kElements = 256, kBytes = 136;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    const float d = half_at(b);
    const std::uint32_t high = read_u16(b + 2), low = read_u32(b + 4);
    for (int pair = 0; pair < 4; ++pair) {
      const auto scale = [&](int j) HWY_ATTR {
        return d * static_cast<float>(static_cast<int>((low >> (4 * j) & 15) | (high >> (2 * j) & 3) << 4) - 32);
      };
      looked_up<Uneven>(b + 8 + 32 * pair, scale(2 * pair), 0, 64 * pair, add);
      looked_up<Uneven>(b + 24 + 32 * pair, scale(2 * pair + 1), 2, 64 * pair + 32, add);
    }
  }
};

// Groups of 16 weights have a scale each, and eight bytes.
struct BlocksNVFP4 {
  static constexpr bool kPlain = false;
  static constexpr int kElements = 64, kBytes = 36;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    for (int pair = 0; pair < 2; ++pair) {
      group(b[2 * pair], b + 4 + 16 * pair, 0, 32 * pair, add);
      group(b[2 * pair + 1], b + 12 + 16 * pair, 2, 32 * pair + 16, add);
    }
  }

 private:
  template <class Add>
  static HWY_INLINE void group(Byte scale, const Byte* codes, int turn, int offset, const Add& add) {
    // Half of a float of 4 exponent and 3 mantissa bits, whose own exponent is 7 at 1.
    const std::uint32_t bits = scale == 0x7F ? 0 : (scale & 0x7FU) << 20;
    float s;
    std::memcpy(&s, &bits, 4);
    const Float4 values(s * 6.646139978924579e+35F);  // 2^119
#if SDX_512_BITS
    const hn::Half<DI> half;
    const auto word = hn::PromoteTo(half, hn::LoadU(hn::Rebind<std::uint8_t, hn::Half<DF>>(), codes));
    add(turn, offset, values.low(hn::Combine(DI(), hn::ShiftRight<4>(word), word)));
#else
    HWY_UNROLL(8)
    for (int i = 0; i < 8 / kLanes; ++i) {
      const VI word = load_bytes(codes + i * kLanes);
      add(turn + i, offset + i * kLanes, values.low(word));
      add(turn + i + 1, offset + 8 + i * kLanes, values.high(word));
    }
#endif
  }
};

struct BlocksTQ2 {
  static constexpr bool kPlain = false;
  static constexpr int kElements = 256, kBytes = 66;
  template <class Add>
  static HWY_INLINE void each(const Byte* b, const Add& add) {
    const float scale = half_at(b + 64);
    const VF s = hn::Set(DF(), scale), low = hn::Set(DF(), -scale);
    const auto weights = [&](VI code) HWY_ATTR { return hn::MulAdd(to_f(code), s, low); };
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < 32 / kLanes; ++i) {
        const VI word = load_bytes(b + half * 32 + i * kLanes), three = set_i(3);
        const int at = half * 128 + i * kLanes;
        add(0, at, weights(hn::And(word, three)));
        add(1, at + 32, weights(hn::And(hn::ShiftRight<2>(word), three)));
        add(2, at + 64, weights(hn::And(hn::ShiftRight<4>(word), three)));
        add(3, at + 96, weights(hn::ShiftRight<6>(word)));
      }
    }
  }
};

// Rarer formats: a block is decoded first, number by number.
template <GgmlType kType, int kSize, int kSizeInBytes>
struct Decoded {
  static constexpr bool kPlain = false;
  static constexpr int kElements = kSize, kBytes = kSizeInBytes;
  template <class Add>
  static void each(const Byte* b, const Add& add) {
    static const GgmlFormat& format = *find_ggml(static_cast<std::uint32_t>(kType));
    HWY_ALIGN float weights[kSize];
    ggml_dequantize(format, b, 1, weights);
    for (int i = 0; i < kSize; i += 4 * kLanes) {
      HWY_UNROLL(4)
      for (int turn = 0; turn < 4; ++turn) add(turn, i + turn * kLanes, hn::Load(DF(), weights + i + turn * kLanes));
    }
  }
};

}  // namespace
}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#endif
