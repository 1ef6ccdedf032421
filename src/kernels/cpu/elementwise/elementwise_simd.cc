#include "kernels/cpu/elementwise/elementwise_simd.h"

#include "kernels/cpu/elementwise/math_simd.h"
#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/elementwise/pow-inl.h"
#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// A rounded number with the sign that x has: without vectors, Highway gives zeros of the other one.
HWY_INLINE VF with_sign_of(VF x, VF rounded) {
  if constexpr (HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128) return hn::CopySign(rounded, x);
  return rounded;
}

// The last step of Gelu: y, or with a = 1 half of twice y, which is infinite beyond half of the largest float (see fuse-gelu).
HWY_INLINE VF halved(VF y, VF a) {
  const VF one = hn::Set(DF(), 1.0F), half = hn::Set(DF(), 0.5F);
  return hn::Mul(hn::Mul(y, hn::Add(one, a)), hn::NegMulAdd(half, a, one));
}

template <Unary kOp>
HWY_INLINE VF apply(VF x, VF a, VF b) {
  const DF d;
  const VF zero = hn::Zero(d);
  const VF one = hn::Set(d, 1.0F);
  const VF half = hn::Set(d, 0.5F);
  if constexpr (kOp == Unary::relu) {
    return relu(x);
  } else if constexpr (kOp == Unary::clip) {
    return clip(x, a, b);
  } else if constexpr (kOp == Unary::leaky_relu) {
    return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(x, a), x);
  } else if constexpr (kOp == Unary::hard_sigmoid) {
    return clip(hn::MulAdd(a, x, b), zero, one);
  } else if constexpr (kOp == Unary::hard_swish) {
    return hn::Mul(x, clip(hn::MulAdd(x, hn::Set(d, 1.0F / 6.0F), half), zero, one));
  } else if constexpr (kOp == Unary::sigmoid) {
    return sigmoid_f32(x);
  } else if constexpr (kOp == Unary::silu) {
    return silu_f32(x, a);
  } else if constexpr (kOp == Unary::gelu) {
    // -inf times 0 is NaN.
    return halved(hn::MulAdd(zero, hn::IfThenElseZero(hn::Lt(x, zero), x), gelu_f32(x)), a);
  } else if constexpr (kOp == Unary::gelu_tanh) {
    // (1 + tanh(y)) / 2 is sigmoid(2 y).
    const VF cube = hn::Mul(hn::Mul(x, x), x);
    const VF twice = hn::Mul(hn::Set(d, 1.59576912160573072F), hn::MulAdd(hn::Set(d, 0.044715F), cube, x));
    return halved(hn::Div(x, one_plus_exp_neg_f32(twice)), a);
  } else if constexpr (kOp == Unary::elu) {
    return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(a, expm1_nonpositive_f32(x)), x);
  } else if constexpr (kOp == Unary::selu) {
    return hn::Mul(b, hn::IfThenElse(hn::Lt(x, zero), hn::Mul(a, expm1_nonpositive_f32(x)), x));
  } else if constexpr (kOp == Unary::celu) {
    // x / a is negative for one sign of x only if a > 0; for a < 0 min(0, ...) still needs the true exponential.
    const VF e = hn::Mul(a, hn::Sub(exp_f32(hn::Div(x, a)), one));
    const VF near = hn::Mul(a, expm1_nonpositive_f32(hn::Div(x, a)));
    const VF m = hn::IfThenElse(hn::Le(hn::Div(x, a), zero), near, e);
    return hn::Add(relu(x), hn::IfThenElse(hn::Gt(m, zero), zero, m));
  } else if constexpr (kOp == Unary::softplus) {
    return hn::Add(relu(x), log1p_unit_f32(exp_row(hn::Neg(hn::Abs(x)))));
  } else if constexpr (kOp == Unary::softsign) {
    return hn::Div(x, hn::Add(one, hn::Abs(x)));
  } else if constexpr (kOp == Unary::mish) {
    // tanh(log(1 + e)) = (e^2 + 2 e) / (e^2 + 2 e + 2); the quotient is 1 in float beyond 20, where e^2 would overflow later.
    const VF e = exp_f32(hn::IfThenElse(hn::Gt(x, hn::Set(d, 20.0F)), hn::Set(d, 20.0F), x));
    const VF n = hn::Mul(e, hn::Add(e, hn::Set(d, 2.0F)));
    return hn::Mul(x, hn::Div(n, hn::Add(n, hn::Set(d, 2.0F))));
  } else if constexpr (kOp == Unary::thresholded_relu) {
    return hn::IfThenElseZero(hn::Gt(x, a), x);
  } else if constexpr (kOp == Unary::shrink) {
    return hn::IfThenElse(hn::Gt(x, a), hn::Sub(x, b), hn::IfThenElseZero(hn::Lt(x, hn::Neg(a)), hn::Add(x, b)));
  } else if constexpr (kOp == Unary::abs) {
    return hn::Abs(x);
  } else if constexpr (kOp == Unary::neg) {
    return hn::Neg(x);
  } else if constexpr (kOp == Unary::log) {
    return log_f32(x);
  } else if constexpr (kOp == Unary::sqrt) {
    return hn::Sqrt(x);
  } else if constexpr (kOp == Unary::reciprocal) {
    return hn::Div(one, x);
  } else if constexpr (kOp == Unary::rsqrt) {
    return hn::Div(one, hn::Sqrt(x));
  } else if constexpr (kOp == Unary::floor) {
    return with_sign_of(x, hn::Floor(x));
  } else if constexpr (kOp == Unary::ceil) {
    return with_sign_of(x, hn::Ceil(x));
  } else if constexpr (kOp == Unary::round) {
    return with_sign_of(x, hn::Round(x));
  } else if constexpr (kOp == Unary::sign) {
    const VF s = hn::IfThenElse(hn::Gt(x, zero), one, hn::IfThenElse(hn::Lt(x, zero), hn::Neg(one), zero));
    return hn::IfThenElse(hn::Eq(x, x), s, x);
  } else if constexpr (kOp == Unary::square) {
    return hn::Mul(x, x);
  } else if constexpr (kOp == Unary::affine) {
    return hn::MulAdd(a, x, b);
  } else {
    return x;
  }
}

// x sigmoid(x) of adjacent vectors x[0 .. kN), in 6 cycles for 8 lanes on Zen 4 instead of 7 to 10. Two of the four pipes are the
// bottleneck, so this avoids them: bounds are integer operations (floats of one sign order like integers; a NaN becomes a number
// there, but x stays NaN). The remainder is counted in powers of 2 and comes from one multiply-add (the constant's error adds
// 1.3e-8 |x| to the result). The chains of two vectors overlap. The polynomial is that of one_plus_exp_neg_f32().
template <int kN>
HWY_INLINE void silu_vectors(const float* x, float* y) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const hn::RebindToUnsigned<DF> du;
  const VF one = hn::Set(d, 1.0F), log2e = hn::Set(d, 1.44269504088896341F);
  const VF magic = hn::Set(d, kExponentSum);
  VF v[kN], t[kN], r[kN], p[kN];
  const auto each = [](auto&& f) HWY_ATTR {
#pragma GCC unroll 2
    for (int i = 0; i < kN; ++i) f(i);
  };
  each([&](int i) HWY_ATTR {
    const auto bits = hn::BitCast(di, hn::LoadU(d, x + i * lanes_f32()));
    const auto below = hn::BitCast(du, hn::Min(bits, hn::BitCast(di, hn::Set(d, 87.3F))));
    v[i] = hn::BitCast(d, hn::Min(below, hn::BitCast(du, hn::Set(d, -88.7F))));
  });
  each([&](int i) HWY_ATTR { t[i] = hn::NegMulAdd(v[i], log2e, magic); });
#if HWY_NATIVE_FMA
  each([&](int i) HWY_ATTR { r[i] = hn::MulAdd(v[i], log2e, hn::Sub(t[i], magic)); });
#else
  each([&](int i) HWY_ATTR {
    const VF n = hn::Sub(t[i], magic);
    r[i] = hn::Mul(log2e, hn::MulAdd(n, hn::Set(d, -2.12194440e-4F), hn::MulAdd(n, hn::Set(d, 0.693359375F), v[i])));
  });
#endif
  each([&](int i) HWY_ATTR { p[i] = hn::MulAdd(r[i], hn::Set(d, -0.00133002258F), hn::Set(d, 0.00966975838F)); });
  each([&](int i) HWY_ATTR { p[i] = hn::MulAdd(p[i], r[i], hn::Set(d, -0.0555056036F)); });
  each([&](int i) HWY_ATTR { p[i] = hn::MulAdd(p[i], r[i], hn::Set(d, 0.240222812F)); });
  each([&](int i) HWY_ATTR { p[i] = hn::MulAdd(p[i], r[i], hn::Set(d, -0.693147182F)); });
  each([&](int i) HWY_ATTR { p[i] = hn::MulAdd(p[i], r[i], one); });
  each([&](int i) HWY_ATTR { p[i] = hn::MulAdd(p[i], hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, t[i]))), one); });
  each([&](int i) HWY_ATTR { hn::StoreU(hn::Div(hn::LoadU(d, x + i * lanes_f32()), p[i]), d, y + i * lanes_f32()); });
}

void silu_rows(const float* x, float* y, std::int64_t ld, std::int64_t rows, std::int64_t n) {
  const DF d;
  const std::int64_t step = lanes_f32();
  for (std::int64_t r = 0; r < rows; ++r, x += ld, y += ld) {
    std::int64_t i = 0;
    for (; i + 2 * step <= n; i += 2 * step) silu_vectors<2>(x + i, y + i);
    if (i + step <= n) {
      silu_vectors<1>(x + i, y + i);
      i += step;
    }
    if (i < n) {
      HWY_ALIGN float tail[kMaxF32Lanes];
      hn::Store(load_tail(d, x + i, n - i), d, tail);
      silu_vectors<1>(tail, tail);
      store_tail(hn::Load(d, tail), d, y + i, n - i);
    }
  }
}

template <Unary kOp>
HWY_NOINLINE void unary_loop(const UnarySpec& spec, const float* x, float* y, std::int64_t ld, std::int64_t rows,
                             std::int64_t n) {
  const DF d;
  const std::int64_t step = lanes_f32();
  const VF a = hn::Set(d, spec.a);
  const VF b = hn::Set(d, spec.b);
  for (std::int64_t r = 0; r < rows; ++r, x += ld, y += ld) {
    std::int64_t i = 0;
    for (; i + step <= n; i += step) hn::StoreU(apply<kOp>(hn::LoadU(d, x + i), a, b), d, y + i);
    if (i < n) store_tail(apply<kOp>(load_tail(d, x + i, n - i), a, b), d, y + i, n - i);
  }
}

// The formatter cannot settle on one form of this list.
// clang-format off
#define SDX_UNARY_OPS(X)                                                                                   \
  X(relu) X(clip) X(leaky_relu) X(hard_sigmoid) X(hard_swish) X(sigmoid) X(silu) X(gelu)                   \
  X(gelu_tanh) X(elu) X(selu) X(celu) X(softplus) X(softsign) X(mish) X(thresholded_relu) X(shrink) X(abs) \
  X(neg) X(log) X(sqrt) X(reciprocal) X(rsqrt) X(floor) X(ceil) X(round) X(sign) X(square) X(affine)
// clang-format on

void unary_all(const UnarySpec& spec, const float* x, float* y, std::int64_t ld, std::int64_t rows, std::int64_t n) {
  if (spec.op == Unary::silu && spec.a == 1.0F) return silu_rows(x, y, ld, rows, n);
  // The same function, without divisions.
  if (spec.op == Unary::celu && spec.a == 1.0F) return unary_loop<Unary::elu>(spec, x, y, ld, rows, n);
  switch (spec.op) {
    case Unary::none:
      for (std::int64_t r = 0; x != y && r < rows; ++r) {
        std::memcpy(y + r * ld, x + r * ld, static_cast<std::size_t>(n) * sizeof(float));
      }
      return;
#define SDX_CASE(OP) \
  case Unary::OP: unary_loop<Unary::OP>(spec, x, y, ld, rows, n); return;
      SDX_UNARY_OPS(SDX_CASE)
#undef SDX_CASE
    case Unary::exp: return math_kernels().unary(Math::exp, x, y, ld, rows, n);
    case Unary::tanh: return math_kernels().unary(Math::tanh, x, y, ld, rows, n);
    case Unary::erf: return math_kernels().unary(Math::erf, x, y, ld, rows, n);
  }
}
#undef SDX_UNARY_OPS

void unary(const UnarySpec& spec, const float* x, float* y, std::int64_t n) { unary_all(spec, x, y, n, 1, n); }
void unary_rows(const UnarySpec& spec, float* y, std::int64_t ld, std::int64_t rows, std::int64_t n) {
  unary_all(spec, y, y, ld, rows, n);
}

template <Binary kOp>
HWY_INLINE VF combine(VF a, VF b) {
  if constexpr (kOp == Binary::add) {
    return hn::Add(a, b);
  } else if constexpr (kOp == Binary::sub) {
    return hn::Sub(a, b);
  } else if constexpr (kOp == Binary::mul) {
    return hn::Mul(a, b);
  } else if constexpr (kOp == Binary::div) {
    return hn::Div(a, b);
  } else if constexpr (kOp == Binary::min) {
    return min_nan(a, b);
  } else if constexpr (kOp == Binary::max) {
    return max_nan(a, b);
  } else if constexpr (kOp == Binary::relu_grad) {
    return hn::IfThenElseZero(hn::Gt(b, hn::Zero(DF())), a);
  } else {
    return hn::IfThenElse(hn::Lt(a, hn::Zero(DF())), hn::Mul(a, b), a);
  }
}

// Which operands advance.
enum class Form { both, right_scalar, left_scalar };

template <Binary kOp, Form kForm>
HWY_NOINLINE void binary_loop(const float* a, const float* b, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t step = lanes_f32();
  const VF sa = hn::Set(d, kForm == Form::left_scalar ? *a : 0.0F);
  const VF sb = hn::Set(d, kForm == Form::right_scalar ? *b : 0.0F);
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    const VF va = kForm == Form::left_scalar ? sa : hn::LoadU(d, a + i);
    const VF vb = kForm == Form::right_scalar ? sb : hn::LoadU(d, b + i);
    hn::StoreU(combine<kOp>(va, vb), d, y + i);
  }
  if (i < n) {
    const VF va = kForm == Form::left_scalar ? sa : load_tail(d, a + i, n - i);
    const VF vb = kForm == Form::right_scalar ? sb : load_tail(d, b + i, n - i);
    store_tail(combine<kOp>(va, vb), d, y + i, n - i);
  }
}

// a^e for e = 1/2 and -1/2; for -0 and -inf this is not the square root.
void root_loop(const float* a, bool inverse, float* y, std::int64_t n) {
  const DF d;
  const VF inf = hn::Inf(d), one = hn::Set(d, 1.0F);
  for (std::int64_t i = 0; i < n; i += lanes_f32()) {
    const VF v = load_floats(a + i, n - i);
    const VF root = hn::IfThenElse(hn::Eq(v, hn::Neg(inf)), inf, hn::Sqrt(hn::Add(v, hn::Zero(d))));
    store_floats(inverse ? hn::Div(one, root) : root, y + i, n - i);
  }
}

// A power of 1 ulp needs more than float's precision; the common constant exponents have special forms.
template <Form kForm>
void pow_loop(const float* a, const float* b, float* y, std::int64_t n) {
  if constexpr (kForm == Form::right_scalar) {
    const float e = *b;
    if (e == 2.0F) return unary({Unary::square}, a, y, n);
    if (e == 1.0F) return unary({Unary::none}, a, y, n);
    if (e == -1.0F) return unary({Unary::reciprocal}, a, y, n);
    if (e == 0.5F || e == -0.5F) return root_loop(a, e < 0.0F, y, n);
    if (e == 3.0F) {
      for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] * a[i] * a[i];
      return;
    }
  }
  const DFHalf df;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(df));
  HWY_ALIGN float some[HWY_MAX_BYTES / sizeof(double)];
  const auto load = [&](const float* p, bool scalar, std::int64_t i) HWY_ATTR {
    if (scalar) return hn::Set(df, *p);
    if (n - i >= lanes) return hn::LoadU(df, p + i);
    for (std::int64_t j = 0; j < lanes; ++j) some[j] = j < n - i ? p[i + j] : 1.0F;
    return hn::Load(df, some);
  };
  for (std::int64_t i = 0; i < n; i += lanes) {
    const VFHalf base = load(a, kForm == Form::left_scalar, i), exponent = load(b, kForm == Form::right_scalar, i);
    pow_half(base, exponent, y + i, n - i < lanes ? n - i : lanes);
  }
}

template <Form kForm>
void binary_form(Binary op, const float* a, const float* b, float* y, std::int64_t n) {
  switch (op) {
    case Binary::add: return binary_loop<Binary::add, kForm>(a, b, y, n);
    case Binary::sub: return binary_loop<Binary::sub, kForm>(a, b, y, n);
    case Binary::mul: return binary_loop<Binary::mul, kForm>(a, b, y, n);
    case Binary::div: return binary_loop<Binary::div, kForm>(a, b, y, n);
    case Binary::min: return binary_loop<Binary::min, kForm>(a, b, y, n);
    case Binary::max: return binary_loop<Binary::max, kForm>(a, b, y, n);
    case Binary::prelu: return binary_loop<Binary::prelu, kForm>(a, b, y, n);
    case Binary::relu_grad: return binary_loop<Binary::relu_grad, kForm>(a, b, y, n);
    case Binary::pow: return pow_loop<kForm>(a, b, y, n);
  }
}

// Short rows, without a call for each.
template <Binary kOp, Form kForm>
HWY_NOINLINE void rows_loop(const float* a, std::int64_t a_row, const float* b, std::int64_t b_row, float* y, std::int64_t rows,
                            std::int64_t n) {
  const DF d;
  const std::int64_t step = lanes_f32(), whole = n / step * step, rest = n - whole;
  for (std::int64_t r = 0; r < rows; ++r, a += a_row, b += b_row, y += n) {
    const VF sa = hn::Set(d, kForm == Form::left_scalar ? *a : 0.0F);
    const VF sb = hn::Set(d, kForm == Form::right_scalar ? *b : 0.0F);
    for (std::int64_t i = 0; i < whole; i += step) {
      const VF va = kForm == Form::left_scalar ? sa : hn::LoadU(d, a + i);
      const VF vb = kForm == Form::right_scalar ? sb : hn::LoadU(d, b + i);
      hn::StoreU(combine<kOp>(va, vb), d, y + i);
    }
    if (rest == 0) continue;
    const VF va = kForm == Form::left_scalar ? sa : load_tail(d, a + whole, rest);
    const VF vb = kForm == Form::right_scalar ? sb : load_tail(d, b + whole, rest);
    store_tail(combine<kOp>(va, vb), d, y + whole, rest);
  }
}

template <Form kForm>
void rows_form(Binary op, const float* a, std::int64_t a_row, const float* b, std::int64_t b_row, float* y, std::int64_t rows,
               std::int64_t n) {
  switch (op) {
    case Binary::add: return rows_loop<Binary::add, kForm>(a, a_row, b, b_row, y, rows, n);
    case Binary::sub: return rows_loop<Binary::sub, kForm>(a, a_row, b, b_row, y, rows, n);
    case Binary::mul: return rows_loop<Binary::mul, kForm>(a, a_row, b, b_row, y, rows, n);
    case Binary::div: return rows_loop<Binary::div, kForm>(a, a_row, b, b_row, y, rows, n);
    case Binary::min: return rows_loop<Binary::min, kForm>(a, a_row, b, b_row, y, rows, n);
    case Binary::max: return rows_loop<Binary::max, kForm>(a, a_row, b, b_row, y, rows, n);
    case Binary::prelu: return rows_loop<Binary::prelu, kForm>(a, a_row, b, b_row, y, rows, n);
    case Binary::relu_grad: return rows_loop<Binary::relu_grad, kForm>(a, a_row, b, b_row, y, rows, n);
    case Binary::pow: return;
  }
}

void binary_rows(Binary op, OneForRow one, const float* a, std::int64_t a_row, const float* b, std::int64_t b_row, float* y,
                 std::int64_t rows, std::int64_t n) {
  switch (one) {
    case OneForRow::none: return rows_form<Form::both>(op, a, a_row, b, b_row, y, rows, n);
    case OneForRow::left: return rows_form<Form::left_scalar>(op, a, a_row, b, b_row, y, rows, n);
    case OneForRow::right: return rows_form<Form::right_scalar>(op, a, a_row, b, b_row, y, rows, n);
  }
}

void binary_both(Binary op, const float* a, const float* b, float* y, std::int64_t n) { binary_form<Form::both>(op, a, b, y, n); }
void binary_right(Binary op, const float* a, float b, float* y, std::int64_t n) {
  binary_form<Form::right_scalar>(op, a, &b, y, n);
}
void binary_left(Binary op, float a, const float* b, float* y, std::int64_t n) {
  binary_form<Form::left_scalar>(op, &a, b, y, n);
}

void bias_act(const float* x, float bias, const float* residual, const UnarySpec& act, float* y, std::int64_t n) {
  const DF d;
  const std::int64_t step = lanes_f32();
  const VF vb = hn::Set(d, bias);
  const bool is_relu = act.op == Unary::relu;
  const bool is_clip = act.op == Unary::clip;
  const VF lo = hn::Set(d, act.a);
  const VF hi = hn::Set(d, act.b);
  const auto one = [&](VF v, VF r) HWY_ATTR {
    v = hn::Add(hn::Add(v, vb), r);
    if (is_relu) v = relu(v);
    if (is_clip) v = clip(v, lo, hi);
    return v;
  };
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    const VF r = residual != nullptr ? hn::LoadU(d, residual + i) : hn::Zero(d);
    hn::StoreU(one(hn::LoadU(d, x + i), r), d, y + i);
  }
  if (i < n) {
    const VF r = residual != nullptr ? load_tail(d, residual + i, n - i) : hn::Zero(d);
    store_tail(one(load_tail(d, x + i, n - i), r), d, y + i, n - i);
  }
  if (act.op != Unary::none && !is_relu && !is_clip) unary(act, y, y, n);
}

}  // namespace

const ElementwiseKernels& elementwise_table() {
  static constexpr ElementwiseKernels kTable{unary, unary_rows, binary_both, binary_right, binary_left, binary_rows, bias_act};
  return kTable;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const ElementwiseKernels&, elementwise_kernels, elementwise_table)
#endif
