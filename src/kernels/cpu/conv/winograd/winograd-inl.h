// Winograd's transforms of one dimension on vectors; included once per instruction set, after simd-inl.h.
#if defined(SDX_KERNELS_CPU_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SDX_KERNELS_CPU_WINOGRAD_INL_H_
#undef SDX_KERNELS_CPU_WINOGRAD_INL_H_
#else
#define SDX_KERNELS_CPU_WINOGRAD_INL_H_
#endif

#include "kernels/cpu/simd/simd-inl.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {

// The element of a point: 0 .. V are 0 and the first V of +-1 or +-1/sqrt 2, +-sqrt 2; V + 1 is infinity, which is always the
// last.
//
// Tiles at the end of an axis may have only V < T outputs: then any V + 2 points suffice. The first ones and infinity are used,
// with the weights for all T + 2; forward() makes up for the difference from Toom and Cook's weights for V + 2 points.
template <int T, int V>
HWY_INLINE constexpr int winograd_element(int i) {
  return i <= V ? i : T + 1;
}

// o = B^T d over elements `step` vectors apart; d has V + 2 of them.
template <int T, int V = T>
HWY_INLINE void forward(const float* d, std::int64_t step, float* o, std::int64_t out_step) {
  const DF f;
  const auto at = [&](int i) HWY_ATTR { return hn::LoadU(f, d + i * step); };
  const auto to = [&](int i, VF v) HWY_ATTR { hn::StoreU(v, f, o + i * out_step); };
  if constexpr (T == 2 && V == 2) {
    const VF d0 = at(0), d1 = at(1), d2 = at(2), d3 = at(3);
    to(0, hn::Sub(d0, d2));
    to(1, hn::Add(d1, d2));
    to(2, hn::Sub(d2, d1));
    to(3, hn::Sub(d1, d3));
  } else if constexpr (T == 2) {
    const VF d0 = at(0), d1 = at(1), d2 = at(2);
    to(0, hn::Sub(d0, d1));
    to(1, hn::Add(d1, d1));
    to(3, hn::Sub(d1, d2));
  } else {
    // Points 0, +-1/sqrt 2, +-sqrt 2 and infinity: their powers stay within [1/3, 3], so the transforms cancel less than with
    // +-1, +-2. Measured over 32 to 256 channels: 2 to 2.5 times the error of plain summation, against 4.5 to 5.5.
    const VF a = hn::Set(f, 0.70710678118654752F), b = hn::Set(f, 1.41421356237309505F);
    const VF half = hn::Set(f, 0.5F), two = hn::Set(f, 2.0F), middle = hn::Set(f, 2.5F);
    const VF d0 = at(0), d1 = at(1), d2 = at(2);
    if constexpr (V == 1) {  // 0, a
      to(0, hn::NegMulAdd(b, d1, d0));
      to(1, hn::Mul(hn::Set(f, -2.12132034355964257F), d1));
      to(5, hn::NegMulAdd(a, d1, d2));
    } else if constexpr (V == 2) {  // 0, +-a
      const VF even = hn::Mul(hn::Set(f, -1.5F), d2), odd = hn::Mul(hn::Set(f, -1.06066017177982129F), d1);
      to(0, hn::NegMulAdd(two, d2, d0));
      to(1, hn::Add(even, odd));
      to(2, hn::Sub(even, odd));
      to(5, hn::NegMulAdd(half, d1, at(3)));
    } else if constexpr (V == 3) {  // 0, +-a, b
      const VF d3 = at(3);
      const VF odd = hn::NegMulAdd(half, d1, d3), even = hn::Mul(hn::Set(f, -1.5F), d2);
      to(0, hn::MulAdd(b, odd, hn::NegMulAdd(two, d2, d0)));
      to(1, hn::MulAdd(hn::Set(f, 2.12132034355964257F), hn::Sub(d3, d1), even));
      to(2, hn::MulAdd(a, hn::Add(d1, d3), even));
      to(3, hn::Mul(hn::Set(f, 2.82842712474619010F), odd));
      to(5, hn::NegMulAdd(b, odd, hn::NegMulAdd(half, d2, at(4))));
    } else {
      const VF d3 = at(3), d4 = at(4), d5 = at(5);
      const VF even = hn::NegMulAdd(two, d2, d4), odd = hn::NegMulAdd(two, d1, d3);
      const VF even2 = hn::NegMulAdd(half, d2, d4), odd2 = hn::NegMulAdd(half, d1, d3);
      to(0, hn::NegMulAdd(middle, d2, hn::Add(d0, d4)));
      to(1, hn::MulAdd(a, odd, even));
      to(2, hn::NegMulAdd(a, odd, even));
      to(3, hn::MulAdd(b, odd2, even2));
      to(4, hn::NegMulAdd(b, odd2, even2));
      to(5, hn::NegMulAdd(middle, d3, hn::Add(d1, d5)));
    }
  }
}

// Elements as forward() stores them, the last at V + 1.
template <int T, int V = T>
HWY_INLINE void backward(const VF (&m)[V + 2], VF (&o)[V]) {
  const DF f;
  const VF a = hn::Set(f, 0.70710678118654752F), half = hn::Set(f, 0.5F), two = hn::Set(f, 2.0F);
  if constexpr (V == 1) {
    const VF sum = hn::Add(m[0], m[1]);
    o[0] = T == 2 ? hn::Sub(sum, m[2]) : hn::Add(sum, m[2]);
  } else if constexpr (T == 2) {
    o[0] = hn::Add(hn::Add(m[0], m[1]), m[2]);
    o[1] = hn::Sub(hn::Sub(m[1], m[2]), m[3]);
  } else if constexpr (V == 2) {
    o[0] = hn::Add(m[0], hn::Add(m[1], m[2]));
    o[1] = hn::MulAdd(a, hn::Sub(m[1], m[2]), m[3]);
  } else if constexpr (V == 3) {
    const VF sum = hn::Add(m[1], m[2]);
    o[0] = hn::Add(m[0], hn::Add(sum, m[3]));
    o[1] = hn::Mul(a, hn::MulAdd(two, m[3], hn::Sub(m[1], m[2])));
    o[2] = hn::MulAdd(two, m[3], hn::MulAdd(half, sum, m[4]));
  } else {
    const VF sum1 = hn::Add(m[1], m[2]), difference1 = hn::Sub(m[1], m[2]);
    const VF sum2 = hn::Add(m[3], m[4]), difference2 = hn::Sub(m[3], m[4]);
    o[0] = hn::Add(m[0], hn::Add(sum1, sum2));
    o[1] = hn::Mul(a, hn::MulAdd(two, difference2, difference1));
    o[2] = hn::MulAdd(two, sum2, hn::Mul(half, sum1));
    o[3] = hn::MulAdd(a, hn::MulAdd(hn::Set(f, 4.0F), difference2, hn::Mul(half, difference1)), m[5]);
  }
}

// Two elements of G g, for a pair of forward()'s points that differ in sign. I: which of T / 2 pairs.
struct Twins {
  VF plus, minus;
};
template <int T, int I>
HWY_INLINE Twins expand(VF g0, VF g1, VF g2) {
  const DF f;
  // Sums and differences run beside products: they have separate execution units.
  if constexpr (T == 2) {
    const VF even = hn::Mul(hn::Set(f, 0.5F), hn::Add(g0, g2)), odd = hn::Mul(hn::Set(f, 0.5F), g1);
    return {hn::Add(even, odd), hn::Sub(even, odd)};
  }
  const VF last = hn::Mul(hn::Set(f, 1.0F / 3), g2);
  if constexpr (I == 0) {
    const VF even = hn::NegMulSub(hn::Set(f, 2.0F / 3), g0, last), odd = hn::Mul(hn::Set(f, 0.47140452079103168F), g1);
    return {hn::Sub(even, odd), hn::Add(even, odd)};
  }
  const VF even = hn::MulAdd(hn::Set(f, 1.0F / 6), g0, last), odd = hn::Mul(hn::Set(f, 0.23570226039551584F), g1);
  return {hn::Add(even, odd), hn::Sub(even, odd)};
}

// All T + 2 elements, to out[i * step].
template <int T>
HWY_INLINE void expand_row(VF g0, VF g1, VF g2, float* out, std::int64_t step) {
  const DF f;
  hn::StoreU(g0, f, out);
  const Twins first = expand<T, 0>(g0, g1, g2);
  hn::StoreU(first.plus, f, out + step);
  hn::StoreU(first.minus, f, out + 2 * step);
  if constexpr (T == 4) {
    const Twins second = expand<T, 1>(g0, g1, g2);
    hn::StoreU(second.plus, f, out + 3 * step);
    hn::StoreU(second.minus, f, out + 4 * step);
  }
  hn::StoreU(g2, f, out + (T + 1) * step);
}

// The middle tap of transformed elements 1 and 2 of expand_row(). What rounding leaves of a tap that is 0 becomes 0: it may meet
// an infinity.
HWY_INLINE VF middle_tap(int t, VF first, VF second) {
  const DF d;
  const VF difference = t == 2 ? hn::Sub(first, second) : hn::Sub(second, first);
  const VF noise = hn::Mul(hn::Set(d, 2.4e-7F), hn::Add(hn::Abs(first), hn::Abs(second)));
  const VF tap = hn::Mul(difference, hn::Set(d, t == 2 ? 1.0F : 1.06066017177982129F));
  return hn::IfThenZeroElse(hn::Le(hn::Abs(difference), noise), tap);
}

// The nine taps of a filter whose transformed elements at() gives by row and column.
template <class At, class To>
HWY_INLINE void taps_of(int t, const At& at, const To& to) {
  const int rows[2] = {0, t + 1};
  for (int i = 0; i < 2; ++i) {
    const int r = rows[i];
    to(6 * i, at(r, 0));
    to(6 * i + 1, middle_tap(t, at(r, 1), at(r, 2)));
    to(6 * i + 2, at(r, t + 1));
  }
  to(3, middle_tap(t, at(1, 0), at(2, 0)));
  to(4, middle_tap(t, middle_tap(t, at(1, 1), at(1, 2)), middle_tap(t, at(2, 1), at(2, 2))));
  to(5, middle_tap(t, at(1, t + 1), at(2, t + 1)));
}

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#endif
