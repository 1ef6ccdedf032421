// The functions are those of Highway's math library; here is where they hold, and how float32 and pairs go through them.

#include "kernels/cpu/elements/vector_math.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elements/vector_math_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <numbers>

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;
using DF = hn::Rebind<float, D>;

struct Range {
  double low, high;
};

// The range in which the formula holds.
constexpr Range range_of(UnaryFn fn) {
  switch (fn) {
    case UnaryFn::log:
    case UnaryFn::log2:
    case UnaryFn::log10: return {std::numeric_limits<double>::min(), std::numeric_limits<double>::max()};
    case UnaryFn::log1p: return {-0.999, 1e300};
    case UnaryFn::arcsin:
    case UnaryFn::arccos: return {-1, 1};
    case UnaryFn::arctanh: return {-0.9999999, 0.9999999};
    case UnaryFn::arccosh: return {1, 1e150};
    case UnaryFn::arcsinh: return {-1e150, 1e150};
    case UnaryFn::sin:
    case UnaryFn::cos:
    case UnaryFn::tan: return {-1000, 1000};
    case UnaryFn::arctan:
    case UnaryFn::tanh: return {-1e300, 1e300};
    default: return {-700, 700};
  }
}

// Outside of it the result is NaN.
constexpr Range domain_of(UnaryFn fn) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  switch (fn) {
    case UnaryFn::log:
    case UnaryFn::log2:
    case UnaryFn::log10: return {0, kInf};
    case UnaryFn::log1p: return {-1, kInf};
    case UnaryFn::arcsin:
    case UnaryFn::arccos:
    case UnaryFn::arctanh: return {-1, 1};
    case UnaryFn::arccosh: return {1, kInf};
    default: return {-kInf, kInf};
  }
}

// Below this size the result is the number itself, with its sign and to the last place (functions that leave 0 with slope 1); for
// the cosine it is 1. The formulas lose the sign of 0 on some instruction sets, or a digit. 0: they lose nothing.
constexpr double tiny_for(UnaryFn fn) {
  switch (fn) {
    case UnaryFn::sin:
    case UnaryFn::cos:
    case UnaryFn::tan:
    case UnaryFn::arcsin:
    case UnaryFn::arctan:
    case UnaryFn::sinh:
    case UnaryFn::tanh:
    case UnaryFn::arcsinh:
    case UnaryFn::arctanh: return 0x1p-27;
    case UnaryFn::expm1:
    case UnaryFn::log1p: return 0x1p-54;
    default: return 0;
  }
}

template <UnaryFn kFn>
HWY_INLINE V formula(V x) {
  const D d;
  const V one = hn::Set(d, 1.0);
  if constexpr (kFn == UnaryFn::exp) return hn::Exp(d, x);
  if constexpr (kFn == UnaryFn::expm1) return hn::Expm1(d, x);
  if constexpr (kFn == UnaryFn::log) return hn::Log(d, x);
  if constexpr (kFn == UnaryFn::log2) return hn::Log2(d, x);
  if constexpr (kFn == UnaryFn::log10) return hn::Log10(d, x);
  if constexpr (kFn == UnaryFn::log1p) return hn::Log1p(d, x);
  if constexpr (kFn == UnaryFn::sin) return hn::Sin(d, x);
  if constexpr (kFn == UnaryFn::cos) return hn::Cos(d, x);
  if constexpr (kFn == UnaryFn::tan) return hn::Div(hn::Sin(d, x), hn::Cos(d, x));
  if constexpr (kFn == UnaryFn::arcsin) return hn::Asin(d, x);
  if constexpr (kFn == UnaryFn::arccos) return hn::Acos(d, x);
  if constexpr (kFn == UnaryFn::arctan) return hn::Atan(d, x);
  if constexpr (kFn == UnaryFn::sinh) return hn::Sinh(d, x);
  if constexpr (kFn == UnaryFn::cosh) {
    const V e = hn::Exp(d, hn::Abs(x)), half = hn::Set(d, 0.5);
    return hn::MulAdd(half, e, hn::Div(half, e));
  }
  if constexpr (kFn == UnaryFn::tanh) return hn::Tanh(d, x);
  if constexpr (kFn == UnaryFn::arcsinh) return hn::Asinh(d, x);
  if constexpr (kFn == UnaryFn::arccosh) return hn::Acosh(d, x);
  if constexpr (kFn == UnaryFn::arctanh) return hn::Atanh(d, x);
  if constexpr (kFn == UnaryFn::sigmoid) {
    const V e = hn::Exp(d, hn::Neg(hn::Abs(x)));
    return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
  }
}

// Computes one vector; elements outside the formula's range go to the C library. The same number gives the same result at any
// position.
template <UnaryFn kFn>
HWY_INLINE V mapped(V x) {
  const D d;
  constexpr Range kRange = range_of(kFn);
  constexpr Range kDomain = domain_of(kFn);
  const auto holds = hn::And(hn::Ge(x, hn::Set(d, kRange.low)), hn::Le(x, hn::Set(d, kRange.high)));
  const auto none = hn::Or(hn::Lt(x, hn::Set(d, kDomain.low)), hn::Gt(x, hn::Set(d, kDomain.high)));
  V y = formula<kFn>(hn::IfThenElse(holds, x, hn::Set(d, kFn == UnaryFn::arccosh ? 1.5 : 0.5)));
  y = hn::IfThenElse(none, hn::NaN(d), y);
  constexpr double kTiny = tiny_for(kFn);
  if constexpr (kTiny > 0) {
    const V at_zero = kFn == UnaryFn::cos ? hn::Set(d, 1.0) : x;
    y = hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, kTiny)), at_zero, y);
  }
  if (HWY_LIKELY(hn::AllTrue(d, hn::Or(holds, none)))) return y;
  HWY_ALIGN double from[hn::MaxLanes(D())], to[hn::MaxLanes(D())];
  hn::Store(x, d, from);
  hn::Store(y, d, to);
  static const UnaryRow exact = real_math_row(kFn, DataType::float64);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    if (!(from[i] >= kRange.low && from[i] <= kRange.high)) exact(&from[i], &to[i], 1);
  }
  return hn::Load(d, to);
}

template <class T>
HWY_INLINE V load(const T* p) {
  if constexpr (sizeof(T) == 8) {
    return hn::LoadU(D(), p);
  } else {
    return hn::PromoteTo(D(), hn::LoadU(DF(), p));
  }
}

template <class T>
HWY_INLINE void store(V v, T* p) {
  if constexpr (sizeof(T) == 8) {
    hn::StoreU(v, D(), p);
  } else if constexpr (HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128) {
    // Without vectors, Highway makes the largest float of infinities.
    HWY_ALIGN double each[hn::MaxLanes(D())];
    hn::Store(v, D(), each);
    for (std::size_t i = 0; i < hn::Lanes(D()); ++i) p[i] = static_cast<float>(each[i]);
  } else {
    hn::StoreU(hn::DemoteTo(DF(), v), DF(), p);
  }
}

template <UnaryFn kFn, class T>
HWY_NOINLINE void map_row(const void* x, void* y, std::int64_t n) {
  const auto* px = static_cast<const T*>(x);
  auto* py = static_cast<T*>(y);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(mapped<kFn>(load(px + i)), py + i);
  if (i == n) return;
  T rest[hn::MaxLanes(D())];
  std::fill_n(rest, lanes, T(1));
  std::copy_n(px + i, n - i, rest);
  store(mapped<kFn>(load(rest)), rest);
  std::copy_n(rest, n - i, py + i);
}

constexpr double kFar = 1e300;

// The pairs for which the formulas hold.
template <BinaryFn kFn>
HWY_INLINE hn::Mask<D> holds_for(V a, V b) {
  const D d;
  const V far = hn::Set(d, kFar), size_a = hn::Abs(a), size_b = hn::Abs(b);
  const auto finite = hn::And(hn::Lt(size_a, far), hn::Lt(size_b, far));
  if constexpr (kFn == BinaryFn::logaddexp) return finite;
  if constexpr (kFn == BinaryFn::arctan2) return hn::And(finite, hn::Gt(size_b, hn::Mul(size_a, hn::Set(d, 1e-290))));
  // Quotients of float32 are exact enough in float64 to be rounded down.
  return hn::And(hn::And(finite, hn::Gt(size_b, hn::Zero(d))), hn::Lt(size_a, hn::Mul(size_b, hn::Set(d, 0x1p27))));
}

template <BinaryFn kFn>
HWY_INLINE V pair_formula(V a, V b) {
  const D d;
  if constexpr (kFn == BinaryFn::logaddexp) {
    const V apart = hn::Max(hn::Neg(hn::Abs(hn::Sub(a, b))), hn::Set(d, -700.0));
    return hn::Add(hn::Max(a, b), hn::Log1p(d, hn::Exp(d, apart)));
  }
  if constexpr (kFn == BinaryFn::arctan2) {
    const V angle = hn::Atan(d, hn::Div(hn::Abs(a), hn::Abs(b)));
    const V turned = hn::Sub(hn::Set(d, std::numbers::pi), angle);
    return hn::CopySign(hn::IfThenElse(hn::Lt(b, hn::Zero(d)), turned, angle), a);
  }
  const V down = hn::Floor(hn::Div(a, b));
  if constexpr (kFn == BinaryFn::floor_divide)
    return hn::IfThenElse(hn::Eq(down, hn::Zero(d)), hn::CopySign(down, hn::Div(a, b)), down);
  const V rest = hn::Sub(a, hn::Mul(down, b));
  return hn::IfThenElse(hn::Eq(rest, hn::Zero(d)), hn::CopySign(rest, b), rest);
}

template <BinaryFn kFn>
HWY_INLINE V paired(V a, V b) {
  const D d;
  const auto holds = holds_for<kFn>(a, b);
  const V one = hn::Set(d, 1.0);
  const V y = pair_formula<kFn>(hn::IfThenElse(holds, a, one), hn::IfThenElse(holds, b, one));
  if (HWY_LIKELY(hn::AllTrue(d, holds))) return y;
  HWY_ALIGN double left[hn::MaxLanes(D())], right[hn::MaxLanes(D())], to[hn::MaxLanes(D())], good[hn::MaxLanes(D())];
  hn::Store(a, d, left);
  hn::Store(b, d, right);
  hn::Store(y, d, to);
  hn::Store(hn::IfThenElseZero(holds, one), d, good);
  static const BinaryRow exact = real_math_row(kFn, DataType::float64);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    if (good[i] == 0) exact(&left[i], 1, &right[i], 1, &to[i], 1);
  }
  return hn::Load(d, to);
}

template <BinaryFn kFn, class T>
HWY_NOINLINE void pair_row(const void* a, std::int64_t a_step, const void* b, std::int64_t b_step, void* y, std::int64_t n) {
  const auto *pa = static_cast<const T*>(a), *pb = static_cast<const T*>(b);
  auto* py = static_cast<T*>(y);
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (n == 0) return;
  const V all_a = hn::Set(d, static_cast<double>(*pa)), all_b = hn::Set(d, static_cast<double>(*pb));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    store(paired<kFn>(a_step != 0 ? load(pa + i) : all_a, b_step != 0 ? load(pb + i) : all_b), py + i);
  }
  if (i == n) return;
  T left[hn::MaxLanes(D())], right[hn::MaxLanes(D())];
  std::fill_n(left, lanes, *pa);
  std::fill_n(right, lanes, *pb);
  if (a_step != 0) std::copy_n(pa + i, n - i, left);
  if (b_step != 0) std::copy_n(pb + i, n - i, right);
  store(paired<kFn>(load(left), load(right)), left);
  std::copy_n(left, n - i, py + i);
}

template <class T>
UnaryRow common_row(UnaryFn fn) {
  switch (fn) {
    case UnaryFn::exp: return map_row<UnaryFn::exp, T>;
    case UnaryFn::expm1: return map_row<UnaryFn::expm1, T>;
    case UnaryFn::log: return map_row<UnaryFn::log, T>;
    case UnaryFn::log1p: return map_row<UnaryFn::log1p, T>;
    case UnaryFn::sin: return map_row<UnaryFn::sin, T>;
    case UnaryFn::cos: return map_row<UnaryFn::cos, T>;
    case UnaryFn::arcsin: return map_row<UnaryFn::arcsin, T>;
    case UnaryFn::arccos: return map_row<UnaryFn::arccos, T>;
    case UnaryFn::arctan: return map_row<UnaryFn::arctan, T>;
    case UnaryFn::sinh: return map_row<UnaryFn::sinh, T>;
    case UnaryFn::cosh: return map_row<UnaryFn::cosh, T>;
    case UnaryFn::tanh: return map_row<UnaryFn::tanh, T>;
    case UnaryFn::arcsinh: return map_row<UnaryFn::arcsinh, T>;
    case UnaryFn::arccosh: return map_row<UnaryFn::arccosh, T>;
    case UnaryFn::arctanh: return map_row<UnaryFn::arctanh, T>;
    case UnaryFn::sigmoid: return map_row<UnaryFn::sigmoid, T>;
    default: return nullptr;
  }
}

// Not for float64: log2(8) would not be exactly 3, and tan would lose a digit.
UnaryRow unary(UnaryFn fn, DataType type) {
  if (type == DataType::float64) return common_row<double>(fn);
  if (type != DataType::float32) return nullptr;
  if (fn == UnaryFn::log2) return map_row<UnaryFn::log2, float>;
  if (fn == UnaryFn::log10) return map_row<UnaryFn::log10, float>;
  return fn == UnaryFn::tan ? &map_row<UnaryFn::tan, float> : common_row<float>(fn);
}

BinaryRow binary(BinaryFn fn, DataType type) {
  if (type == DataType::float64 && fn == BinaryFn::logaddexp) return pair_row<BinaryFn::logaddexp, double>;
  if (type != DataType::float32) return nullptr;
  switch (fn) {
    case BinaryFn::logaddexp: return pair_row<BinaryFn::logaddexp, float>;
    case BinaryFn::arctan2: return pair_row<BinaryFn::arctan2, float>;
    case BinaryFn::floor_divide: return pair_row<BinaryFn::floor_divide, float>;
    case BinaryFn::remainder: return pair_row<BinaryFn::remainder, float>;
    default: return nullptr;
  }
}

}  // namespace

const VectorMath& vector_table() {
  static constexpr VectorMath kTable{unary, binary};
  return kTable;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

namespace sdx::cpu {

const VectorMath& vector_math() { return SDX_CPU_PICK(vector_table)(); }

}  // namespace sdx::cpu
#endif
