// Helpers and vector maths shared by the kernels; included once per instruction set.
#if defined(SDX_KERNELS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SDX_KERNELS_CPU_SIMD_INL_H_
#undef SDX_KERNELS_CPU_SIMD_INL_H_
#else
#define SDX_KERNELS_CPU_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/simd/target_width.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;
using DD = hn::ScalableTag<double>;
using VD = hn::Vec<DD>;
using DFHalf = hn::Rebind<float, DD>;  // as many floats as a vector has doubles
using VFHalf = hn::Vec<DFHalf>;
inline constexpr int kMaxF32Lanes = HWY_MAX_BYTES / 4;

// Rows of a register tile: 2 vectors of columns each, plus 2 vectors of B and a broadcast of A must fit the register file:
// 16 registers -> 6 rows, 32 registers -> 14 (28 + 3 = 31). Fewer for int16 pairs, whose products take registers before they are
// added.
#if SDX_512_BITS
inline constexpr int kTileRows = 14, kPairTileRows = 12;
#elif HWY_TARGET == HWY_NEON
inline constexpr int kTileRows = 12, kPairTileRows = 8;
#else
inline constexpr int kTileRows = 6, kPairTileRows = 6;
#endif

HWY_INLINE std::int64_t lanes_f32() { return static_cast<std::int64_t>(hn::Lanes(DF())); }

// The first n < Lanes elements; the rest are zero. Reads nothing beyond them: masked moves, from AVX2 on, do not fault on
// elements they leave out.
HWY_INLINE VF load_tail(DF d, const float* p, std::int64_t n) {
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(n)), d, p);
#else
  HWY_ALIGN float buffer[kMaxF32Lanes] = {};
  std::memcpy(buffer, p, static_cast<std::size_t>(n) * sizeof(float));
  return hn::Load(d, buffer);
#endif
}
HWY_INLINE void store_tail(VF v, DF d, float* p, std::int64_t n) {
#if HWY_TARGET == HWY_AVX2
  // In pieces: a masked store takes 12 cycles and more on AMD's cores (up to Zen 4).
  __m128 x = _mm256_castps256_ps128(v.raw);
  if ((n & 4) != 0) {
    _mm_storeu_ps(p, x);
    x = _mm256_extractf128_ps(v.raw, 1);
    p += 4;
  }
  if ((n & 2) != 0) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), x);
    x = _mm_movehl_ps(x, x);
    p += 2;
  }
  if ((n & 1) != 0) _mm_store_ss(p, x);
  (void)d;
#elif HWY_TARGET < HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(n)), d, p);
#else
  HWY_ALIGN float buffer[kMaxF32Lanes];
  hn::Store(v, d, buffer);
  std::memcpy(p, buffer, static_cast<std::size_t>(n) * sizeof(float));
#endif
}

// The first `left` elements, at most a vector of them.
HWY_INLINE VF load_floats(const float* p, std::int64_t left) {
  return left >= lanes_f32() ? hn::LoadU(DF(), p) : load_tail(DF(), p, left);
}
HWY_INLINE void store_floats(VF v, float* p, std::int64_t left) {
  if (left >= lanes_f32()) {
    hn::StoreU(v, DF(), p);
  } else {
    store_tail(v, DF(), p, left);
  }
}

HWY_INLINE float sum_lanes(DF d, VF v) { return hn::GetLane(hn::SumOfLanes(d, v)); }
HWY_INLINE float max_lanes(DF d, VF v) { return hn::GetLane(hn::MaxOfLanes(d, v)); }

// Bounds for x that keep its NaN. x86's min and max return the second operand if either is NaN (Intel SDM, MAXPS); elsewhere
// comparison and select. (Highway's Ne is an ordered comparison on AVX2: not NaN is Eq(x, x).)
HWY_INLINE VF at_least(VF lo, VF x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  return hn::Max(lo, x);
#else
  return hn::IfThenElse(hn::Lt(x, lo), lo, x);
#endif
}
HWY_INLINE VF at_most(VF hi, VF x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  return hn::Min(hi, x);
#else
  return hn::IfThenElse(hn::Gt(x, hi), hi, x);
#endif
}
HWY_INLINE VF relu(VF x) { return at_least(hn::Zero(DF()), x); }
HWY_INLINE VF clip(VF x, VF lo, VF hi) { return at_most(hi, at_least(lo, x)); }
HWY_INLINE VF max_nan(VF a, VF b) { return hn::IfThenElse(hn::Eq(a, a), hn::IfThenElse(hn::Gt(a, b), a, b), a); }
HWY_INLINE VF min_nan(VF a, VF b) { return hn::IfThenElse(hn::Eq(a, a), hn::IfThenElse(hn::Lt(a, b), a, b), a); }

// A vector of floats from as many float16 numbers. Highway's own half conversions treat subnormals and NaN differently per
// target; this integer form does not.
HWY_INLINE VF widened_half(const std::uint16_t* p) {
  const DF d;
  const hn::RebindToUnsigned<DF> du;
  const hn::Rebind<std::uint16_t, DF> d16;
  const auto h = hn::PromoteTo(du, hn::LoadU(d16, p));
  const auto sign = hn::ShiftLeft<16>(hn::And(h, hn::Set(du, 0x8000U)));
  const auto magnitude = hn::And(h, hn::Set(du, 0x7FFFU));
  // Exponent and fraction in place, then scaled by 2^112: exact for normal and subnormal halves alike.
  const auto scaled = hn::Mul(hn::BitCast(d, hn::ShiftLeft<13>(magnitude)), hn::BitCast(d, hn::Set(du, 0x77800000U)));
  // Infinity and NaN need the float's top exponent.
  const auto special = hn::Or(hn::ShiftLeft<13>(magnitude), hn::Set(du, 0x7F800000U));
  const auto bits = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7BFFU)), special, hn::BitCast(du, scaled));
  return hn::BitCast(d, hn::Or(bits, sign));
}
HWY_INLINE VF widened_bfloat(const std::uint16_t* p) {
  const hn::RebindToUnsigned<DF> du;
  const hn::Rebind<std::uint16_t, DF> d16;
  return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, p))));
}

// 2^e for integers e in [-126, 127].
HWY_INLINE VF pow2(hn::Vec<hn::RebindToSigned<DF>> e) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(e, hn::Set(di, 127))));
}

// The sum of a small float and this has the float's rounded integer part, as an exponent, in its low bits: 1.5 * 2^23 + 127.
inline constexpr float kExponentSum = 12582912.0F + 127.0F;
// 2^n from n + kExponentSum; n = -127 gives 0.
HWY_INLINE VF exponent_of(VF sum) { return hn::BitCast(DF(), hn::ShiftLeft<23>(hn::BitCast(hn::RebindToSigned<DF>(), sum))); }

// 2^z for z >= -127 as fraction * scale. The polynomial is a minimax fit made for this file (error 7.5e-8).
struct Exp2 {
  VF fraction, scale;
};
HWY_INLINE Exp2 exp2_f32(VF z) {
  const DF d;
  const VF magic = hn::Set(d, kExponentSum);
  const VF t = hn::Add(z, magic);
  const VF r = hn::Sub(z, hn::Sub(t, magic));
  VF p = hn::MulAdd(hn::Set(d, 1.327647129e-03F), r, hn::Set(d, 9.675541893e-03F));
  p = hn::MulAdd(p, r, hn::Set(d, 5.550713092e-02F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.24022120237F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.69314694405F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0000001192F));
  return {p, exponent_of(t)};
}

// exp(x - n ln 2) where n is x / ln 2 rounded. Range reduction by ln 2 in two parts, the first with 9 significant bits so that n
// * hi is exact without FMA (Cody & Waite); polynomial from Cephes expf.
HWY_INLINE VF exp_of_rest(VF x, VF n) {
  const DF d;
  VF r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
  VF p = hn::MulAdd(hn::Set(d, 1.9875691500E-4F), r, hn::Set(d, 1.3981999507E-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073E-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894E-2F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459E-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201E-1F));
  return hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0F));
}

// At most 1.5 ulp. Scaling in two steps reaches subnormals and overflows to infinity by itself.
HWY_INLINE VF exp_f32(VF x) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const VF xc = hn::Min(hn::Max(x, hn::Set(d, -104.0F)), hn::Set(d, 89.0F));
  const VF n = hn::Round(hn::Mul(xc, hn::Set(d, 1.44269504088896341F)));
  const VF p = exp_of_rest(xc, n);
  const auto e = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(e);
  const VF y = hn::Mul(hn::Mul(p, pow2(half)), pow2(hn::Sub(e, half)));
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

// exp(x) for x <= 0 (not NaN), as in softmax; values below -87.3 give 0.
HWY_INLINE VF exp_nonpositive_f32(VF x) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const VF low = hn::Set(d, -87.3F);
  const VF xc = hn::Max(x, low);
  const VF n = hn::Round(hn::Mul(xc, hn::Set(d, 1.44269504088896341F)));
  const VF p = exp_of_rest(xc, n);
  return hn::IfThenElseZero(hn::Ge(x, low), hn::Mul(p, pow2(hn::ConvertTo(di, n))));
}

// exp(x) for x <= 0; NaN stays NaN, and values below -87.7 give 0. The integer part comes from kExponentSum (0 below -126.5 ln
// 2). The polynomial is a minimax fit made for this file (degree 6, relative error 4e-9): with roundings at most 1.5 ulp. Its 15
// operations take most of a softmax's time.
HWY_INLINE VF exp_row(VF x) {
  const DF d;
  const VF magic = hn::Set(d, kExponentSum);
  const VF xc = at_least(hn::Set(d, -88.0F), x);
  const VF t = hn::MulAdd(xc, hn::Set(d, 1.44269504088896341F), magic);
  const VF n = hn::Sub(t, magic);
  VF r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), xc);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
  VF p = hn::MulAdd(hn::Set(d, 0.00138145406F), r, hn::Set(d, 0.00836874545F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.041668389F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.166665211F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.49999994F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  return hn::Mul(p, exponent_of(t));
}

// log(m 2^k) with m in [sqrt(1/2), sqrt 2): s = f / (2 + f) and an odd polynomial in s (Tang 1990; the coefficients of the
// BSD logf, error 2^-34). Subnormals are scaled by 2^25 first.
HWY_INLINE VF log_f32(VF x0) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const auto tiny = hn::Lt(x0, hn::Set(d, 1.17549435e-38F));
  const VF x = hn::IfThenElse(tiny, hn::Mul(x0, hn::Set(d, 33554432.0F)), x0);
  const auto bits = hn::Add(hn::BitCast(di, x), hn::Set(di, 0x3F800000 - 0x3F3504F3));
  const auto k = hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, 127));
  const auto mantissa = hn::Add(hn::And(bits, hn::Set(di, 0x007FFFFF)), hn::Set(di, 0x3F3504F3));
  VF dk = hn::ConvertTo(d, k);
  dk = hn::Sub(dk, hn::IfThenElseZero(tiny, hn::Set(d, 25.0F)));
  const VF f = hn::Sub(hn::BitCast(d, mantissa), hn::Set(d, 1.0F));
  const VF s = hn::Div(f, hn::Add(hn::Set(d, 2.0F), f));
  const VF z = hn::Mul(s, s);
  const VF w = hn::Mul(z, z);
  const VF t1 = hn::Mul(w, hn::MulAdd(w, hn::Set(d, 0.24279078841F), hn::Set(d, 0.40000972152F)));
  const VF t2 = hn::Mul(z, hn::MulAdd(w, hn::Set(d, 0.28498786688F), hn::Set(d, 0.66666662693F)));
  const VF half_square = hn::Mul(hn::Set(d, 0.5F), hn::Mul(f, f));
  VF y = hn::Mul(s, hn::Add(half_square, hn::Add(t1, t2)));
  y = hn::MulAdd(dk, hn::Set(d, 9.0580006145e-06F), y);
  y = hn::Add(hn::Sub(y, half_square), f);
  y = hn::MulAdd(dk, hn::Set(d, 6.9313812256e-01F), y);
  const VF inf = hn::Inf(d);
  y = hn::IfThenElse(hn::Eq(x0, inf), inf, y);
  y = hn::IfThenElse(hn::Eq(x0, hn::Zero(d)), hn::Neg(inf), y);
  y = hn::IfThenElse(hn::Lt(x0, hn::Zero(d)), hn::NaN(d), y);
  return hn::IfThenElse(hn::Eq(x0, x0), y, x0);
}

// log(1 + x) for x in [0, 1], at most 2 ulp: 2 atanh(s) with s = x / (2 + x), an odd polynomial in s up to 1/3 (a minimax fit
// made for this file, relative error 4e-9).
HWY_INLINE VF log1p_unit_f32(VF x) {
  const DF d;
  const VF s = hn::Div(x, hn::Add(x, hn::Set(d, 2.0F)));
  const VF z = hn::Mul(s, s), twice = hn::Add(s, s);
  VF p = hn::MulAdd(hn::Set(d, 0.1408916776F), z, hn::Set(d, 0.1398030159F));
  p = hn::MulAdd(p, z, hn::Set(d, 0.200124551F));
  p = hn::MulAdd(p, z, hn::Set(d, 0.3333315734F));
  return hn::MulAdd(twice, hn::Mul(z, p), twice);
}

// Odd polynomial (Cephes tanhf) below 0.625, 1 - 2 / (exp(2|x|) + 1) above.
HWY_INLINE VF tanh_f32(VF x) {
  const DF d;
  const VF ax = hn::Abs(x);
  const VF z = hn::Mul(x, x);
  VF p = hn::MulAdd(hn::Set(d, -5.70498872745E-3F), z, hn::Set(d, 2.06390887954E-2F));
  p = hn::MulAdd(p, z, hn::Set(d, -5.37397155531E-2F));
  p = hn::MulAdd(p, z, hn::Set(d, 1.33314422036E-1F));
  p = hn::MulAdd(p, z, hn::Set(d, -3.33332819422E-1F));
  const VF small = hn::MulAdd(hn::Mul(p, z), x, x);
  const VF e = exp_f32(hn::Add(ax, ax));
  const VF one = hn::Set(d, 1.0F);
  const VF large = hn::CopySign(hn::Sub(one, hn::Div(hn::Set(d, 2.0F), hn::Add(e, one))), x);
  return hn::IfThenElse(hn::Lt(ax, hn::Set(d, 0.625F)), small, large);
}

// 1 + exp(-x), at most 2.5 ulp. As above, but scaled in one step and with the integer part from kExponentSum; infinite from x =
// -88.4 on. The polynomial is a minimax fit made for this file (degree 5, relative error 1.05e-7): two steps fewer save a quarter
// of a SiLU's time.
HWY_INLINE VF one_plus_exp_neg_f32(VF x) {
  const DF d;
  const VF one = hn::Set(d, 1.0F);
  const VF magic = hn::Set(d, kExponentSum);
  const VF xc = at_most(hn::Set(d, 87.3F), at_least(hn::Set(d, -88.7F), x));
  const VF t = hn::NegMulAdd(xc, hn::Set(d, 1.44269504088896341F), magic);
  const VF n = hn::Sub(t, magic);
  VF r = hn::MulAdd(n, hn::Set(d, 0.693359375F), xc);  // the negated remainder
  r = hn::MulAdd(n, hn::Set(d, -2.12194440e-4F), r);
  VF p = hn::MulAdd(hn::Set(d, -0.008312501F), r, hn::Set(d, 0.04189033F));
  p = hn::MulAdd(p, r, hn::Set(d, -0.16667116F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.4999923F));
  p = hn::MulSub(p, r, one);
  p = hn::MulAdd(p, r, one);
  return hn::MulAdd(p, exponent_of(t), one);
}

HWY_INLINE VF sigmoid_f32(VF x) { return hn::Div(hn::Set(DF(), 1.0F), one_plus_exp_neg_f32(x)); }
// x sigmoid(a x)
HWY_INLINE VF silu_f32(VF x, VF a) { return hn::Div(x, one_plus_exp_neg_f32(hn::Mul(a, x))); }

// x (1 + erf(x / sqrt 2)) / 2 as max(x, 0) - |x| / 2 erfc(|x| / sqrt 2), which does not cancel for x < 0: error at most 2.5e-7,
// with half the operations of a version with erf. erfc(u / sqrt 2) = 2^(u Q(u)); Q is a minimax fit made for this file
// (error 2.7e-8 of the result, weighted).
HWY_INLINE VF gelu_f32(VF x) {
  const DF d;
  const VF u = hn::Min(hn::Abs(x), hn::Set(d, 1000.0F));
  VF q = hn::MulAdd(hn::Set(d, -8.760459877521498e-07F), u, hn::Set(d, 1.4695701793243643e-05F));
  q = hn::MulAdd(q, u, hn::Set(d, -6.250931619433686e-05F));
  q = hn::MulAdd(q, u, hn::Set(d, -4.53497952548787e-04F));
  q = hn::MulAdd(q, u, hn::Set(d, 7.505275774747133e-03F));
  q = hn::MulAdd(q, u, hn::Set(d, -5.2827246487140656e-02F));
  q = hn::MulAdd(q, u, hn::Set(d, -0.45908755064F));
  q = hn::MulAdd(q, u, hn::Set(d, -1.15112113953F));
  const VF z = hn::Max(hn::Mul(q, u), hn::Set(d, -127.0F));
  const Exp2 e = exp2_f32(z);
  return hn::NegMulAdd(hn::Mul(hn::Mul(hn::Set(d, 0.5F), u), e.scale), e.fraction, relu(x));
}

// exp(x) - 1 for x <= 0: a polynomial near 0, where the subtraction would cancel.
HWY_INLINE VF expm1_nonpositive_f32(VF x) {
  const DF d;
  VF p = hn::MulAdd(hn::Set(d, 1.0F / 5040), x, hn::Set(d, 1.0F / 720));
  p = hn::MulAdd(p, x, hn::Set(d, 1.0F / 120));
  p = hn::MulAdd(p, x, hn::Set(d, 1.0F / 24));
  p = hn::MulAdd(p, x, hn::Set(d, 1.0F / 6));
  p = hn::MulAdd(p, x, hn::Set(d, 0.5F));
  const VF small = hn::MulAdd(hn::Mul(p, x), x, x);
  const VF large = hn::Sub(exp_row(x), hn::Set(d, 1.0F));
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, -0.35F)), small, large);
}

// base^-beta for base > 0: 0.75 and 0.5, which nearly every model uses, need square roots only.
template <int kQuarters>
HWY_INLINE VF inverse_power(VF base, VF beta) {
  const DF d;
  const VF one = hn::Set(d, 1.0F);
  if constexpr (kQuarters == 2) return hn::Div(one, hn::Sqrt(base));
  if constexpr (kQuarters == 3) {
    const VF root = hn::Sqrt(base);
    return hn::Div(one, hn::Mul(root, hn::Sqrt(root)));
  }
  if constexpr (kQuarters == 4) return hn::Div(one, base);
  return exp_f32(hn::Neg(hn::Mul(beta, log_f32(base))));
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#endif
