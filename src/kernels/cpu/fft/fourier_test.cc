#include "kernels/cpu/fft/fourier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using Complex = std::complex<double>;

struct Signals {
  std::int64_t outer, inner;
};

// Element k of one signal's transform by the definition; `at(i)` gives the signal.
template <class F>
Complex by_definition(std::int64_t n, std::int64_t k, double sign, const F& at) {
  Complex sum = 0;
  for (std::int64_t i = 0; i < n; ++i)
    sum += at(i) * std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n));
  return sum;
}

template <class C, class T>
void run_all(const FourierJob& job, std::int64_t outer, const std::vector<C>& in, std::vector<C>& out) {
  const FourierTransform<C, T> fourier(job, outer);
  for (std::int64_t i = 0; i < fourier.count(); ++i) fourier.run(in.data(), out.data(), i, i + 1);
}

// Complex signals there and, scaled by 1 / n, back; the real parts alone, as real signals, and from their first half back.
template <class C, class T>
void check_length(std::int64_t n, const Signals& s, double tolerance) {
  const std::int64_t half = n / 2 + 1;
  const auto size = static_cast<std::size_t>(s.outer * n * s.inner), halves = static_cast<std::size_t>(s.outer * half * s.inner);
  std::vector<C> real(size), x(2 * size), y(2 * size), back(2 * size), h(2 * halves), again(size);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<C>(std::sin(static_cast<double>(i * i)));
  for (std::size_t i = 0; i < size; ++i) real[i] = x[2 * i];
  const double by = 1 / static_cast<double>(n);
  run_all<C, T>({Fourier::complex, n, n, n, s.inner}, s.outer, x, y);
  run_all<C, T>({Fourier::complex, n, n, n, s.inner, true, by}, s.outer, y, back);
  run_all<C, T>({Fourier::half, n, n, half, s.inner}, s.outer, real, h);
  run_all<C, T>({Fourier::whole, n, half, n, s.inner, true, by}, s.outer, h, again);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(back[i], x[i], tolerance) << n << " " << i;
  for (std::size_t i = 0; i < size; ++i) ASSERT_NEAR(again[i], real[i], tolerance) << n << " " << i;
  for (std::int64_t o = 0; o < s.outer; ++o) {
    for (std::int64_t v = 0; v < s.inner; ++v) {
      const auto place = [&](std::int64_t k, std::int64_t extent) {
        return static_cast<std::size_t>((o * extent + k) * s.inner + v);
      };
      for (std::int64_t k = 0; k < n; ++k) {
        const Complex whole =
            by_definition(n, k, -1, [&](std::int64_t i) { return Complex(x[2 * place(i, n)], x[2 * place(i, n) + 1]); });
        const Complex got(y[2 * place(k, n)], y[2 * place(k, n) + 1]);
        ASSERT_LT(std::abs(got - whole), tolerance * static_cast<double>(n)) << n << " " << k;
        if (k >= half) continue;
        const Complex of_real = by_definition(n, k, -1, [&](std::int64_t i) { return Complex(real[place(i, n)], 0); });
        const Complex got_half(h[2 * place(k, half)], h[2 * place(k, half) + 1]);
        ASSERT_LT(std::abs(got_half - of_real), tolerance * static_cast<double>(n)) << n << " " << k;
      }
    }
  }
}

TEST(KernelsFft, AnyLengthAndLayoutMatchesTheDefinition) {
  test::for_each_isa([] {
    for (const std::int64_t n : {1, 2, 3, 4, 5, 7, 8, 12, 23, 26, 29, 58, 80, 100}) {
      for (const Signals& s : {Signals{3, 1}, Signals{2, 3}, Signals{1, 19}, Signals{18, 1}}) {
        check_length<float, float>(n, s, 2e-6);
        check_length<float, double>(n, s, 2e-7);
        check_length<double, double>(n, s, 1e-13);
      }
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
