#include "kernels/cpu/quant_kernels.h"

#include <cmath>
#include <limits>

#include "base/cpu_features.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quant_kernels.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

using DI = hn::RebindToSigned<DF>;
using VI = hn::Vec<DI>;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr int kMr = 12;
#elif HWY_TARGET == HWY_NEON
constexpr int kMr = 8;
#else
constexpr int kMr = 6;
#endif

#define SDX_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

#if HWY_TARGET == HWY_SCALAR

template <int M>
void product(const QTile& t, std::int32_t* out) {
  std::int32_t acc[M][2] = {};
  for (std::int64_t p = 0; p < t.pairs; ++p) {
    for (int i = 0; i < M; ++i) {
      const std::int16_t* a = t.a + (p * M + i) * 2;
      for (int j = 0; j < 2; ++j) {
        const std::int8_t* b = t.b + (p * 2 + j) * 2;
        const std::int32_t sum = a[0] * b[0] + a[1] * b[1];
        acc[i][j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(acc[i][j]) + static_cast<std::uint32_t>(sum));
      }
    }
  }
  std::memcpy(out, acc, sizeof(acc));
}

#else

using D16 = hn::Repartition<std::int16_t, DI>;
using V16 = hn::Vec<D16>;

// acc[i] + a[2i] b[2i] + a[2i+1] b[2i+1]
HWY_INLINE VI pair_add(VI acc, V16 a, V16 b) {
#if HWY_TARGET == HWY_SSE4
  return hn::Add(acc, VI{_mm_madd_epi16(a.raw, b.raw)});
#elif HWY_TARGET == HWY_AVX2
  return hn::Add(acc, VI{_mm256_madd_epi16(a.raw, b.raw)});
#elif HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  return hn::Add(acc, VI{_mm512_madd_epi16(a.raw, b.raw)});
#else
  const DI d;
  const VI wa = hn::BitCast(d, a);
  const VI wb = hn::BitCast(d, b);
  const VI low = hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(wa)), hn::ShiftRight<16>(hn::ShiftLeft<16>(wb)));
  return hn::Add(hn::Add(acc, low), hn::Mul(hn::ShiftRight<16>(wa), hn::ShiftRight<16>(wb)));
#endif
}

HWY_INLINE std::int32_t read_pair(const std::int16_t* p) {
  std::int32_t v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

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
  SDX_ROWS(SDX_DECLARE)
  for (std::int64_t p = 0; p < t.pairs; ++p) {
    const V16 b0 = hn::PromoteTo(d16, hn::LoadU(d8, b));
    const V16 b1 = hn::PromoteTo(d16, hn::LoadU(d8, b + 2 * lanes));
#define SDX_STEP(I)                                                   \
  if constexpr (M > I) {                                              \
    const V16 v = hn::BitCast(d16, hn::Set(d, read_pair(a + 2 * I))); \
    c##I = pair_add(c##I, v, b0);                                     \
    e##I = pair_add(e##I, v, b1);                                     \
  }
    SDX_ROWS(SDX_STEP)
    a += 2 * M;
    b += 4 * lanes;
  }
#define SDX_STORE(I)                                 \
  if constexpr (M > I) {                             \
    hn::Store(c##I, d, out + 2 * lanes * I);         \
    hn::Store(e##I, d, out + 2 * lanes * I + lanes); \
  }
  SDX_ROWS(SDX_STORE)
#undef SDX_STORE
#undef SDX_STEP
#undef SDX_DECLARE
}

#endif

// The scalar form of the epilogue, for results that are written as bytes one row at a time from a small buffer.
void write_row(const QTile& t, std::int64_t i, const std::int32_t* sums) {
  const QEpilogue& e = *t.epilogue;
  const DI d;
  const DF df;
  const std::int64_t lanes = lanes_f32();
  HWY_ALIGN std::int32_t values[2 * kMaxF32Lanes];
  HWY_ALIGN float scales[2 * kMaxF32Lanes];
  const std::uint32_t row_sum = static_cast<std::uint32_t>(t.row_sums != nullptr ? t.row_sums[i] : 0);
  const std::int64_t first = e.per_row ? t.row + i : t.column;
  const std::int64_t step = e.per_row ? 0 : 1;
  for (std::int64_t j = 0; j < t.n; ++j) {
    const std::int32_t zero = t.b_zeros != nullptr ? t.b_zeros[j] + t.b_shift : t.b_zero;
    std::uint32_t v = static_cast<std::uint32_t>(sums[j]) - static_cast<std::uint32_t>(zero) * row_sum;
    if (e.bias != nullptr) v += static_cast<std::uint32_t>(e.bias[first + j * step]);
    values[j] = static_cast<std::int32_t>(v);
  }
  if (e.output == QEpilogue::Output::i32) {
    std::memcpy(static_cast<std::int32_t*>(t.c) + i * t.ldc, values, static_cast<std::size_t>(t.n) * sizeof(std::int32_t));
    return;
  }
  for (std::int64_t j = 0; j < t.n; ++j) scales[j] = e.scale_is_array ? e.scale[first + j * step] : *e.scale;
  for (std::int64_t j = t.n; j < 2 * lanes; ++j) {
    values[j] = 0;
    scales[j] = 0.0F;
  }
  if (e.output == QEpilogue::Output::f32) {
    float* c = static_cast<float*>(t.c) + i * t.ldc;
    for (std::int64_t j = 0; j < t.n; ++j) {
      c[j] = static_cast<float>(values[j]) * scales[j] + (e.bias_f32 != nullptr ? e.bias_f32[first + j * step] : 0.0F);
    }
    return;
  }
  for (std::int64_t j = 0; j < 2 * lanes; j += lanes) {
    VF v = hn::Mul(hn::ConvertTo(df, hn::Load(d, values + j)), hn::Load(df, scales + j));
    // Clamped as floats first: the conversion is undefined beyond int32's range.
    v = hn::Min(hn::Max(hn::Round(v), hn::Set(df, -1e6F)), hn::Set(df, 1e6F));
    const VI q = hn::Add(hn::ConvertTo(d, v), hn::Set(d, e.zero_point));
    hn::Store(hn::Min(hn::Max(q, hn::Set(d, e.low)), hn::Set(d, e.high)), d, values + j);
  }
  auto* c = static_cast<std::uint8_t*>(t.c) + i * t.ldc;
  for (std::int64_t j = 0; j < t.n; ++j) c[j] = static_cast<std::uint8_t>(values[j] & 0xFF);
}

void tile(const QTile& t) {
  HWY_ALIGN std::int32_t out[kMr * 2 * kMaxF32Lanes];
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  static const bool vnni = use_vnni(Isa::avx512) && vnni_product(1) != nullptr;
  if (vnni) {
    vnni_product(t.m)(t, out);
    for (std::int64_t i = 0; i < t.m; ++i) write_row(t, i, out + i * 2 * lanes_f32());
    return;
  }
#endif
  switch (t.m) {
#define SDX_CASE(I)                                                \
  case I + 1:                                                      \
    if constexpr (I < kMr) product<(I < kMr ? I + 1 : 1)>(t, out); \
    break;
    SDX_ROWS(SDX_CASE)
#undef SDX_CASE
    default: return;
  }
  for (std::int64_t i = 0; i < t.m; ++i) write_row(t, i, out + i * 2 * lanes_f32());
}
#undef SDX_ROWS

void interleave(const std::int8_t* HWY_RESTRICT r0, const std::int8_t* HWY_RESTRICT r1, std::int64_t n,
                std::int8_t* HWY_RESTRICT out, std::int64_t panel_step) {
  const std::int64_t nr = 2 * lanes_f32();
  for (std::int64_t j = 0; j < n; j += nr) {
    std::int8_t* panel = out + j / nr * panel_step;
    for (std::int64_t i = 0; i < nr; ++i) {
      panel[2 * i] = r0[j + i];
      panel[2 * i + 1] = r1[j + i];
    }
  }
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
  for (std::int64_t i = 0; i < n; i += lanes) {
    const std::int64_t count = n - i < lanes ? n - i : lanes;
    VF v = hn::Div(count == lanes ? hn::LoadU(d, x + i) : load_tail(d, x + i, count), vs);
    v = hn::IfThenElse(hn::Eq(v, v), v, hn::Set(d, -1e6F));
    v = hn::Round(hn::Min(hn::Max(v, hn::Set(d, -1e6F)), hn::Set(d, 1e6F)));
    const VI q = hn::Min(hn::Max(hn::Add(hn::ConvertTo(di, v), vzero), vlow), vhigh);
#if HWY_TARGET != HWY_SCALAR
    if (count == lanes) {
      // Both signednesses share the low byte.
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

void min_max(const float* x, std::int64_t n, float* min, float* max) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const float inf = std::numeric_limits<float>::infinity();
  VF lo = hn::Set(d, inf);
  VF hi = hn::Set(d, -inf);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VF v = hn::LoadU(d, x + i);
    lo = hn::IfThenElse(hn::Lt(v, lo), v, lo);
    hi = hn::IfThenElse(hn::Gt(v, hi), v, hi);
  }
  *min = hn::GetLane(hn::MinOfLanes(d, lo));
  *max = hn::GetLane(hn::MaxOfLanes(d, hi));
  for (; i < n; ++i) {
    if (x[i] < *min) *min = x[i];
    if (x[i] > *max) *max = x[i];
  }
}

}  // namespace

const QuantKernels* quant_table() {
  static const QuantKernels table{kMr, static_cast<int>(2 * lanes_f32()), tile, interleave, quantize, dequantize, min_max};
  return &table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/dispatch.h"

namespace sdx::cpu {

const QuantKernels& quant_kernels() { return *SDX_CPU_PICK(quant_table)(); }

}  // namespace sdx::cpu
#endif
