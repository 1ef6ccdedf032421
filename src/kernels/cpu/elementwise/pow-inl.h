// Powers of floats; included once per instruction set.
#if defined(SDX_KERNELS_CPU_ELEMENTWISE_POW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SDX_KERNELS_CPU_ELEMENTWISE_POW_INL_H_
#undef SDX_KERNELS_CPU_ELEMENTWISE_POW_INL_H_
#else
#define SDX_KERNELS_CPU_ELEMENTWISE_POW_INL_H_
#endif

#include <cmath>
#include <limits>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {

// log2 of normal positive floats, error below 2^-39 of the result: x = 2^e m with m in [sqrt(1/2), sqrt 2), and the series of
// artanh in (m - 1) / (m + 1).
HWY_INLINE VD log2_in_double(VFHalf x) {
  const DD d;
  const DFHalf df;
  const hn::RebindToSigned<DFHalf> di;
  const auto bits = hn::Sub(hn::BitCast(di, x), hn::Set(di, 0x3F3504F3));
  const VD e = hn::PromoteTo(d, hn::ShiftRight<23>(bits));
  const auto mantissa = hn::Add(hn::And(bits, hn::Set(di, 0x007FFFFF)), hn::Set(di, 0x3F3504F3));
  const VD m = hn::PromoteTo(d, hn::BitCast(df, mantissa));
  const VD one = hn::Set(d, 1.0);
  const VD s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const VD z = hn::Mul(s, s);
  VD p = hn::MulAdd(z, hn::Set(d, 1.0 / 13), hn::Set(d, 1.0 / 11));
  p = hn::MulAdd(p, z, hn::Set(d, 1.0 / 9));
  p = hn::MulAdd(p, z, hn::Set(d, 1.0 / 7));
  p = hn::MulAdd(p, z, hn::Set(d, 1.0 / 5));
  p = hn::MulAdd(p, z, hn::Set(d, 1.0 / 3));
  p = hn::MulAdd(p, z, one);
  return hn::MulAdd(hn::Mul(s, p), hn::Set(d, 2.0 * 1.4426950408889634), e);
}

// 2^z for |z| < 1000, error below 2^-31 of the result (Taylor's series).
HWY_INLINE VD exp2_in_double(VD z) {
  const DD d;
  const hn::RebindToSigned<DD> di;
  const VD magic = hn::Set(d, 0x1.8p52 + 1023.0);
  const VD t = hn::Add(z, magic);
  const VD r = hn::Mul(hn::Sub(z, hn::Sub(t, magic)), hn::Set(d, 0.69314718055994531));
  VD p = hn::MulAdd(r, hn::Set(d, 1.0 / 40320), hn::Set(d, 1.0 / 5040));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0 / 720));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0 / 120));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0 / 24));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0 / 6));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<52>(hn::BitCast(di, t))));
}

// Writes half a vector of a^b to y, in double: within 1 ulp. Elements whose base is not positive and normal, or whose result is
// not normal, are left to the library, one by one.
HWY_INLINE void pow_half(VFHalf a, VFHalf b, float* y, std::int64_t count) {
  const DD d;
  const DFHalf df;
  const VD z = hn::Mul(log2_in_double(a), hn::PromoteTo(d, b));
  const auto usual =
      hn::And(hn::Ge(a, hn::Set(df, 1.17549435e-38F)), hn::Lt(a, hn::Set(df, std::numeric_limits<float>::infinity())));
  const auto in_range = hn::Lt(hn::Abs(z), hn::Set(d, 125.0));
  HWY_ALIGN float result[HWY_MAX_BYTES / sizeof(double)];
  const VFHalf power = hn::DemoteTo(df, exp2_in_double(z));
  if (hn::AllTrue(df, usual) && hn::AllTrue(d, in_range) && count == static_cast<std::int64_t>(hn::Lanes(d))) {
    hn::StoreU(power, df, y);
    return;
  }
  HWY_ALIGN float bases[HWY_MAX_BYTES / sizeof(double)], exponents[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN double powers[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(power, df, result);
  hn::Store(a, df, bases);
  hn::Store(b, df, exponents);
  hn::Store(z, d, powers);
  for (std::int64_t i = 0; i < count; ++i) {
    const bool fine =
        bases[i] >= 1.17549435e-38F && bases[i] < std::numeric_limits<float>::infinity() && std::fabs(powers[i]) < 125.0;
    y[i] = fine ? result[i] : std::pow(bases[i], exponents[i]);
  }
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#endif
