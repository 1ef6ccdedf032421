#include "kernels/cpu/elementwise/math_simd.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/math_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

using DI = hn::RebindToSigned<DF>;

// Bound of the arguments for reduction by pi/2: with FMA each of its three steps rounds once, so the multiple may have 17 bits;
// without it the products must be exact: 11 bits of the constants times 13 of the multiple.
#if HWY_NATIVE_FMA
constexpr float kReducible = 131072.0F;
#else
constexpr float kReducible = 8192.0F;
#endif

// x - n pi/2 (Cody & Waite).
HWY_INLINE VF less_half_pis(VF x, VF n) {
  const DF d;
#if HWY_NATIVE_FMA
  VF r = hn::NegMulAdd(n, hn::Set(d, 1.57079637050628662109375F), x);
  r = hn::NegMulAdd(n, hn::Set(d, -4.37113900018624283e-8F), r);
  return hn::NegMulAdd(n, hn::Set(d, -1.71512449441e-15F), r);
#else
  VF r = hn::NegMulAdd(n, hn::Set(d, 0x1.92p+0F), x);
  r = hn::NegMulAdd(n, hn::Set(d, 0x1.fb4p-12F), r);
  r = hn::NegMulAdd(n, hn::Set(d, 0x1.444p-24F), r);
  return hn::NegMulAdd(n, hn::Set(d, 0x1.68c234p-39F), r);
#endif
}

// sin for kQuarter 0, cos for 1: at most 2.5 ulp. The polynomials for [-pi/4, pi/4] are those of Cephes' sinf and cosf.
template <int kQuarter>
HWY_INLINE VF sine(VF x) {
  const DF d;
  const DI di;
  const VF ax = hn::Abs(x);
  const VF n = hn::Round(hn::Mul(ax, hn::Set(d, 0.636619772367581343F)));
  const VF r = less_half_pis(ax, n);
  const auto quadrant = hn::Add(hn::ConvertTo(di, n), hn::Set(di, kQuarter));
  const VF z = hn::Mul(r, r);
  VF s = hn::MulAdd(hn::Set(d, -1.9515295891E-4F), z, hn::Set(d, 8.3321608736E-3F));
  s = hn::MulAdd(s, z, hn::Set(d, -1.6666654611E-1F));
  s = hn::MulAdd(hn::Mul(s, z), r, r);
  VF c = hn::MulAdd(hn::Set(d, 2.443315711809948E-5F), z, hn::Set(d, -1.388731625493765E-3F));
  c = hn::MulAdd(c, z, hn::Set(d, 4.166664568298827E-2F));
  c = hn::MulAdd(hn::MulAdd(c, z, hn::Set(d, -0.5F)), z, hn::Set(d, 1.0F));
  // An odd quadrant takes the cosine; its second bit flips the sign. sin also takes the sign of x.
  const auto odd = hn::ShiftLeft<31>(quadrant);
  const auto flip = hn::ShiftLeft<30>(hn::And(quadrant, hn::Set(di, 2)));
  VF y = hn::IfThenElse(hn::MaskFromVec(hn::BitCast(d, hn::BroadcastSignBit(odd))), c, s);
  y = hn::Xor(y, hn::BitCast(d, flip));
  return kQuarter == 0 ? hn::Xor(y, hn::And(x, hn::SignBit(d))) : y;
}

// At most 3 ulp. Reduced to [-0.4142, 0.4142] by atan x = pi/4 + atan((x - 1) / (x + 1)) and pi/2 - atan(1 / x); polynomial of
// Cephes' atanf.
HWY_INLINE VF arctangent(VF x) {
  const DF d;
  const VF a = hn::Abs(x);
  const VF one = hn::Set(d, 1.0F);
  const auto big = hn::Gt(a, hn::Set(d, 2.414213562373095F));
  const auto middle = hn::Gt(a, hn::Set(d, 0.4142135623730950F));
  const VF numerator = hn::IfThenElse(big, hn::Neg(one), hn::IfThenElse(middle, hn::Sub(a, one), a));
  const VF denominator = hn::IfThenElse(big, a, hn::IfThenElse(middle, hn::Add(a, one), one));
  const VF t = hn::Div(numerator, denominator);
  const VF base =
      hn::IfThenElse(big, hn::Set(d, 1.57079632679489662F), hn::IfThenElseZero(middle, hn::Set(d, 0.785398163397448310F)));
  const VF z = hn::Mul(t, t);
  VF p = hn::MulAdd(hn::Set(d, 8.05374449538e-2F), z, hn::Set(d, -1.38776856032E-1F));
  p = hn::MulAdd(p, z, hn::Set(d, 1.99777106478E-1F));
  p = hn::MulAdd(p, z, hn::Set(d, -3.33329491539E-1F));
  const VF y = hn::Add(base, hn::MulAdd(hn::Mul(p, z), t, t));
  return hn::CopySign(y, x);
}

// asin(s) for s in [0, 1/2]: polynomial of Cephes' asinf. s is |x|, or `above` 1/2 the root of (1 - |x|) / 2, NaN beyond 1.
struct FoldedArcsine {
  hn::Mask<DF> above;
  VF value;
};
HWY_INLINE FoldedArcsine folded_arcsine(VF x) {
  const DF d;
  const VF a = hn::Abs(x);
  const VF half = hn::Set(d, 0.5F);
  const auto above = hn::Gt(a, half);
  const VF z = hn::IfThenElse(above, hn::Mul(half, hn::Sub(hn::Set(d, 1.0F), a)), hn::Mul(a, a));
  const VF s = hn::IfThenElse(above, hn::Sqrt(z), a);
  VF p = hn::MulAdd(hn::Set(d, 4.2163199048E-2F), z, hn::Set(d, 2.4181311049E-2F));
  p = hn::MulAdd(p, z, hn::Set(d, 4.5470025998E-2F));
  p = hn::MulAdd(p, z, hn::Set(d, 7.4953002686E-2F));
  p = hn::MulAdd(p, z, hn::Set(d, 1.6666752422E-1F));
  return {above, hn::MulAdd(hn::Mul(p, z), s, s)};
}

// At most 3 ulp. Above 1/2: asin x = pi/2 - 2 asin(sqrt((1 - x) / 2)).
HWY_INLINE VF arcsine(VF x) {
  const DF d;
  const FoldedArcsine f = folded_arcsine(x);
  const VF unfolded = hn::NegMulAdd(hn::Set(d, 2.0F), f.value, hn::Set(d, 1.57079632679489662F));
  return hn::CopySign(hn::IfThenElse(f.above, unfolded, f.value), x);
}

// At most 3 ulp: 2 asin(sqrt((1 - |x|) / 2)) above 1/2, pi less that below -1/2, pi/2 - asin x between.
HWY_INLINE VF arccosine(VF x) {
  const DF d;
  const FoldedArcsine f = folded_arcsine(x);
  const VF twice = hn::Add(f.value, f.value);
  const VF far = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Set(d, 3.14159265358979323846F), twice), twice);
  const VF near = hn::Sub(hn::Set(d, 1.57079632679489662F), hn::CopySign(f.value, x));
  return hn::IfThenElse(f.above, far, near);
}

// exp if both the result and its scale are normal numbers: at most 1.2 ulp. The polynomial is that of exp_of_rest, the integer
// part comes from a sum with 1.5 * 2^23, whose low bits are added to the exponent.
constexpr float kExpNormal = 87.0F;
HWY_INLINE VF exp_normal(VF x) {
  const DF d;
  const DI di;
  const VF magic = hn::Set(d, 12582912.0F);
  const VF t = hn::MulAdd(x, hn::Set(d, 1.44269504088896341F), magic);
  const VF n = hn::Sub(t, magic);
  VF r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
  VF p = hn::MulAdd(hn::Set(d, 1.9875691500E-4F), r, hn::Set(d, 1.3981999507E-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073E-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894E-2F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459E-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201E-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, t))));
}

// x P(x^2) / Q(x^2), a minimax fit over [0, 9.1] made for this file (relative error 2.3e-8): at most 6 ulp, 0.9 on average, from
// the evaluation. From 9.8 on the quotient exceeds 1 and is clipped.
HWY_INLINE VF hyperbolic_tangent(VF x) {
  const DF d;
  const VF one = hn::Set(d, 1.0F);
  const VF c = clip(x, hn::Set(d, -9.8F), hn::Set(d, 9.8F));
  const VF z = hn::Mul(c, c);
  VF p = hn::MulAdd(hn::Set(d, 1.31778196101e-8F), z, hn::Set(d, 2.04814242446e-5F));
  VF q = hn::MulAdd(hn::Set(d, 7.70417454152e-7F), z, hn::Set(d, 3.27294473849e-4F));
  p = hn::MulAdd(p, z, hn::Set(d, 3.48782650133e-3F));
  q = hn::MulAdd(q, z, hn::Set(d, 2.58474484423e-2F));
  p = hn::MulAdd(p, z, hn::Set(d, 0.133744885506F));
  q = hn::MulAdd(q, z, hn::Set(d, 0.467078023548F));
  p = hn::MulAdd(p, z, one);
  q = hn::MulAdd(q, z, one);
  return clip(hn::Div(hn::Mul(c, p), q), hn::Neg(one), one);
}

// x (1 + P(x^2)) below 0.928, else 1 - 2^(t Q(t)) with t = |x|: at most 2 ulp. P and Q are minimax fits made for this file
// (errors 1.7e-8 and 6.5e-10 of the result), 2^z is exp2_f32's.
HWY_INLINE VF error_function(VF x) {
  const DF d;
  const VF t = at_most(hn::Set(d, 4.0F), hn::Abs(x));
  const VF s = hn::Mul(x, x);
  VF p = hn::MulAdd(hn::Set(d, -0.0005964129F), s, hn::Set(d, 0.004987981F));
  VF q = hn::MulAdd(hn::Set(d, -1.702961410e-05F), t, hn::Set(d, 4.739080663e-04F));
  p = hn::MulAdd(p, s, hn::Set(d, -0.02676311F));
  q = hn::MulAdd(q, t, hn::Set(d, -5.287994531e-03F));
  p = hn::MulAdd(p, s, hn::Set(d, 0.112817205F));
  q = hn::MulAdd(q, t, hn::Set(d, 3.435059201e-02F));
  p = hn::MulAdd(p, s, hn::Set(d, -0.37612486F));
  q = hn::MulAdd(q, t, hn::Set(d, -0.1533468908F));
  p = hn::MulAdd(p, s, hn::Set(d, 0.12837915F));
  q = hn::MulAdd(q, t, hn::Set(d, -0.9162821228F));
  const VF small = hn::MulAdd(p, x, x);
  q = hn::MulAdd(q, t, hn::Set(d, -1.6283071354F));
  const VF z = hn::Mul(q, t);
  const Exp2 e = exp2_f32(z);
  const VF large = hn::CopySign(hn::NegMulAdd(e.fraction, e.scale, hn::Set(d, 1.0F)), x);
  return hn::IfThenElse(hn::Lt(t, hn::Set(d, 0.927734375F)), small, large);
}

template <Math kOp>
HWY_INLINE VF apply(VF x) {
  if constexpr (kOp == Math::exp) {
    return exp_normal(x);
  } else if constexpr (kOp == Math::tanh) {
    return hyperbolic_tangent(x);
  } else if constexpr (kOp == Math::erf) {
    return error_function(x);
  } else if constexpr (kOp == Math::sin) {
    return sine<0>(x);
  } else if constexpr (kOp == Math::cos) {
    return sine<1>(x);
  } else if constexpr (kOp == Math::atan) {
    return arctangent(x);
  } else if constexpr (kOp == Math::asin) {
    return arcsine(x);
  } else {
    return arccosine(x);
  }
}

// A vector with an infinity, a NaN or an argument too large for the reduction goes through the C library, or for exp through
// exp_f32.
template <Math kOp>
HWY_INLINE void store_applied(VF x, float* y) {
  const DF d;
  if constexpr (kOp == Math::sin || kOp == Math::cos) {
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, kReducible))))) {
      HWY_ALIGN float each[kMaxF32Lanes];
      hn::Store(x, d, each);
      for (std::int64_t i = 0; i < lanes_f32(); ++i) y[i] = kOp == Math::sin ? std::sin(each[i]) : std::cos(each[i]);
      return;
    }
  }
  if constexpr (kOp == Math::exp) {
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, kExpNormal))))) return hn::StoreU(exp_f32(x), d, y);
  }
  hn::StoreU(apply<kOp>(x), d, y);
}

template <Math kOp>
HWY_NOINLINE void unary_loop(const float* x, float* y, std::int64_t ld, std::int64_t rows, std::int64_t n) {
  const DF d;
  const std::int64_t step = lanes_f32();
  HWY_ALIGN float tail[kMaxF32Lanes];
  for (std::int64_t r = 0; r < rows; ++r, x += ld, y += ld) {
    std::int64_t i = 0;
    for (; i + step <= n; i += step) store_applied<kOp>(hn::LoadU(d, x + i), y + i);
    if (i < n) {
      store_applied<kOp>(load_tail(d, x + i, n - i), tail);
      std::memcpy(y + i, tail, static_cast<std::size_t>(n - i) * sizeof(float));
    }
  }
}

void unary(Math op, const float* x, float* y, std::int64_t ld, std::int64_t rows, std::int64_t n) {
  switch (op) {
    case Math::sin: return unary_loop<Math::sin>(x, y, ld, rows, n);
    case Math::cos: return unary_loop<Math::cos>(x, y, ld, rows, n);
    case Math::exp: return unary_loop<Math::exp>(x, y, ld, rows, n);
    case Math::tanh: return unary_loop<Math::tanh>(x, y, ld, rows, n);
    case Math::erf: return unary_loop<Math::erf>(x, y, ld, rows, n);
    case Math::atan: return unary_loop<Math::atan>(x, y, ld, rows, n);
    case Math::asin: return unary_loop<Math::asin>(x, y, ld, rows, n);
    default: return unary_loop<Math::acos>(x, y, ld, rows, n);
  }
}

// ONNX Mod-28: with `fmod` the sign of the dividend, else of the divisor.
float remainder_of(float a, float b, bool fmod) {
  const float r = std::fmod(a, b);
  if (fmod) return r;
  if (r == 0) return std::copysign(0.0F, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

// Exact if the quotient is below 2^22: rounding makes the quotient at most 1 too large, and both the fused product and difference
// and its sum with b are multiples of b's last place below |b|. Returns false for larger quotients, and always without FMA.
HWY_INLINE bool remainders(VF a, VF b, bool fmod, float* y) {
#if HWY_NATIVE_FMA
  const DF d;
  const VF q = hn::Trunc(hn::Div(a, b));
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(hn::Abs(q), hn::Set(d, 4194304.0F))))) return false;
  VF r = hn::NegMulAdd(q, b, a);
  // If the remainder's sign is not the dividend's, the quotient was 1 too large.
  const VF back = hn::CopySign(hn::Abs(b), a);
  const auto beyond = hn::Lt(hn::Mul(hn::CopySign(hn::Set(d, 1.0F), a), r), hn::Zero(d));
  r = hn::IfThenElse(beyond, hn::Add(r, back), r);
  r = hn::IfThenElse(hn::Lt(hn::Abs(a), hn::Abs(b)), a, r);  // also for an infinite divisor
  r = hn::CopySign(r, a);
  if (!fmod) {
    const auto zero = hn::Eq(r, hn::Zero(d));
    const auto differ = hn::Lt(hn::Mul(hn::CopySign(hn::Set(d, 1.0F), r), hn::CopySign(hn::Set(d, 1.0F), b)), hn::Zero(d));
    r = hn::IfThenElse(zero, hn::CopySign(r, b), hn::IfThenElse(differ, hn::Add(r, b), r));
  }
  hn::StoreU(r, d, y);
  return true;
#else
  (void)a, (void)b, (void)fmod, (void)y;
  return false;
#endif
}

void remainder(Remainder op, const float* a, std::int64_t a_step, const float* b, std::int64_t b_step, float* y, std::int64_t n) {
  const DF d;
  const bool fmod = op == Remainder::fmod;
  const std::int64_t step = lanes_f32();
  const VF sa = hn::Set(d, *a), sb = hn::Set(d, *b);
  for (std::int64_t i = 0; i < n;) {
    if (i + step <= n &&
        remainders(a_step != 0 ? hn::LoadU(d, a + i) : sa, b_step != 0 ? hn::LoadU(d, b + i) : sb, fmod, y + i)) {
      i += step;
      continue;
    }
    for (const std::int64_t end = std::min(n, i + step); i < end; ++i) y[i] = remainder_of(a[i * a_step], b[i * b_step], fmod);
  }
}

}  // namespace

const MathKernels& math_table() {
  static constexpr MathKernels kTable{unary, remainder};
  return kTable;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const MathKernels&, math_kernels, math_table)
#endif
