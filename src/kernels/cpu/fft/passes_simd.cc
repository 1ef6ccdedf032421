// The butterflies, compiled once per instruction set. Numbers that lie side by side take the same step, so that the compiler
// makes vectors of them; in the first pass, where nothing lies side by side, butterflies do.

#include "kernels/cpu/fft/plan.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fft/passes_simd.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/cpu/simd/loops.h"

SDX_BEFORE_NAMESPACE();
namespace sdx::cpu::HWY_NAMESPACE {
namespace {

template <class T>
struct Complex {
  T re, im;
};
template <class T>
HWY_INLINE Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
HWY_INLINE Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
HWY_INLINE Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T>
HWY_INLINE Complex<T> scaled(Complex<T> a, T by) {
  return {a.re * by, a.im * by};
}
// times -i
template <class T>
HWY_INLINE Complex<T> turned(Complex<T> a) {
  return {a.im, -a.re};
}

template <class T>
HWY_INLINE void butterfly(Complex<T> (&a)[2]) {
  const Complex<T> d = a[0] - a[1];
  a[0] = a[0] + a[1];
  a[1] = d;
}

template <class T>
HWY_INLINE void butterfly(Complex<T> (&a)[3]) {
  const Complex<T> sum = a[1] + a[2];
  const Complex<T> middle = a[0] + scaled(sum, T(-0.5));
  const Complex<T> side = turned(scaled(a[1] - a[2], T(0.866025403784438646763723170752936183L)));
  a[0] = a[0] + sum;
  a[1] = middle + side;
  a[2] = middle - side;
}

template <class T>
HWY_INLINE void butterfly(Complex<T> (&a)[4]) {
  const Complex<T> p = a[0] + a[2], q = a[0] - a[2], r = a[1] + a[3], s = turned(a[1] - a[3]);
  a[0] = p + r;
  a[1] = q + s;
  a[2] = p - r;
  a[3] = q - s;
}

template <class T>
HWY_INLINE void butterfly(Complex<T> (&a)[5]) {
  constexpr T c1 = T(0.309016994374947424102293417182819059L), c2 = T(-0.809016994374947424102293417182819059L);
  constexpr T s1 = T(0.951056516295153572116439333379382143L), s2 = T(0.587785252292473129168705954639072769L);
  const Complex<T> p1 = a[1] + a[4], p2 = a[2] + a[3], d1 = a[1] - a[4], d2 = a[2] - a[3];
  const Complex<T> m1 = a[0] + scaled(p1, c1) + scaled(p2, c2), m2 = a[0] + scaled(p1, c2) + scaled(p2, c1);
  const Complex<T> t1 = turned(scaled(d1, s1) + scaled(d2, s2)), t2 = turned(scaled(d1, s2) - scaled(d2, s1));
  a[0] = a[0] + p1 + p2;
  a[1] = m1 + t1;
  a[2] = m2 + t2;
  a[3] = m2 - t2;
  a[4] = m1 - t1;
}

// Numbers side by side: kSide of them where that is known, so that a vector or two needs no loop.
template <class T, int kRadix, int kSide>
void side_by_side(const FftPass<T>& pass, const FftNumbers<T>& n, std::int64_t stride) {
  const std::int64_t side = kSide > 0 ? kSide : stride, m = pass.m;
  for (std::int64_t q = 0; q < m; ++q) {
    Complex<T> w[kRadix];
    for (int j = 1; j < kRadix; ++j)
      w[j] = {pass.re[static_cast<std::size_t>((j - 1) * m + q)], pass.im[static_cast<std::size_t>((j - 1) * m + q)]};
    const T* HWY_RESTRICT xr = n.x_re + q * side;
    const T* HWY_RESTRICT xi = n.x_im + q * side;
    T* HWY_RESTRICT yr = n.y_re + q * kRadix * side;
    T* HWY_RESTRICT yi = n.y_im + q * kRadix * side;
    SDX_INDEPENDENT
    for (std::int64_t r = 0; r < side; ++r) {
      Complex<T> a[kRadix];
      for (int j = 0; j < kRadix; ++j) a[j] = {xr[r + j * m * side], xi[r + j * m * side]};
      butterfly(a);
      for (int j = 0; j < kRadix; ++j) {
        const Complex<T> b = j == 0 ? a[0] : a[j] * w[j];
        yr[r + j * side] = b.re;
        yi[r + j * side] = b.im;
      }
    }
  }
}

template <class T, int kRadix>
void first(const FftPass<T>& pass, const FftNumbers<T>& n) {
  const std::int64_t m = pass.m;
  const T* HWY_RESTRICT xr = n.x_re;
  const T* HWY_RESTRICT xi = n.x_im;
  T* HWY_RESTRICT yr = n.y_re;
  T* HWY_RESTRICT yi = n.y_im;
  const T* HWY_RESTRICT wr = pass.re.data();
  const T* HWY_RESTRICT wi = pass.im.data();
  SDX_INDEPENDENT
  for (std::int64_t q = 0; q < m; ++q) {
    Complex<T> a[kRadix];
    for (int j = 0; j < kRadix; ++j) a[j] = {xr[q + j * m], xi[q + j * m]};
    butterfly(a);
    for (int j = 0; j < kRadix; ++j) {
      const Complex<T> b = j == 0 ? a[0] : a[j] * Complex<T>{wr[(j - 1) * m + q], wi[(j - 1) * m + q]};
      yr[kRadix * q + j] = b.re;
      yi[kRadix * q + j] = b.im;
    }
  }
}

template <class T, int kRadix>
void known_radix(const FftPass<T>& pass, const FftNumbers<T>& n, std::int64_t stride) {
  switch (stride) {
    case 1: return first<T, kRadix>(pass, n);
    case 2: return side_by_side<T, kRadix, 2>(pass, n, stride);
    case 4: return side_by_side<T, kRadix, 4>(pass, n, stride);
    case 8: return side_by_side<T, kRadix, 8>(pass, n, stride);
    case 16: return side_by_side<T, kRadix, 16>(pass, n, stride);
    default: return side_by_side<T, kRadix, 0>(pass, n, stride);
  }
}

// Sums of all inputs of a butterfly, one output after the other.
template <class T>
void any_radix(const FftPass<T>& pass, const FftNumbers<T>& n, std::int64_t stride) {
  const std::int64_t m = pass.m, p = pass.radix;
  for (std::int64_t q = 0; q < m; ++q) {
    for (std::int64_t j = 0; j < p; ++j) {
      const auto at = static_cast<std::size_t>((j - 1) * m + q);
      const Complex<T> w = j == 0 ? Complex<T>{1, 0} : Complex<T>{pass.re[at], pass.im[at]};
      T* HWY_RESTRICT yr = n.y_re + (q * p + j) * stride;
      T* HWY_RESTRICT yi = n.y_im + (q * p + j) * stride;
      for (std::int64_t k = 0; k < p; ++k) {
        const auto root = static_cast<std::size_t>(j * k % p);
        const Complex<T> c = Complex<T>{pass.root_re[root], pass.root_im[root]} * w;
        const T* HWY_RESTRICT xr = n.x_re + (q + k * m) * stride;
        const T* HWY_RESTRICT xi = n.x_im + (q + k * m) * stride;
        for (std::int64_t r = 0; r < stride; ++r) {
          const Complex<T> b = Complex<T>{xr[r], xi[r]} * c;
          yr[r] = k == 0 ? b.re : yr[r] + b.re;
          yi[r] = k == 0 ? b.im : yi[r] + b.im;
        }
      }
    }
  }
}

template <class T>
void any_pass(const FftPass<T>& pass, const FftNumbers<T>& n, std::int64_t stride) {
  switch (pass.radix) {
    case 2: return known_radix<T, 2>(pass, n, stride);
    case 3: return known_radix<T, 3>(pass, n, stride);
    case 4: return known_radix<T, 4>(pass, n, stride);
    case 5: return known_radix<T, 5>(pass, n, stride);
    default: return any_radix(pass, n, stride);
  }
}

}  // namespace

void float_pass(const FftPass<float>& pass, const FftNumbers<float>& n, std::int64_t stride) { any_pass(pass, n, stride); }
void double_pass(const FftPass<double>& pass, const FftNumbers<double>& n, std::int64_t stride) { any_pass(pass, n, stride); }

}  // namespace sdx::cpu::HWY_NAMESPACE
SDX_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

namespace sdx::cpu {

void fft_pass(const FftPass<float>& pass, const FftNumbers<float>& n, std::int64_t stride) {
  SDX_CPU_PICK(float_pass)(pass, n, stride);
}
void fft_pass(const FftPass<double>& pass, const FftNumbers<double>& n, std::int64_t stride) {
  SDX_CPU_PICK(double_pass)(pass, n, stride);
}

}  // namespace sdx::cpu
#endif
