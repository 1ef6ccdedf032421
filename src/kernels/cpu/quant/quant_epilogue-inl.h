// Code that products of bytes share: the multiply-add of int16 pairs, and the epilogue of sums. Included once per instruction
// set.
#if defined(SDX_KERNELS_CPU_QUANT_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SDX_KERNELS_CPU_QUANT_EPILOGUE_INL_H_
#undef SDX_KERNELS_CPU_QUANT_EPILOGUE_INL_H_
#else
#define SDX_KERNELS_CPU_QUANT_EPILOGUE_INL_H_
#endif

#include "kernels/cpu/quant/quant.h"
#include "kernels/cpu/simd/simd-inl.h"
#include "kernels/cpu/simd/target_width.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {

using DI = hn::RebindToSigned<DF>;
using VI = hn::Vec<DI>;

#if HWY_TARGET != HWY_SCALAR
using D16 = hn::Repartition<std::int16_t, DI>;
using V16 = hn::Vec<D16>;

// acc[i] + a[2i] b[2i] + a[2i+1] b[2i+1]
HWY_INLINE VI pair_add(VI acc, V16 a, V16 b) {
#if HWY_TARGET == HWY_SSE4
  return hn::Add(acc, VI{_mm_madd_epi16(a.raw, b.raw)});
#elif HWY_TARGET == HWY_AVX2
  return hn::Add(acc, VI{_mm256_madd_epi16(a.raw, b.raw)});
#elif SDX_512_BITS
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

#endif

// Loads the first `left` values, at most a vector; the others are 0.
HWY_INLINE VI load_ints(const std::int32_t* p, std::int64_t left) {
  const DI d;
  if (left >= lanes_f32()) return hn::LoadU(d, p);
  HWY_ALIGN std::int32_t buffer[kMaxF32Lanes] = {};
  std::memcpy(buffer, p, static_cast<std::size_t>(left) * sizeof(std::int32_t));
  return hn::Load(d, buffer);
}

// The epilogue of one row. Arrays indexed by columns start at `column`.
struct Narrow {
  const QEpilogue* e;
  std::int64_t column;
  VI bias, zero_point;
  VF scale, bias_f32, low, high;  // low and high: bounds of bytes before the zero point is added
};

HWY_INLINE Narrow narrow_of(const QEpilogue& e, std::int64_t row, std::int64_t column) {
  const DI d;
  const DF df;
  const bool per_row = e.per_row;
  Narrow n;
  n.e = &e;
  n.column = column;
  n.bias = hn::Set(d, e.bias != nullptr && per_row ? e.bias[row] : 0);
  n.zero_point = hn::Set(d, e.zero_point);
  n.low = hn::Set(df, static_cast<float>(e.low - e.zero_point));
  n.high = hn::Set(df, static_cast<float>(e.high - e.zero_point));
  n.scale = hn::Set(df, e.scale != nullptr ? e.scale[e.scale_is_array && per_row ? row : 0] : 1.0F);
  n.bias_f32 = hn::Set(df, e.bias_f32 != nullptr && per_row ? e.bias_f32[row] : 0.0F);
  return n;
}

// Clamps before converting: the conversion is undefined beyond int32's range. Bounds are whole numbers, so rounding keeps them.
HWY_INLINE VI to_byte(const Narrow& n, VF v) { return hn::Add(hn::NearestInt(hn::Min(hn::Max(v, n.low), n.high)), n.zero_point); }

#if HWY_TARGET == HWY_SCALAR

// Rounds to the nearest integer, halves to even, by adding and subtracting 1.5 * 2^23; for magnitudes below 2^22.
inline float whole_of(float v) { return v + 12582912.0F - 12582912.0F; }

inline std::uint8_t byte_of(const QEpilogue& e, float v) {
  const auto low = static_cast<float>(e.low - e.zero_point), high = static_cast<float>(e.high - e.zero_point);
  v = v > low ? v : low;
  v = v < high ? v : high;
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(whole_of(v)) + e.zero_point);
}

#endif

// Stores values j to j + min(left, lanes) of the row to y, the beginning of the row.
HWY_INLINE void put(const Narrow& n, VI v, std::int64_t j, std::int64_t left, void* y) {
  const QEpilogue& e = *n.e;
  const DI d;
  const DF df;
  const std::int64_t lanes = lanes_f32();
  const bool columns = !e.per_row;
  v = hn::Add(v, columns && e.bias != nullptr ? load_ints(e.bias + n.column + j, left) : n.bias);
  HWY_ALIGN std::int32_t buffer[kMaxF32Lanes];
  const auto count = static_cast<std::size_t>(left < lanes ? left : lanes);
  if (e.output == QEpilogue::Output::i32) {
    hn::Store(v, d, buffer);
    std::memcpy(static_cast<std::int32_t*>(y) + j, buffer, count * sizeof(std::int32_t));
    return;
  }
  VF f = hn::Mul(hn::ConvertTo(df, v), columns && e.scale_is_array ? load_floats(e.scale + n.column + j, left) : n.scale);
  if (e.output == QEpilogue::Output::f32) {
    f = hn::Add(f, columns && e.bias_f32 != nullptr ? load_floats(e.bias_f32 + n.column + j, left) : n.bias_f32);
    return store_floats(f, static_cast<float*>(y) + j, left);
  }
  const VI q = to_byte(n, f);
  auto* to = static_cast<std::uint8_t*>(y) + j;
#if HWY_TARGET != HWY_SCALAR
  // The low byte is the same for both signednesses.
  const hn::Rebind<std::uint8_t, DI> d8;
  const auto bytes = hn::TruncateTo(d8, hn::BitCast(hn::RebindToUnsigned<DI>(), q));
  if (left >= lanes) {
    hn::StoreU(bytes, d8, to);
  } else {
    HWY_ALIGN std::uint8_t small[4 * kMaxF32Lanes];
    hn::StoreU(bytes, d8, small);
    std::memcpy(to, small, count);
  }
#else
  *to = static_cast<std::uint8_t>(hn::GetLane(q) & 0xFF);
#endif
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#endif
