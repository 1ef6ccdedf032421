#include "kernels/cpu/elementwise/slopes_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/slopes_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// Phi(|x|) as gelu(u) / u; u is never 0.
HWY_INLINE VF normal_distribution(VF x) {
  const DF d;
  const VF u = hn::Max(hn::Abs(x), hn::Set(d, 1e-20F));
  const VF right = hn::Div(gelu_f32(u), u);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Set(d, 1.0F), right), right);
}

template <Slope kOp>
HWY_INLINE VF slope_of(VF g, VF v, VF alpha) {
  const DF d;
  const VF one = hn::Set(d, 1.0F);
  if constexpr (kOp == Slope::leaky_relu) {
    return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), g, hn::Mul(g, alpha));
  } else if constexpr (kOp == Slope::sigmoid) {
    return hn::Mul(g, hn::NegMulAdd(v, v, v));
  } else if constexpr (kOp == Slope::tanh) {
    return hn::Mul(g, hn::NegMulAdd(v, v, one));
  } else if constexpr (kOp == Slope::gelu) {
    const VF density = hn::Mul(hn::Set(d, 0.3989422804F), exp_f32(hn::Mul(hn::Set(d, -0.5F), hn::Mul(v, v))));
    return hn::Mul(g, hn::MulAdd(v, density, normal_distribution(v)));
  } else if constexpr (kOp == Slope::gelu_tanh) {
    // x s(w) with w = k (x + 0.044715 x^3): s + x s (1 - s) k (1 + 3 * 0.044715 x^2)
    const VF k = hn::Set(d, 1.59576912160573072F);
    const VF square = hn::Mul(v, v);
    const VF s = sigmoid_f32(hn::Mul(hn::Mul(k, v), hn::MulAdd(hn::Set(d, 0.044715F), square, one)));
    const VF inner = hn::Mul(hn::Mul(k, v), hn::MulAdd(hn::Set(d, 0.134145F), square, one));
    return hn::Mul(g, hn::MulAdd(hn::Mul(s, hn::Sub(one, s)), inner, s));
  } else {
    const VF w = hn::Mul(alpha, v);
    const VF s = sigmoid_f32(w);
    return hn::Mul(g, hn::Mul(s, hn::MulAdd(w, hn::Sub(one, s), one)));
  }
}

template <Slope kOp>
void run(float alpha, const float* dy, const float* saved, float* dx, std::int64_t n) {
  const DF d;
  const std::int64_t lanes = lanes_f32();
  const VF a = hn::Set(d, alpha);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(slope_of<kOp>(hn::LoadU(d, dy + i), hn::LoadU(d, saved + i), a), d, dx + i);
  if (i < n) store_tail(slope_of<kOp>(load_tail(d, dy + i, n - i), load_tail(d, saved + i, n - i), a), d, dx + i, n - i);
}

void slope(Slope op, float alpha, const float* dy, const float* saved, float* dx, std::int64_t n) {
  switch (op) {
    case Slope::leaky_relu: return run<Slope::leaky_relu>(alpha, dy, saved, dx, n);
    case Slope::sigmoid: return run<Slope::sigmoid>(alpha, dy, saved, dx, n);
    case Slope::tanh: return run<Slope::tanh>(alpha, dy, saved, dx, n);
    case Slope::gelu: return run<Slope::gelu>(alpha, dy, saved, dx, n);
    case Slope::gelu_tanh: return run<Slope::gelu_tanh>(alpha, dy, saved, dx, n);
    case Slope::quick_gelu: return run<Slope::quick_gelu>(alpha, dy, saved, dx, n);
  }
}

void masked(const float* dy, const std::uint8_t* mask, float factor, float* dx, std::int64_t n) {
  const DF d;
  const hn::RebindToUnsigned<DF> du;
  const hn::Rebind<std::uint8_t, DF> d8;
  const std::int64_t lanes = lanes_f32();
  const VF f = hn::Set(d, factor);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto keep = hn::Ne(hn::PromoteTo(du, hn::LoadU(d8, mask + i)), hn::Zero(du));
    hn::StoreU(hn::IfThenElseZero(hn::RebindMask(d, keep), hn::Mul(hn::LoadU(d, dy + i), f)), d, dx + i);
  }
  for (; i < n; ++i) dx[i] = mask[i] != 0 ? dy[i] * factor : 0.0F;
}

}  // namespace

const SlopeKernels& slope_table() {
  static const SlopeKernels table{slope, masked};
  return table;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const SlopeKernels&, slope_kernels, slope_table)
#endif
