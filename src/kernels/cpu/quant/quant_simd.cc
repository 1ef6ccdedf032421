#include "kernels/cpu/quant/quant_simd.h"

#include <algorithm>
#include <limits>

#include "base/system/cpu_features.h"
#include "kernels/cpu/quant/quant_vnni.h"
#include "kernels/cpu/quant/two_sums.h"
#include "kernels/cpu/simd/repeat.h"
#include "kernels/cpu/simd/target_width.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quant/quant_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/quant/quant_epilogue-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

constexpr int kMr = kPairTileRows;

#if HWY_TARGET == HWY_SCALAR

// Computes rows [first, first + R) of a tile.
template <int R>
void few_rows(const QTile& t, int m, int first, std::int32_t* out) {
  constexpr std::int64_t kPairs = 1 << 14;  // products of 9 and 8 bits, whose sum fits int32
  std::uint32_t total[R][2] = {};
  const std::int16_t* a = t.a + 2 * first;
  const std::int8_t* b = t.b;
  for (std::int64_t begin = 0; begin < t.pairs; begin += kPairs) {
    std::uint64_t sums[R] = {};
    for (std::int64_t p = begin; p < std::min(t.pairs, begin + kPairs); ++p, a += 2 * m, b += 4) {
      std::uint64_t b0 = two_values(b[0], b[2]), b1 = two_values(b[1], b[3]);
      keep_whole(b0, b1);
      for (int i = 0; i < R; ++i) sums[i] += times(b0, a[2 * i]) + times(b1, a[2 * i + 1]);
    }
    for (int i = 0; i < R; ++i) {
      total[i][0] += low_sum(sums[i]);
      total[i][1] += high_sum(sums[i]);
    }
  }
  std::memcpy(out + 2 * first, total, sizeof(total));
}

template <int M>
void product(const QTile& t, std::int32_t* out) {
  for (int i = 0; i + 4 <= M; i += 4) few_rows<4>(t, M, i, out);
  if constexpr (M % 4 != 0) few_rows<M % 4>(t, M, M / 4 * 4, out);
}

#else

template <int M>
HWY_NOINLINE void product(const QTile& t, std::int32_t* HWY_RESTRICT out) {
  const DI d;
  const D16 d16;
  const hn::Rebind<std::int8_t, D16> d8;
  const std::int64_t lanes = lanes_f32();
  const std::int16_t* HWY_RESTRICT a = t.a;
  const std::int8_t* HWY_RESTRICT b = t.b;
#define SDX_DECLARE(I)   \
  VI c##I = hn::Zero(d); \
  VI e##I = hn::Zero(d); \
  (void)c##I;            \
  (void)e##I;
  SDX_REPEAT_12(SDX_DECLARE)
  for (std::int64_t p = 0; p < t.pairs; ++p) {
    const V16 b0 = hn::PromoteTo(d16, hn::LoadU(d8, b));
    const V16 b1 = hn::PromoteTo(d16, hn::LoadU(d8, b + 2 * lanes));
#define SDX_STEP(I)                                                   \
  if constexpr (M > I) {                                              \
    const V16 v = hn::BitCast(d16, hn::Set(d, read_pair(a + 2 * I))); \
    c##I = pair_add(c##I, v, b0);                                     \
    e##I = pair_add(e##I, v, b1);                                     \
  }
    SDX_REPEAT_12(SDX_STEP)
    a += 2 * M;
    b += 4 * lanes;
  }
#define SDX_STORE(I)                                 \
  if constexpr (M > I) {                             \
    hn::Store(c##I, d, out + 2 * lanes * I);         \
    hn::Store(e##I, d, out + 2 * lanes * I + lanes); \
  }
  SDX_REPEAT_12(SDX_STORE)
#undef SDX_STORE
#undef SDX_STEP
#undef SDX_DECLARE
}

#endif

#if HWY_TARGET == HWY_SCALAR

void write_row(const QTile& t, std::int64_t i, const std::int32_t* sums) {
  const QEpilogue& e = *t.epilogue;
  const std::int64_t row = t.row + i, size = bytes_per_output(e);
  const auto row_sum = static_cast<std::uint32_t>(t.row_sums != nullptr ? t.row_sums[i] : 0);
  char* y = static_cast<char*>(t.c) + i * t.ldc * size;
  for (std::int64_t j = 0; j < t.n; ++j, y += size) {
    const auto bias = static_cast<std::uint32_t>(e.bias != nullptr ? e.bias[row] : 0);
    const auto v =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[j]) - static_cast<std::uint32_t>(t.b_zero) * row_sum + bias);
    if (e.output == QEpilogue::Output::i32) {
      std::memcpy(y, &v, sizeof(v));
      continue;
    }
    const float f = static_cast<float>(v) * (e.scale == nullptr ? 1.0F : e.scale[e.scale_is_array ? row : 0]);
    if (e.output == QEpilogue::Output::f32) {
      const float sum = f + (e.bias_f32 != nullptr ? e.bias_f32[row] : 0.0F);
      std::memcpy(y, &sum, sizeof(sum));
    } else {
      *y = static_cast<char>(byte_of(e, f));
    }
  }
}

#else

void write_row(const QTile& t, std::int64_t i, const std::int32_t* sums) {
  const DI d;
  const std::int64_t lanes = lanes_f32();
  const Narrow n = narrow_of(*t.epilogue, t.row + i, 0);
  const std::int32_t row_sum = t.row_sums != nullptr ? t.row_sums[i] : 0;
  // Modulo 2^32, hence unsigned.
  const VI shift =
      hn::Set(d, static_cast<std::int32_t>(static_cast<std::uint32_t>(t.b_zero) * static_cast<std::uint32_t>(row_sum)));
  const bool bytes = gives_bytes(*t.epilogue);
  void* y = bytes ? static_cast<void*>(static_cast<std::uint8_t*>(t.c) + i * t.ldc)
                  : static_cast<void*>(static_cast<float*>(t.c) + i * t.ldc);
  // One scale and one correction for the whole row.
  if (bytes && t.n == 2 * lanes) {
    const DF df;
    const hn::Rebind<std::uint8_t, DI> d8;
    const hn::RebindToUnsigned<DI> du;
    const VI add = hn::Sub(n.bias, shift);
    for (std::int64_t j = 0; j < t.n; j += lanes) {
      const VI q = to_byte(n, hn::Mul(hn::ConvertTo(df, hn::Add(hn::LoadU(d, sums + j), add)), n.scale));
      hn::StoreU(hn::TruncateTo(d8, hn::BitCast(du, q)), d8, static_cast<std::uint8_t*>(y) + j);
    }
    return;
  }
  for (std::int64_t j = 0; j < t.n; j += lanes) put(n, hn::Sub(hn::LoadU(d, sums + j), shift), j, t.n - j, y);
}

#endif

void narrow(const float* sums, std::int64_t n, const QEpilogue& e, std::int64_t row, void* y) {
  const DI d;
  const Narrow c = narrow_of(e, row, 0);
  for (std::int64_t j = 0; j < n; j += lanes_f32()) put(c, hn::ConvertTo(d, load_floats(sums + j, n - j)), j, n - j, y);
}

void tile(const QTile& t) {
  HWY_ALIGN std::int32_t out[kMr * 2 * kMaxF32Lanes];
#if SDX_512_BITS
  static const bool vnni = use_vnni(Isa::avx512) && quant_vnni_product(1) != nullptr;
  if (vnni) {
    quant_vnni_product(t.m)(t, out);
    for (std::int64_t i = 0; i < t.m; ++i) write_row(t, i, out + i * 2 * lanes_f32());
    return;
  }
#endif
  switch (t.m) {
#define SDX_CASE(I)                                                \
  case I + 1:                                                      \
    if constexpr (I < kMr) product<(I < kMr ? I + 1 : 1)>(t, out); \
    break;
    SDX_REPEAT_12(SDX_CASE)
#undef SDX_CASE
    default: return;
  }
  for (std::int64_t i = 0; i < t.m; ++i) write_row(t, i, out + i * 2 * lanes_f32());
}

void interleave(const std::uint8_t* HWY_RESTRICT r0, const std::uint8_t* HWY_RESTRICT r1, std::uint8_t flip, std::int64_t n,
                std::int8_t* HWY_RESTRICT out, std::int64_t panel_step) {
  const std::int64_t nr = 2 * lanes_f32();
  for (std::int64_t j = 0; j < n; j += nr) {
    auto* panel = reinterpret_cast<std::uint8_t*>(out + j / nr * panel_step);
#if HWY_TARGET == HWY_SCALAR
    for (std::int64_t i = 0; i < nr; ++i) {
      panel[2 * i] = static_cast<std::uint8_t>(r0[j + i] ^ flip);
      panel[2 * i + 1] = static_cast<std::uint8_t>(r1[j + i] ^ flip);
    }
#else
    const hn::FixedTag<std::uint8_t, 16> d;
    const auto mask = hn::Set(d, flip);
    for (std::int64_t i = 0; i < nr; i += 16) {
      const auto a = hn::Xor(hn::LoadU(d, r0 + j + i), mask);
      const auto b = hn::Xor(hn::LoadU(d, r1 + j + i), mask);
      hn::StoreU(hn::InterleaveLower(d, a, b), d, panel + 2 * i);
      if (nr - i >= 16) hn::StoreU(hn::InterleaveUpper(d, a, b), d, panel + 2 * i + 16);
    }
#endif
  }
}

void halve(const std::uint8_t* x, std::int64_t n, std::uint8_t* y) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<std::uint8_t, 16> d;
  for (; i + 16 < n; i += 16) {  // reads 32 bytes
    hn::Vec<decltype(d)> even;
    hn::Vec<decltype(d)> odd;
    hn::LoadInterleaved2(d, x + 2 * i, even, odd);
    hn::StoreU(even, d, y + i);
  }
#endif
  for (; i < n; ++i) y[i] = x[2 * i];
}

void quantize(const float* x, void* y, bool is_signed, std::int64_t n, float scale, std::int32_t zero_point) {
  const DF d;
  const DI di;
  const std::int64_t lanes = lanes_f32();
  const VF vs = hn::Set(d, scale);
  const std::int32_t low = is_signed ? -128 : 0;
  const VI vlow = hn::Set(di, low);
  const VI vhigh = hn::Set(di, low + 255);
  const VI vzero = hn::Set(di, zero_point);
  auto* out = static_cast<std::uint8_t*>(y);
  HWY_ALIGN std::int32_t buffer[kMaxF32Lanes];
  std::int64_t i = 0;
#if HWY_TARGET == HWY_AVX2
  // Packing saturates, so only values beyond int32 are clamped. NaN becomes the lowest int32: for NaN, _mm256_min_ps gives its
  // second operand.
  const __m256i zero16 = _mm256_set1_epi16(static_cast<std::int16_t>(zero_point));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const auto words = [&](const float* p) HWY_ATTR {
    const auto eight = [&](const float* q) HWY_ATTR {
      return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_set1_ps(1e6F), _mm256_div_ps(_mm256_loadu_ps(q), vs.raw)));
    };
    return _mm256_adds_epi16(_mm256_packs_epi32(eight(p), eight(p + 8)), zero16);
  };
  for (; i + 32 <= n; i += 32) {
    const __m256i w0 = words(x + i), w1 = words(x + i + 16);
    const __m256i bytes = is_signed ? _mm256_packs_epi16(w0, w1) : _mm256_packus_epi16(w0, w1);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_permutevar8x32_epi32(bytes, order));
  }
#elif SDX_512_BITS
  // As with AVX2, narrowing saturates; for NaN, _mm512_max_ps gives its second operand. A division takes 16 cycles. A product by
  // the inverse is off by less than 2^-14 if the result is in the range of bytes. So both round alike, unless the product is that
  // close to the middle between two integers.
  const bool multiplies = scale > 1e-30F && scale < 1e30F;
  const __m512 inverse = _mm512_set1_ps(1.0F / scale), middle = _mm512_set1_ps(0.5F - 0x1p-13F);
  const auto bounded = [](__m512 v)
                           HWY_ATTR { return _mm512_min_ps(_mm512_max_ps(v, _mm512_set1_ps(-1e6F)), _mm512_set1_ps(1e6F)); };
  const auto narrowed = [&](__m512i q) HWY_ATTR {
    q = _mm512_add_epi32(q, vzero.raw);
    return is_signed ? _mm512_cvtsepi32_epi8(q) : _mm512_cvtusepi32_epi8(_mm512_max_epi32(q, _mm512_setzero_si512()));
  };
  for (; i + 64 <= n; i += 64) {
    __m512i q[4];
    __m512 furthest = _mm512_setzero_ps();
    for (int j = 0; j < 4; ++j) {
      const __m512 v = bounded(_mm512_mul_ps(_mm512_loadu_ps(x + i + 16 * j), inverse));
      q[j] = _mm512_cvtps_epi32(v);
      furthest = _mm512_max_ps(furthest, _mm512_abs_ps(_mm512_sub_ps(v, _mm512_cvtepi32_ps(q[j]))));
    }
    if (!multiplies || _mm512_cmp_ps_mask(furthest, middle, _CMP_GT_OQ) != 0) {
      for (int j = 0; j < 4; ++j) q[j] = _mm512_cvtps_epi32(bounded(_mm512_div_ps(_mm512_loadu_ps(x + i + 16 * j), vs.raw)));
    }
    for (int j = 0; j < 4; ++j) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i + 16 * j), narrowed(q[j]));
  }
#endif
  for (; i < n; i += lanes) {
    const std::int64_t count = n - i < lanes ? n - i : lanes;
    VF v = hn::Div(count == lanes ? hn::LoadU(d, x + i) : load_tail(d, x + i, count), vs);
    v = hn::IfThenElse(hn::Eq(v, v), v, hn::Set(d, -1e6F));
    v = hn::Round(hn::Min(hn::Max(v, hn::Set(d, -1e6F)), hn::Set(d, 1e6F)));
    const VI q = hn::Min(hn::Max(hn::Add(hn::ConvertTo(di, v), vzero), vlow), vhigh);
#if HWY_TARGET != HWY_SCALAR
    if (count == lanes) {
      // The low byte is the same for both signednesses.
      const hn::Rebind<std::uint8_t, DI> d8;
      hn::StoreU(hn::TruncateTo(d8, hn::BitCast(hn::RebindToUnsigned<DI>(), q)), d8, out + i);
      continue;
    }
#endif
    hn::Store(q, di, buffer);
    for (std::int64_t j = 0; j < count; ++j) out[i + j] = static_cast<std::uint8_t>(buffer[j] & 0xFF);
  }
}

void dequantize(const void* x, bool is_signed, float* y, std::int64_t n, float scale, std::int32_t zero_point) {
  const DF d;
  const DI di;
  const std::int64_t lanes = lanes_f32();
  const VF vs = hn::Set(d, scale);
  const VI vz = hn::Set(di, zero_point);
  const auto* u8 = static_cast<const std::uint8_t*>(x);
  const auto* s8 = static_cast<const std::int8_t*>(x);
  const hn::Rebind<std::uint8_t, DI> du8;
  const hn::Rebind<std::int8_t, DI> ds8;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VI v = is_signed ? hn::PromoteTo(di, hn::LoadU(ds8, s8 + i)) : hn::PromoteTo(di, hn::LoadU(du8, u8 + i));
    hn::StoreU(hn::Mul(hn::ConvertTo(d, hn::Sub(v, vz)), vs), d, y + i);
  }
  for (; i < n; ++i) y[i] = static_cast<float>((is_signed ? s8[i] : u8[i]) - zero_point) * scale;
}

// Ignores NaN: comparisons with NaN are false, and x86's minimum and maximum then give their second operand.
void min_max(const float* x, std::int64_t n, float* min, float* max) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  constexpr int kChains = 4;  // a minimum takes longer than a load
  const VF inf = hn::Set(d, std::numeric_limits<float>::infinity());
  VF lo0 = inf, lo1 = inf, lo2 = inf, lo3 = inf;
  VF hi0 = hn::Neg(inf), hi1 = hi0, hi2 = hi0, hi3 = hi0;
  const auto take = [](VF v, VF& lo, VF& hi) HWY_ATTR {
#if HWY_ARCH_X86
    lo = hn::Min(v, lo);
    hi = hn::Max(v, hi);
#else
    lo = hn::IfThenElse(hn::Lt(v, lo), v, lo);
    hi = hn::IfThenElse(hn::Gt(v, hi), v, hi);
#endif
  };
  std::int64_t i = 0;
  for (; i + kChains * lanes <= n; i += kChains * lanes) {
    take(hn::LoadU(d, x + i), lo0, hi0);
    take(hn::LoadU(d, x + i + lanes), lo1, hi1);
    take(hn::LoadU(d, x + i + 2 * lanes), lo2, hi2);
    take(hn::LoadU(d, x + i + 3 * lanes), lo3, hi3);
  }
  for (; i + lanes <= n; i += lanes) take(hn::LoadU(d, x + i), lo0, hi0);
  *min = hn::GetLane(hn::MinOfLanes(d, hn::Min(hn::Min(lo0, lo1), hn::Min(lo2, lo3))));
  *max = hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(hi0, hi1), hn::Max(hi2, hi3))));
  for (; i < n; ++i) {
    if (x[i] < *min) *min = x[i];
    if (x[i] > *max) *max = x[i];
  }
}

}  // namespace

const QuantKernels& quant_table() {
  static const QuantKernels table{
      kMr, static_cast<int>(2 * lanes_f32()), tile, interleave, halve, narrow, quantize, dequantize, min_max};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const QuantKernels&, quant_kernels, quant_table)
#endif
