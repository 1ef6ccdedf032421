#include "kernels/cpu/conv/int8/quant_octets_simd.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/conv/int8/quant_fetch.h"
#include "kernels/cpu/simd/repeat.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/int8/quant_octets_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/quant/quant_store-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX2

alignas(32) constexpr std::int16_t kOnes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

HWY_INLINE __m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
HWY_INLINE __m256i quad_of(const std::uint8_t* p) {
  std::int32_t v;
  __builtin_memcpy(&v, p, sizeof(v));
  return _mm256_set1_epi32(v);
}
HWY_INLINE __m256i widened_sum(__m256i acc, __m256i words, __m256i ones) {
  return _mm256_add_epi32(acc, _mm256_madd_epi16(words, ones));
}
// Keeps weights in registers: as memory operands they would be loaded again for each row.
#define SDX_KEEP(V) __asm__("" : "+x"(V))

// For each set of eight lanes, the indices of the lanes in the set, one byte each.
struct LaneLists {
  std::uint64_t lanes[256];
};
constexpr LaneLists lane_lists() {
  LaneLists t{};
  for (unsigned set = 0; set < 256; ++set) {
    int count = 0;
    for (unsigned lane = 0; lane < 8; ++lane) {
      if ((set >> lane & 1) != 0) t.lanes[set] |= std::uint64_t{lane} << 8 * count++;
    }
  }
  return t;
}
constexpr LaneLists kLaneLists = lane_lists();

// Has no branch on the values of bytes: after a Relu, branches would be mispredicted.
bool split(const QOctetRows& r) {
  const __m256i eighth = _mm256_set1_epi8(static_cast<char>(0x80));
  const __m256i flip = r.flip ? eighth : _mm256_setzero_si256();
  const __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const std::int64_t bytes = r.quads * 4;
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < r.count; ++i) {
    if (i % kOctetRows == 0) r.starts[i / kOctetRows] = static_cast<std::int32_t>(found);
    // Gives up early if the first rows already have too many entries.
    const std::int64_t most = std::min(r.most_entries, r.most_entries * (i + 8) / r.count);
    std::uint8_t* row = r.rows + i * r.stride;
    const std::uint8_t* from = r.from + i * r.from_stride;
    __m256i where = _mm256_add_epi32(numbers, _mm256_set1_epi32(static_cast<std::int32_t>(i % kOctetRows) << 16));
    for (std::int64_t k = 0; k < bytes; k += 32) {
      alignas(32) std::uint8_t last[32];
      const std::uint8_t* at = from + k;
      if (r.end - at < 32 || bytes - k < 32) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(last), flip);
        std::copy(at, at + std::min<std::int64_t>(bytes - k, r.end - at), last);
        at = last;
      }
      const __m256i v = _mm256_xor_si256(load(at), flip);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + k), _mm256_andnot_si256(eighth, v));
      const __m256i high = _mm256_and_si256(v, eighth);
      const __m256i none = _mm256_cmpeq_epi32(high, _mm256_setzero_si256());
      const auto set = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(none))) ^ 0xFF;
      const __m256i lanes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(kLaneLists.lanes + set)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(r.high + found), _mm256_permutevar8x32_epi32(high, lanes));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(r.where + found), _mm256_permutevar8x32_epi32(where, lanes));
      found += __builtin_popcount(set);
      if (found > most) return false;
      where = _mm256_add_epi32(where, _mm256_set1_epi32(8));
    }
  }
  r.starts[(r.count + kOctetRows - 1) / kOctetRows] = static_cast<std::int32_t>(found);
  return true;
}

#define SDX_OCTET_DECLARE(I) \
  __m256i c##I = k.bias0;    \
  __m256i e##I = k.bias1;    \
  (void)c##I;                \
  (void)e##I;
#define SDX_OCTET_STEP(I)                                                                           \
  if constexpr (M > I) {                                                                            \
    const __m256i x = quad_of(I == 3 ? a3 + first : a0 + I * stride + first);                       \
    const __m256i y = quad_of(I == 3 ? a3 + second : a0 + I * stride + second);                     \
    const __m256i v = _mm256_add_epi16(_mm256_maddubs_epi16(x, b00), _mm256_maddubs_epi16(y, b10)); \
    const __m256i w = _mm256_add_epi16(_mm256_maddubs_epi16(x, b01), _mm256_maddubs_epi16(y, b11)); \
    c##I = widened_sum(c##I, v, *ones);                                                             \
    e##I = widened_sum(e##I, w, *ones);                                                             \
  }
#define SDX_OCTET_SINGLE(I)                                                   \
  if constexpr (M > I) {                                                      \
    const __m256i x = quad_of(I == 3 ? a3 + first : a0 + I * stride + first); \
    c##I = widened_sum(c##I, _mm256_maddubs_epi16(x, b0), *ones);             \
    e##I = widened_sum(e##I, _mm256_maddubs_epi16(x, b1), *ones);             \
  }
#define SDX_OCTET_HIGH(I)                                   \
  if constexpr (M > I) {                                    \
    c##I = _mm256_add_epi32(c##I, load(high + I * 16));     \
    e##I = _mm256_add_epi32(e##I, load(high + I * 16 + 8)); \
  }

// Computes the M rows of tile `t`.
template <int M, bool kPlain, bool kSigned>
HWY_INLINE void tile(const QOctetPanel& g, const Columns& k, std::int64_t t, const __m256i* ones) {
  const QOctetRows& r = *g.rows;
  std::int64_t entry = r.starts[t];
  const std::int64_t last = r.starts[t + 1];
  SDX_REPEAT_4(SDX_OCTET_DECLARE)
  // The products of eighth bits come first: their sums are ready when they are added at the end.
  alignas(32) std::int32_t high[kOctetRows * 16];
  const bool any = entry != last;
  if (any) {
    const std::uint16_t* place = g.table.place();
    for (int i = 0; i < 2 * M; ++i) _mm256_store_si256(reinterpret_cast<__m256i*>(high + i * 8), _mm256_setzero_si256());
    for (; entry != last; ++entry) {
      auto* own = reinterpret_cast<__m256i*>(high + (r.where[entry] >> 16) * 16);
      const std::int8_t* b = g.weights + place[r.where[entry] & 0xFFFF] * std::int64_t{64};
      const __m256i x = _mm256_set1_epi32(static_cast<std::int32_t>(r.high[entry]));
      _mm256_store_si256(own, widened_sum(_mm256_load_si256(own), _mm256_maddubs_epi16(x, load(b)), *ones));
      _mm256_store_si256(own + 1, widened_sum(_mm256_load_si256(own + 1), _mm256_maddubs_epi16(x, load(b + 32)), *ones));
    }
  }
  const std::uint8_t* HWY_RESTRICT a0 = r.rows + t * kOctetRows * r.stride;
  const std::uint8_t* HWY_RESTRICT a3 = a0 + 3 * r.stride;
  const std::int64_t stride = r.stride;
  const std::int8_t* HWY_RESTRICT b = g.weights;
  const std::uint16_t* HWY_RESTRICT order = g.table.order();
  for (std::int64_t p = g.table.octets(); p > 0; --p, order += 2, b += 128) {
    __m256i b00 = load(b), b01 = load(b + 32), b10 = load(b + 64), b11 = load(b + 96);
    SDX_KEEP(b00);
    SDX_KEEP(b01);
    SDX_KEEP(b10);
    SDX_KEEP(b11);
    const std::int64_t first = order[0], second = order[1];
    SDX_REPEAT_4(SDX_OCTET_STEP)
  }
  for (std::int64_t p = g.table.singles(); p > 0; --p, ++order, b += 64) {
    const __m256i b0 = load(b), b1 = load(b + 32);
    const std::int64_t first = order[0];
    SDX_REPEAT_4(SDX_OCTET_SINGLE)
  }
  if (any) {
    SDX_REPEAT_4(SDX_OCTET_HIGH)
  }
  std::uint8_t* y = g.y + t * kOctetRows * g.ldc;
  if constexpr (M > 1) {
    store_two<kSigned>(words_of<kPlain>(k, c0, e0), words_of<kPlain>(k, c1, e1), y, y + g.ldc);
  } else {
    store_one<kSigned>(words_of<kPlain>(k, c0, e0), y);
  }
  if constexpr (M > 3) {
    store_two<kSigned>(words_of<kPlain>(k, c2, e2), words_of<kPlain>(k, c3, e3), y + 2 * g.ldc, y + 3 * g.ldc);
  } else if constexpr (M > 2) {
    store_one<kSigned>(words_of<kPlain>(k, c2, e2), y + 2 * g.ldc);
  }
}
#undef SDX_OCTET_HIGH
#undef SDX_OCTET_SINGLE
#undef SDX_OCTET_STEP
#undef SDX_OCTET_DECLARE

template <bool kPlain, bool kSigned>
void tiles(const QOctetPanel& g, const Columns& k) {
  const auto* ones = reinterpret_cast<const __m256i*>(kOnes);
  const std::int64_t whole = g.rows->count / kOctetRows;
  Fetch fetch(g.ahead, g.ahead_bytes, whole);
  for (std::int64_t t = 0; t < whole; ++t) {
    fetch.part();
    tile<4, kPlain, kSigned>(g, k, t, ones);
  }
  switch (g.rows->count % kOctetRows) {
    case 1: return tile<1, kPlain, kSigned>(g, k, whole, ones);
    case 2: return tile<2, kPlain, kSigned>(g, k, whole, ones);
    case 3: return tile<3, kPlain, kSigned>(g, k, whole, ones);
    default: return;
  }
}

void widen(const std::int8_t* panel, const std::uint16_t* place, std::int64_t quads, std::int16_t* out) {
  // In each half, the first pairs of four columns and then their second pairs.
  const __m256i pairs = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,  //
                                         0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
  const auto put = [](std::int16_t* to, __m128i v)
                       HWY_ATTR { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_cvtepi8_epi16(v)); };
  for (std::int64_t q = 0; q < quads; ++q, out += 64) {
    const std::int8_t* from = panel + place[q] * std::int64_t{64};
    const __m256i v = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(load(from), pairs), 0xD8);
    const __m256i w = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(load(from + 32), pairs), 0xD8);
    put(out, _mm256_castsi256_si128(v));
    put(out + 16, _mm256_castsi256_si128(w));
    put(out + 32, _mm256_extracti128_si256(v, 1));
    put(out + 48, _mm256_extracti128_si256(w, 1));
  }
}

void panel(const QOctetPanel& g) {
  const Columns k = columns_of(*g.epilogue, g.column);
  by_kind(k, [&](auto plain, auto is_signed) HWY_ATTR { tiles<plain, is_signed>(g, k); });
}

#undef SDX_KEEP

#endif

}  // namespace

const QOctetKernels* qoctet_table() {
#if HWY_TARGET == HWY_AVX2
  static const QOctetKernels table{split, panel, widen};
  return &table;
#else
  return nullptr;
#endif
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const QOctetKernels*, qoctet_kernels, qoctet_table)
#endif
