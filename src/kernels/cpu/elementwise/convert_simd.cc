#include "kernels/cpu/elementwise/convert_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/convert_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"
#include "tensor/types.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

HWY_INLINE std::uint16_t read16(const void* p, std::int64_t i) {
  std::uint16_t v;
  std::memcpy(&v, static_cast<const char*>(p) + 2 * i, sizeof(v));
  return v;
}
#if HWY_TARGET != HWY_SCALAR
HWY_INLINE const std::uint16_t* at16(const void* p, std::int64_t i) {
  return reinterpret_cast<const std::uint16_t*>(static_cast<const char*>(p) + 2 * i);
}
#endif
HWY_INLINE void write16(void* p, std::int64_t i, std::uint16_t v) { std::memcpy(static_cast<char*>(p) + 2 * i, &v, sizeof(v)); }

// AVX2 implies F16C (base/system/cpu_features.h); elsewhere in integers, like float_to_half.
#if HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
#define SDX_F16C 1
#else
#define SDX_F16C 0
#endif

void half_to_float(const void* x, float* y, std::int64_t n) {
  std::int64_t i = 0;
#if SDX_F16C
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at16(x, i)))));
  }
#elif HWY_TARGET != HWY_SCALAR
  const std::int64_t lanes = lanes_f32();
  for (; i + lanes <= n; i += lanes) hn::StoreU(widened_half(at16(x, i)), DF(), y + i);
#endif
  for (; i < n; ++i) y[i] = sdx::half_to_float(read16(x, i));
}

void float_to_half(const float* x, void* y, std::int64_t n) {
  std::int64_t i = 0;
#if SDX_F16C
  for (; i + 8 <= n; i += 8) {
    const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(static_cast<char*>(y) + 2 * i), h);
  }
#elif HWY_TARGET != HWY_SCALAR
  const DF d;
  const hn::RebindToUnsigned<DF> du;
  const hn::Rebind<std::uint16_t, DF> d16;
  const std::int64_t lanes = lanes_f32();
  for (; i + lanes <= n; i += lanes) {
    const auto bits = hn::BitCast(du, hn::LoadU(d, x + i));
    const auto sign = hn::ShiftRight<16>(hn::And(bits, hn::Set(du, 0x80000000U)));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFFU));
    // Normal: rebias the exponent and round to nearest even on the 13 dropped bits; a carry may reach infinity, as it should.
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1U));
    const auto normal =
        hn::ShiftRight<13>(hn::Add(hn::Sub(magnitude, hn::Set(du, 0x38000000U)), hn::Add(odd, hn::Set(du, 0xFFFU))));
    // Subnormal (below 2^-14): adding 0.5 aligns the fraction at 2^-24 and lets the adder round.
    const auto half = hn::Set(du, 0x3F000000U);
    const auto subnormal = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, half))), half);
    const auto nan = hn::Or(hn::Set(du, 0x7E00U), hn::ShiftRight<13>(hn::And(magnitude, hn::Set(du, 0x7FFFFFU))));
    auto h = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x38800000U)), subnormal, normal);
    h = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x477FEFFFU)), hn::Set(du, 0x7C00U), h);
    h = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7F800000U)), nan, h);
    hn::StoreU(hn::TruncateTo(d16, hn::Or(h, sign)), d16, reinterpret_cast<std::uint16_t*>(static_cast<char*>(y) + 2 * i));
  }
#endif
  for (; i < n; ++i) write16(y, i, sdx::float_to_half(x[i]));
}

#undef SDX_F16C

void bfloat_to_float(const void* x, float* y, std::int64_t n) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const std::int64_t lanes = lanes_f32();
  for (; i + lanes <= n; i += lanes) hn::StoreU(widened_bfloat(at16(x, i)), DF(), y + i);
#endif
  for (; i < n; ++i) {
    BFloat16 b;
    b.bits = read16(x, i);
    y[i] = static_cast<float>(b);
  }
}

void float_to_bfloat(const float* x, void* y, std::int64_t n) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const DF d;
  const hn::RebindToUnsigned<DF> du;
  const hn::Rebind<std::uint16_t, DF> d16;
  const std::int64_t lanes = lanes_f32();
  for (; i + lanes <= n; i += lanes) {
    const VF v = hn::LoadU(d, x + i);
    const auto u = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(du, 1U));
    const auto rounded = hn::ShiftRight<16>(hn::Add(u, hn::Add(odd, hn::Set(du, 0x7FFFU))));
    const auto nan = hn::Or(hn::ShiftRight<16>(u), hn::Set(du, 0x40U));
    const auto magnitude = hn::And(u, hn::Set(du, 0x7FFFFFFFU));
    const auto h = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7F800000U)), nan, rounded);
    hn::StoreU(hn::TruncateTo(d16, h), d16, reinterpret_cast<std::uint16_t*>(static_cast<char*>(y) + 2 * i));
  }
#endif
  for (; i < n; ++i) write16(y, i, BFloat16(x[i]).bits);
}

}  // namespace

const ConvertKernels& convert_table() {
  static const ConvertKernels table{half_to_float, float_to_half, bfloat_to_float, float_to_bfloat};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const ConvertKernels&, convert_kernels, convert_table)
#endif
