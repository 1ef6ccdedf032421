#pragma once
// Discrete Fourier transforms of any length in O(n log n). Sources: Cooley and Tukey 1965 (powers of two); Bluestein 1970 (other
// lengths, as a convolution).

#include <complex>
#include <cstdint>
#include <vector>

namespace sdx::ops {

// Transforms many signals of one length; tables are made once. Not thread-safe.
class Fft {
 public:
  // n >= 0. `inverse`: the exponent is positive; the result is not divided by n.
  Fft(std::int64_t n, bool inverse);

  // `x` has n elements; transformed in place.
  void operator()(std::complex<double>* x);

 private:
  using Complex = std::complex<double>;
  std::int64_t n_;
  std::int64_t padded_;            // a power of two: n_ itself, or one with room for the convolution
  std::vector<Complex> roots_;     // exp(-2 pi i k / padded_), k < padded_/2
  std::vector<Complex> chirp_;     // Bluestein: exp(-+ pi i k^2 / n)
  std::vector<Complex> spectrum_;  // Bluestein: transform of the conjugate chirp
  std::vector<Complex> work_;
  bool inverse_;

  void power_of_two(Complex* x, bool conjugate) const;
  void bluestein(Complex* x);
};

}  // namespace sdx::ops
