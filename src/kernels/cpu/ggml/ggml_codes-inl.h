// Takes blocks apart into codes of a byte, scales and minimums: see ByteKernels::unpack. Included once per instruction set, by
// files that include ggml_blocks-inl.h.
#if defined(SDX_KERNELS_CPU_GGML_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SDX_KERNELS_CPU_GGML_CODES_INL_H_
#undef SDX_KERNELS_CPU_GGML_CODES_INL_H_
#else
#define SDX_KERNELS_CPU_GGML_CODES_INL_H_
#endif

#include "kernels/cpu/ggml/ggml_blocks-inl.h"
#include "kernels/cpu/ggml/ggml_bytes_simd.h"
#include "kernels/cpu/simd/prefetch.h"

#if SDX_BYTE_PRODUCTS

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// As wide as SSE's and NEON's registers: blocks have 16 bytes of codes, or a multiple.
using D16 = hn::FixedTag<std::uint8_t, 16>;
using V16 = hn::Vec<D16>;

HWY_INLINE V16 load16(const void* p) { return hn::LoadU(D16(), static_cast<const std::uint8_t*>(p)); }
HWY_INLINE void store16(V16 v, std::uint8_t* p) { hn::StoreU(v, D16(), p); }
HWY_INLINE V16 set16(int v) { return hn::Set(D16(), static_cast<std::uint8_t>(v)); }
HWY_INLINE V16 low_nibbles(V16 v) { return hn::And(v, set16(15)); }
HWY_INLINE V16 high_nibbles(V16 v) { return hn::ShiftRight<4>(v); }
// `value` where v has the bit.
HWY_INLINE V16 where_bit(V16 v, int bit, int value) { return hn::IfThenElseZero(hn::TestBit(v, set16(bit)), set16(value)); }

// Where codes, scales and minimums go; advances.
struct CodesTo {
  std::uint8_t* codes;
  float* scales;
  float* minimums;
};

template <bool kMin>
HWY_INLINE void unpack_q4(const Byte* b, CodesTo to) {
  *to.scales = half_at(b);
  if constexpr (kMin) *to.minimums = half_at(b + 2);
  const V16 word = load16(b + (kMin ? 4 : 2));
  store16(low_nibbles(word), to.codes);
  store16(high_nibbles(word), to.codes + 16);
}

// 16 where a bit of two bytes is set, which are bytes 2 half and 2 half + 1 of `bits`.
HWY_INLINE V16 fifth_of(V16 bits, int half) {
  alignas(16) static constexpr std::uint8_t kByte[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  alignas(16) static constexpr std::uint8_t kBit[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const V16 spread = hn::TableLookupBytes(bits, hn::Add(hn::Load(D16(), kByte), set16(2 * half)));
  return hn::IfThenElseZero(hn::TestBit(spread, hn::Load(D16(), kBit)), set16(16));
}

template <bool kMin>
HWY_INLINE void unpack_q5(const Byte* b, CodesTo to) {
  *to.scales = half_at(b);
  if constexpr (kMin) *to.minimums = half_at(b + 2);
  const hn::FixedTag<std::uint32_t, 4> d32;
  const V16 bits = hn::BitCast(D16(), hn::Set(d32, read_u32(b + (kMin ? 4 : 2)))), word = load16(b + (kMin ? 8 : 6));
  store16(hn::Or(low_nibbles(word), fifth_of(bits, 0)), to.codes);
  store16(hn::Or(high_nibbles(word), fifth_of(bits, 1)), to.codes + 16);
}

HWY_INLINE void unpack_q8(const Byte* b, CodesTo to) {
  *to.scales = half_at(b);
  store16(load16(b + 2), to.codes);
  store16(load16(b + 18), to.codes + 16);
}

template <bool kFive>
HWY_INLINE void unpack_q45k(const Byte* b, CodesTo to) {
  const float scale = half_at(b), min = -half_at(b + 2);
  Byte scales[8], mins[8];
  unpack_sixes(b + 4, scales, mins);
  for (int g = 0; g < 8; ++g) {
    to.scales[g] = scale * static_cast<float>(scales[g]);
    to.minimums[g] = min * static_cast<float>(mins[g]);
  }
  const Byte* codes = b + (kFive ? 48 : 16);
  for (int pair = 0; pair < 4; ++pair) {
    HWY_UNROLL(2)
    for (int l = 0; l < 32; l += 16) {
      const V16 word = load16(codes + 32 * pair + l);
      V16 low = low_nibbles(word), high = high_nibbles(word);
      if constexpr (kFive) {
        const V16 fifth = load16(b + 16 + l);
        low = hn::Or(low, where_bit(fifth, 1 << (2 * pair), 16));
        high = hn::Or(high, where_bit(fifth, 2 << (2 * pair), 16));
      }
      store16(low, to.codes + 64 * pair + l);
      store16(high, to.codes + 64 * pair + 32 + l);
    }
  }
}

HWY_INLINE void unpack_q6k(const Byte* b, CodesTo to) {
  const float d = half_at(b + 208);
  for (int g = 0; g < 16; ++g) to.scales[g] = d * static_cast<float>(static_cast<std::int8_t>(b[192 + g]));
  const V16 two = set16(0x30);
  for (int half = 0; half < 2; ++half) {
    std::uint8_t* out = to.codes + 128 * half;
    HWY_UNROLL(2)
    for (int l = 0; l < 32; l += 16) {
      const V16 first = load16(b + 64 * half + l), second = load16(b + 64 * half + 32 + l),
                high = load16(b + 128 + 32 * half + l);
      store16(hn::Or(low_nibbles(first), hn::And(hn::ShiftLeft<4>(high), two)), out + l);
      store16(hn::Or(low_nibbles(second), hn::And(hn::ShiftLeft<2>(high), two)), out + 32 + l);
      store16(hn::Or(high_nibbles(first), hn::And(high, two)), out + 64 + l);
      store16(hn::Or(high_nibbles(second), hn::And(hn::ShiftRight<2>(high), two)), out + 96 + l);
    }
  }
}

// What the 16 codes of 4 bits stand for, plus `kMoved`.
template <const std::int8_t (&kValues)[16], int kMoved>
struct ByteValues {
  alignas(16) std::uint8_t of[16];
  constexpr ByteValues() : of() {
    for (int i = 0; i < 16; ++i) of[i] = static_cast<std::uint8_t>(kValues[i] + kMoved);
  }
};

template <const std::int8_t (&kValues)[16], int kMoved>
HWY_INLINE void look_up(const Byte* b, std::uint8_t* codes) {
  static constexpr ByteValues<kValues, kMoved> kTable{};
  const V16 table = hn::Load(D16(), kTable.of), word = load16(b);
  store16(hn::TableLookupBytes(table, low_nibbles(word)), codes);
  store16(hn::TableLookupBytes(table, high_nibbles(word)), codes + 16);
}

HWY_INLINE void unpack_iq4nl(const Byte* b, CodesTo to) {
  *to.scales = half_at(b);
  look_up<kUnevenValues, 0>(b + 2, to.codes);
}

HWY_INLINE void unpack_iq4xs(const Byte* b, CodesTo to) {
  const float d = half_at(b);
  const std::uint32_t high = read_u16(b + 2), low = read_u32(b + 4);
  for (int g = 0; g < 8; ++g) {
    to.scales[g] = d * static_cast<float>(static_cast<int>((low >> (4 * g) & 15) | (high >> (2 * g) & 3) << 4) - 32);
    look_up<kUnevenValues, 0>(b + 8 + 16 * g, to.codes + 32 * g);
  }
}

HWY_INLINE void unpack_mxfp4(const Byte* b, CodesTo to) {
  const std::uint32_t e = *b, bits = e < 2 ? 0x00200000U << e : (e - 1) << 23;  // half of 2^(e - 127)
  std::memcpy(to.scales, &bits, 4);
  look_up<kFloat4Values, 12>(b + 1, to.codes);
}

// kOne() for each of a row's blocks of kElements weights.
template <int kElements, int kBytes, int kGroup, void (*kOne)(const Byte*, CodesTo)>
HWY_INLINE void unpack_each(const void* row, std::int64_t blocks, CodesTo to) {
  const auto* b = static_cast<const Byte*>(row);
  for (std::int64_t i = 0; i < blocks * 32 / kElements; ++i) {
    // The stream is read once, and the hardware prefetcher stops at page boundaries.
    for (int line = 0; line < kBytes; line += 64) prefetch_after(b + i * kBytes + line, 4096);
    kOne(b + i * kBytes,
         {to.codes + i * kElements, to.scales + i * (kElements / kGroup), to.minimums + i * (kElements / kGroup)});
  }
}

void unpack_codes(GgmlType type, const void* row, std::int64_t blocks, std::uint8_t* codes, float* scales, float* minimums) {
  const CodesTo to{codes, scales, minimums};
  switch (type) {
    case GgmlType::q4_0: return unpack_each<32, 18, 32, unpack_q4<false>>(row, blocks, to);
    case GgmlType::q4_1: return unpack_each<32, 20, 32, unpack_q4<true>>(row, blocks, to);
    case GgmlType::q5_0: return unpack_each<32, 22, 32, unpack_q5<false>>(row, blocks, to);
    case GgmlType::q5_1: return unpack_each<32, 24, 32, unpack_q5<true>>(row, blocks, to);
    case GgmlType::q8_0: return unpack_each<32, 34, 32, unpack_q8>(row, blocks, to);
    case GgmlType::q4_k: return unpack_each<256, 144, 32, unpack_q45k<false>>(row, blocks, to);
    case GgmlType::q5_k: return unpack_each<256, 176, 32, unpack_q45k<true>>(row, blocks, to);
    case GgmlType::q6_k: return unpack_each<256, 210, 16, unpack_q6k>(row, blocks, to);
    case GgmlType::iq4_nl: return unpack_each<32, 18, 32, unpack_iq4nl>(row, blocks, to);
    case GgmlType::iq4_xs: return unpack_each<256, 136, 32, unpack_iq4xs>(row, blocks, to);
    default: return unpack_each<32, 17, 32, unpack_mxfp4>(row, blocks, to);
  }
}

}  // namespace
}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#endif  // SDX_BYTE_PRODUCTS

#endif
