#include "kernels/cpu/nbits/nbits_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nbits/nbits_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

using DU = hn::RebindToUnsigned<DF>;
using DI = hn::RebindToSigned<DF>;
using VU = hn::Vec<DU>;

template <int kBits>
HWY_INLINE VF code(VU word) {
  const DF d;
  const VU masked = hn::And(word, hn::Set(DU(), (1U << kBits) - 1U));
  return hn::ConvertTo(d, hn::BitCast(DI(), masked));
}

// Code t of each word, in place: code << (kBits t), exact as a float; the last one, which would be negative, is shifted down. The
// row holds x / 2^(kBits t) for all but the last (place_codes), which saves shifting every word for each code.
template <int kBits>
HWY_INLINE VF placed_code(VU word, int t) {
  const DF d;
  constexpr int kCodes = 32 / kBits;
  if (t == kCodes - 1) return hn::ConvertTo(d, hn::BitCast(DI(), hn::ShiftRight<32 - kBits>(word)));
  return hn::ConvertTo(d, hn::BitCast(DI(), hn::And(word, hn::Set(DU(), ((1U << kBits) - 1U) << (kBits * t)))));
}

// Zero points of one vector of columns, of a block.
HWY_INLINE VF zero_points(const NBitsLayout& l, const std::uint32_t* block, std::int64_t column) {
  const DF d;
  if (l.zeros == NBitsZeros::none) return hn::Set(d, static_cast<float>(1 << (l.bits - 1)));
  const std::uint32_t* at = block + l.nr;
  if (l.zeros == NBitsZeros::floats) return hn::LoadU(d, reinterpret_cast<const float*>(at) + column);
  const hn::Rebind<std::uint8_t, DF> bytes;
  return hn::ConvertTo(d, hn::PromoteTo(DI(), hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(at) + column)));
}

// Codes are multiplied as they are; scale and zero point are applied once per block: s (sum x q - z sum x).
template <int kBits, int M>
void gemv_rows(const NBitsLayout& layout, const std::uint32_t* panel, const float* x, std::int64_t ldx, const float* sums,
               float* out) {
  const DF d;
  const DU du;
  const std::int64_t lanes = lanes_f32();
  const std::int64_t nr = 2 * lanes;
  constexpr int kCodes = 32 / kBits;
  HWY_ALIGN float total[M * 2 * kMaxF32Lanes] = {};
  for (std::int64_t b = 0; b < layout.blocks; ++b) {
    const std::uint32_t* p = panel + b * layout.block_units();
    const auto* scales = reinterpret_cast<const float*>(p);
    const std::uint32_t* words = p + nr + layout.zero_units();
    const VF z0 = zero_points(layout, p, 0);
    const VF z1 = zero_points(layout, p, lanes);
    const float* row = x + b * layout.block;
    VF a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, d0 = a0, d1 = a0;
    for (std::int64_t w = 0; w < layout.words; ++w) {
      // Prefetches 4 KB ahead: the stream is read once, and the hardware prefetcher stops at page boundaries.
      __builtin_prefetch(words + 1024);
      const VU w0 = hn::LoadU(du, words);
      const VU w1 = hn::LoadU(du, words + lanes);
      words += nr;
      HWY_UNROLL(8)
      for (int t = 0; t < kCodes; ++t) {
        const VF q0 = placed_code<kBits>(w0, t);
        const VF q1 = placed_code<kBits>(w1, t);
        const float* at = row + w * kCodes + t;
        const VF x0 = hn::Set(d, at[0]);
        // A single row has two chains of dependent multiply-adds, which would take 4 cycles a step: its steps rotate over the
        // accumulators that other rows would use.
        if (M > 1 || t % 4 == 0) {
          a0 = hn::MulAdd(x0, q0, a0);
          a1 = hn::MulAdd(x0, q1, a1);
        } else if (t % 4 == 1) {
          b0 = hn::MulAdd(x0, q0, b0);
          b1 = hn::MulAdd(x0, q1, b1);
        } else if (t % 4 == 2) {
          c0 = hn::MulAdd(x0, q0, c0);
          c1 = hn::MulAdd(x0, q1, c1);
        } else {
          d0 = hn::MulAdd(x0, q0, d0);
          d1 = hn::MulAdd(x0, q1, d1);
        }
        if constexpr (M > 1) {
          const VF x1 = hn::Set(d, at[ldx]);
          b0 = hn::MulAdd(x1, q0, b0);
          b1 = hn::MulAdd(x1, q1, b1);
        }
        if constexpr (M > 2) {
          const VF x2 = hn::Set(d, at[2 * ldx]);
          c0 = hn::MulAdd(x2, q0, c0);
          c1 = hn::MulAdd(x2, q1, c1);
        }
        if constexpr (M > 3) {
          const VF x3 = hn::Set(d, at[3 * ldx]);
          d0 = hn::MulAdd(x3, q0, d0);
          d1 = hn::MulAdd(x3, q1, d1);
        }
      }
    }
    if constexpr (M == 1) {
      a0 = hn::Add(hn::Add(a0, b0), hn::Add(c0, d0));
      a1 = hn::Add(hn::Add(a1, b1), hn::Add(c1, d1));
    }
    const auto add = [&](int i, VF v0, VF v1) HWY_ATTR {
      const VF s = hn::Set(d, sums[i * layout.blocks + b]);
      float* t = total + i * nr;
      hn::StoreU(hn::MulAdd(hn::LoadU(d, scales), hn::NegMulAdd(z0, s, v0), hn::LoadU(d, t)), d, t);
      hn::StoreU(hn::MulAdd(hn::LoadU(d, scales + lanes), hn::NegMulAdd(z1, s, v1), hn::LoadU(d, t + lanes)), d, t + lanes);
    };
    add(0, a0, a1);
    if constexpr (M > 1) add(1, b0, b1);
    if constexpr (M > 2) add(2, c0, c1);
    if constexpr (M > 3) add(3, d0, d1);
  }
  std::memcpy(out, total, static_cast<std::size_t>(M * nr) * sizeof(float));
}

template <int kBits>
void gemv_bits(const NBitsLayout& layout, const std::uint32_t* panel, const float* x, std::int64_t ldx, const float* sums,
               std::int64_t m, float* out) {
  switch (m) {
    case 1: return gemv_rows<kBits, 1>(layout, panel, x, ldx, sums, out);
    case 2: return gemv_rows<kBits, 2>(layout, panel, x, ldx, sums, out);
    case 3: return gemv_rows<kBits, 3>(layout, panel, x, ldx, sums, out);
    default: return gemv_rows<kBits, 4>(layout, panel, x, ldx, sums, out);
  }
}

void gemv(const NBitsLayout& layout, const std::uint32_t* panel, const float* x, std::int64_t ldx, const float* sums,
          std::int64_t m, float* out) {
  if (layout.bits == 4) {
    gemv_bits<4>(layout, panel, x, ldx, sums, m, out);
  } else {
    gemv_bits<8>(layout, panel, x, ldx, sums, m, out);
  }
}

template <int kBits>
void expand_bits(const NBitsLayout& layout, const std::uint32_t* panel, std::int64_t k0, std::int64_t kc, float* out) {
  const DF d;
  const DU du;
  const std::int64_t lanes = lanes_f32();
  const std::int64_t nr = 2 * lanes;
  constexpr int kCodes = 32 / kBits;
  for (std::int64_t k = k0; k < k0 + kc;) {
    const std::int64_t b = k / layout.block;
    const std::int64_t within = k % layout.block;
    const std::uint32_t* p = panel + b * layout.block_units();
    const auto* scales = reinterpret_cast<const float*>(p);
    const std::uint32_t* word = p + nr + layout.zero_units() + within / kCodes * nr;
    const VF s0 = hn::LoadU(d, scales);
    const VF s1 = hn::LoadU(d, scales + lanes);
    const VF z0 = zero_points(layout, p, 0);
    const VF z1 = zero_points(layout, p, lanes);
    VU w0 = hn::LoadU(du, word);
    VU w1 = hn::LoadU(du, word + lanes);
    int t = 0;
    for (; t < within % kCodes; ++t) {
      w0 = hn::ShiftRight<kBits>(w0);
      w1 = hn::ShiftRight<kBits>(w1);
    }
    for (; t < kCodes && k < k0 + kc; ++t, ++k, out += nr) {
      hn::StoreU(hn::Mul(hn::Sub(code<kBits>(w0), z0), s0), d, out);
      hn::StoreU(hn::Mul(hn::Sub(code<kBits>(w1), z1), s1), d, out + lanes);
      w0 = hn::ShiftRight<kBits>(w0);
      w1 = hn::ShiftRight<kBits>(w1);
    }
  }
}

void expand(const NBitsLayout& layout, const std::uint32_t* panel, std::int64_t k0, std::int64_t kc, float* out) {
  if (layout.bits == 4) {
    expand_bits<4>(layout, panel, k0, kc, out);
  } else {
    expand_bits<8>(layout, panel, k0, kc, out);
  }
}

float sum(const float* x, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF zero = hn::Zero(d), large = hn::Set(d, kNBitsFactor);
  VF s = zero, wild = zero;  // NaN once an element times kNBitsFactor was not finite
  for (std::int64_t i = 0; i < n; i += lanes) {
    const VF v = hn::LoadU(d, x + i);
    s = hn::Add(s, v);
    wild = hn::MulAdd(hn::Mul(v, large), zero, wild);
  }
  return sum_lanes(d, hn::Add(s, wild));
}

#if SDX_512_BITS

HWY_INLINE __m512i four_columns(const char* first, std::int64_t step, __mmask8 words) {
  const auto load = [&](std::int64_t i) HWY_ATTR {
    const char* at = first + i * step;
    return words == 15 ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)) : _mm_maskz_loadu_epi32(words, at);
  };
  const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(load(0)), load(4), 1),
                high = _mm256_inserti128_si256(_mm256_castsi128_si256(load(8)), load(12), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

// Up to four words of 16 columns, `step` bytes apart; word w goes to out[w * nr].
HWY_INLINE void transpose_columns(const char* first, std::int64_t step, std::int64_t words, std::uint32_t* out, std::int64_t nr) {
  const auto mask = static_cast<__mmask8>(words >= 4 ? 15 : (1 << words) - 1);
  const __m512i a = four_columns(first, step, mask), b = four_columns(first + step, step, mask),
                c = four_columns(first + 2 * step, step, mask), d = four_columns(first + 3 * step, step, mask);
  const __m512i ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
  const __m512i ab2 = _mm512_unpackhi_epi32(a, b), cd2 = _mm512_unpackhi_epi32(c, d);
  _mm512_storeu_si512(out, _mm512_unpacklo_epi64(ab, cd));
  if (words > 1) _mm512_storeu_si512(out + nr, _mm512_unpackhi_epi64(ab, cd));
  if (words > 2) _mm512_storeu_si512(out + 2 * nr, _mm512_unpacklo_epi64(ab2, cd2));
  if (words > 3) _mm512_storeu_si512(out + 3 * nr, _mm512_unpackhi_epi64(ab2, cd2));
}

// Prefetches four lines of the next panel for every four of this one.
HWY_INLINE void fetch_lines(const char* at) {
  HWY_UNROLL(4)
  for (int line = 0; line < 4; ++line)
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(at) + static_cast<unsigned>(64 * line)));
}

void pack(const NBitsLayout& l, const char* codes, const char* scales, std::uint32_t* panel) {
  constexpr std::int64_t kHalf = 16, kNr = 2 * kHalf;
  const std::int64_t column_bytes = l.blocks * l.words * 4, panel_bytes = kNr * column_bytes;
  for (std::int64_t half = 0; half < kNr; half += kHalf) {
    const char* at = codes + half * column_bytes;
    const char* next = codes + panel_bytes + half * column_bytes;
    for (std::int64_t b = 0; b < l.blocks; ++b) {
      std::uint32_t* out = panel + b * l.block_units() + kNr + half;
      for (std::int64_t w = 0; w < l.words; w += 4, at += 16, next += 256) {
        fetch_lines(next);
        transpose_columns(at, column_bytes, 4, out + w * kNr, kNr);
      }
    }
    for (std::int64_t b = 0; b < l.blocks; b += 4) {
      const std::int64_t count = l.blocks - b < 4 ? l.blocks - b : 4;
      transpose_columns(scales + (half * l.blocks + b) * 4, l.blocks * 4, count, panel + b * l.block_units() + half,
                        l.block_units());
    }
  }
}

#endif

}  // namespace

const NBitsKernels& nbits_table() {
#if SDX_512_BITS
  constexpr auto kPack = pack;
#else
  constexpr decltype(NBitsKernels::pack) kPack = nullptr;
#endif
  static const NBitsKernels table{static_cast<int>(2 * lanes_f32()), kPack, gemv, expand, sum};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const NBitsKernels&, nbits_kernels, nbits_table)
#endif
