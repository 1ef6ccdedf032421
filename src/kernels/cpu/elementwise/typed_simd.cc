// Plain loops, compiled once per instruction set: with types of several widths the compilers' own vector code is as fast as
// memory allows (2 to 20 bytes per element), and a tenth as long as explicit packing for four widths.

#include "kernels/cpu/elementwise/typed_simd.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/typed_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cpu/simd/loops.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

// Integers wrap around: computed as unsigned ones that are not promoted to int, for which this is defined.
template <class T, class F>
HWY_INLINE T wrapped(T a, T b, F f) {
  if constexpr (std::is_floating_point_v<T>) {
    return f(a, b);
  } else {
    using U = std::conditional_t<sizeof(T) < sizeof(unsigned), unsigned, std::make_unsigned_t<T>>;
    return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
  }
}

template <Pair kOp, class T>
HWY_INLINE auto combine(T a, T b) {
  if constexpr (kOp == Pair::equal) {
    return static_cast<std::uint8_t>(a == b);
  } else if constexpr (kOp == Pair::less) {
    return static_cast<std::uint8_t>(a < b);
  } else if constexpr (kOp == Pair::less_equal) {
    return static_cast<std::uint8_t>(a <= b);
  } else if constexpr (kOp == Pair::all) {
    return static_cast<std::uint8_t>((a != 0) & (b != 0));
  } else if constexpr (kOp == Pair::any) {
    return static_cast<std::uint8_t>((a | b) != 0);
  } else if constexpr (kOp == Pair::either) {
    return static_cast<std::uint8_t>((a != 0) != (b != 0));
  } else if constexpr (kOp == Pair::add) {
    return wrapped(a, b, [](auto x, auto y) { return x + y; });
  } else if constexpr (kOp == Pair::sub) {
    return wrapped(a, b, [](auto x, auto y) { return x - y; });
  } else if constexpr (kOp == Pair::mul) {
    return wrapped(a, b, [](auto x, auto y) { return x * y; });
  } else if constexpr (kOp == Pair::div) {
    return a / b;
  } else if constexpr (std::is_floating_point_v<T>) {  // the NaN, if an operand is one; the first if both are
    return (kOp == Pair::min ? a < b : b < a) || a != a ? a : b;
  } else if constexpr (kOp == Pair::min) {
    return a < b ? a : b;
  } else {
    return a < b ? b : a;
  }
}

template <Pair kOp, class T>
HWY_NOINLINE void pair_loop(const void* a, std::int64_t a_step, const void* b, std::int64_t b_step, void* y, std::int64_t n) {
  using Out = decltype(combine<kOp>(T(), T()));
  const auto* pa = static_cast<const T*>(a);
  const auto* pb = static_cast<const T*>(b);
  auto* py = static_cast<Out*>(y);
  if (a_step != 0 && b_step != 0) {
    SDX_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) py[i] = combine<kOp>(pa[i], pb[i]);
  } else if (a_step != 0) {
    const T right = *pb;
    SDX_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) py[i] = combine<kOp>(pa[i], right);
  } else if (b_step != 0) {
    const T left = *pa;
    SDX_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) py[i] = combine<kOp>(left, pb[i]);
  } else {
    std::fill_n(py, n, combine<kOp>(*pa, *pb));
  }
}

template <Pair kOp>
PairRow integers(Elem elem) {
  switch (elem) {
    case Elem::u8: return pair_loop<kOp, std::uint8_t>;
    case Elem::i8: return pair_loop<kOp, std::int8_t>;
    case Elem::u16: return pair_loop<kOp, std::uint16_t>;
    case Elem::i16: return pair_loop<kOp, std::int16_t>;
    case Elem::u32: return pair_loop<kOp, std::uint32_t>;
    case Elem::i32: return pair_loop<kOp, std::int32_t>;
    case Elem::u64: return pair_loop<kOp, std::uint64_t>;
    case Elem::i64: return pair_loop<kOp, std::int64_t>;
    case Elem::f32:
    case Elem::f64: break;
  }
  return nullptr;
}

template <Pair kOp>
PairRow extreme(Elem elem) {
  return elem == Elem::f64 ? &pair_loop<kOp, double> : integers<kOp>(elem);
}

template <Pair kOp>
PairRow compared(Elem elem) {
  return elem == Elem::f32 ? &pair_loop<kOp, float> : extreme<kOp>(elem);
}

// The bits of equal integers and of sums are the same whether they have a sign or not.
Elem unsigned_of(Elem elem) {
  switch (elem) {
    case Elem::i8: return Elem::u8;
    case Elem::i16: return Elem::u16;
    case Elem::u32: return Elem::i32;
    case Elem::u64: return Elem::i64;
    default: return elem;
  }
}

template <Pair kOp>
PairRow without_sign(Elem elem) {
  switch (unsigned_of(elem)) {
    case Elem::u8: return pair_loop<kOp, std::uint8_t>;
    case Elem::u16: return pair_loop<kOp, std::uint16_t>;
    case Elem::i32: return pair_loop<kOp, std::int32_t>;
    case Elem::i64: return pair_loop<kOp, std::int64_t>;
    case Elem::f64: return pair_loop<kOp, double>;
    default: return nullptr;
  }
}

template <Pair kOp>
PairRow bytes(Elem elem) {
  return elem == Elem::u8 ? &pair_loop<kOp, std::uint8_t> : nullptr;
}

PairRow pair(Pair op, Elem elem) {
  switch (op) {
    case Pair::equal: return elem == Elem::f32 ? &pair_loop<Pair::equal, float> : without_sign<Pair::equal>(elem);
    case Pair::less: return compared<Pair::less>(elem);
    case Pair::less_equal: return compared<Pair::less_equal>(elem);
    case Pair::all: return bytes<Pair::all>(elem);
    case Pair::any: return bytes<Pair::any>(elem);
    case Pair::either: return bytes<Pair::either>(elem);
    case Pair::add: return without_sign<Pair::add>(elem);
    case Pair::sub: return without_sign<Pair::sub>(elem);
    case Pair::mul: return without_sign<Pair::mul>(elem);
    case Pair::min: return extreme<Pair::min>(elem);
    case Pair::max: return extreme<Pair::max>(elem);
    case Pair::div: return elem == Elem::f64 ? &pair_loop<Pair::div, double> : nullptr;
  }
  return nullptr;
}

template <Map kOp, class T>
HWY_INLINE auto mapped(T x) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  if constexpr (kOp == Map::square_root) {
    return std::sqrt(x);
  } else if constexpr (kOp == Map::negate && std::is_floating_point_v<T>) {
    return -x;
  } else if constexpr (kOp == Map::absolute && std::is_floating_point_v<T>) {
    return std::abs(x);
  } else if constexpr (kOp == Map::negate) {
    return wrapped(T(0), x, [](auto a, auto b) { return a - b; });
  } else if constexpr (kOp == Map::absolute) {
    const T negative = wrapped(T(0), x, [](auto a, auto b) { return a - b; });
    return x < 0 ? negative : x;
  } else if constexpr (kOp == Map::logical_not) {
    return static_cast<std::uint8_t>(x == 0);
  } else if constexpr (kOp == Map::is_nan) {
    return static_cast<std::uint8_t>(x != x);
  } else if constexpr (kOp == Map::is_inf) {
    return static_cast<std::uint8_t>((x == kInf) | (x == -kInf));
  } else {
    return static_cast<std::uint8_t>(x == (kOp == Map::is_positive_inf ? kInf : -kInf));
  }
}

template <Map kOp, class T>
HWY_NOINLINE void map_loop(const void* x, void* y, std::int64_t n) {
  using Out = decltype(mapped<kOp>(T()));
  const auto* px = static_cast<const T*>(x);
  auto* py = static_cast<Out*>(y);
  SDX_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) py[i] = mapped<kOp>(px[i]);
}

template <Map kOp>
MapRow arithmetic_map(Elem elem) {
  switch (elem) {
    case Elem::i8: return map_loop<kOp, std::int8_t>;
    case Elem::i16: return map_loop<kOp, std::int16_t>;
    case Elem::i32: return map_loop<kOp, std::int32_t>;
    case Elem::i64: return map_loop<kOp, std::int64_t>;
    case Elem::f64: return map_loop<kOp, double>;
    default: return nullptr;
  }
}

template <Map kOp>
MapRow float_map(Elem elem) {
  return elem == Elem::f32 ? &map_loop<kOp, float> : nullptr;
}

MapRow map(Map op, Elem elem) {
  switch (op) {
    case Map::negate: return arithmetic_map<Map::negate>(elem);
    case Map::absolute: return arithmetic_map<Map::absolute>(elem);
    case Map::square_root: return elem == Elem::f64 ? &map_loop<Map::square_root, double> : nullptr;
    case Map::logical_not: return elem == Elem::u8 ? &map_loop<Map::logical_not, std::uint8_t> : nullptr;
    case Map::is_nan: return float_map<Map::is_nan>(elem);
    case Map::is_inf: return float_map<Map::is_inf>(elem);
    case Map::is_positive_inf: return float_map<Map::is_positive_inf>(elem);
    case Map::is_negative_inf: return float_map<Map::is_negative_inf>(elem);
  }
  return nullptr;
}

// Reads both sides before it chooses: otherwise the compiler would have to mask its reads.
template <class T, bool kLeft, bool kRight>
HWY_NOINLINE void select_loop(const std::uint8_t* condition, const T* a, const T* b, T* y, std::int64_t n) {
  const T left = *a, right = *b;
  SDX_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) {
    const T x = kLeft ? a[i] : left;
    const T z = kRight ? b[i] : right;
    y[i] = condition[i] != 0 ? x : z;
  }
}

template <class T>
void select_row(const std::uint8_t* condition, std::int64_t condition_step, const void* a, std::int64_t a_step, const void* b,
                std::int64_t b_step, void* y, std::int64_t n) {
  if (n == 0) return;
  const auto* pa = static_cast<const T*>(a);
  const auto* pb = static_cast<const T*>(b);
  auto* py = static_cast<T*>(y);
  if (condition_step == 0) {
    const T* from = *condition != 0 ? pa : pb;
    if ((*condition != 0 ? a_step : b_step) == 0) {
      std::fill_n(py, n, *from);
    } else if (from != py) {
      std::memcpy(py, from, static_cast<std::size_t>(n) * sizeof(T));
    }
    return;
  }
  if (a_step != 0) {
    return b_step != 0 ? select_loop<T, true, true>(condition, pa, pb, py, n)
                       : select_loop<T, true, false>(condition, pa, pb, py, n);
  }
  return b_step != 0 ? select_loop<T, false, true>(condition, pa, pb, py, n)
                     : select_loop<T, false, false>(condition, pa, pb, py, n);
}

SelectRow select(int bytes) {
  switch (bytes) {
    case 1: return select_row<std::uint8_t>;
    case 2: return select_row<std::uint16_t>;
    case 4: return select_row<std::uint32_t>;
    case 8: return select_row<std::uint64_t>;
    default: return nullptr;
  }
}

}  // namespace

const TypedKernels& typed_table() {
  static constexpr TypedKernels kTable{pair, map, select};
  return kTable;
}

}  // namespace sdx::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

SDX_CPU_DISPATCH(const TypedKernels&, typed_kernels, typed_table)
#endif
