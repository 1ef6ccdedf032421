#pragma once
// Discrete Fourier transforms of complex numbers, real and imaginary parts apart: Stockham's self-sorting algorithm (Cooley and
// Tukey 1965; Swarztrauber 1984) with radices 4, 2, 3, 5 and other primes up to 23; Bluestein's (1970) for lengths with larger
// ones.

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace sdx::cpu {

// One pass over all numbers. `twiddles` has re and im of exp(-2 pi i q j / n) for the n of this pass: at [(j - 1) * m + q].
template <class T>
struct FftPass {
  std::int64_t radix = 0;
  std::int64_t m = 0;  // butterflies of one length
  std::vector<T> re, im;
  std::vector<T> root_re, root_im;  // exp(-2 pi i k / radix), for primes above 5
};

// A length's tables. Immutable, so safe to share between threads.
template <class T>
class FftPlan {
 public:
  explicit FftPlan(std::int64_t n);

  std::int64_t length() const noexcept { return n_; }
  // The number of elements of T that one call needs as scratch.
  std::size_t scratch(std::int64_t lanes) const noexcept;
  // Computes `lanes` transforms at once, element k of transform v at [k * lanes + v]; in place, forward (negative exponent),
  // unscaled. For the other direction, exchange re and im.
  void run(T* re, T* im, T* scratch, std::int64_t lanes) const;
  std::size_t bytes() const noexcept;
  // cos and sin of 2 pi k / 2n, k < n, which separate real transforms of twice the length. Computed on first use.
  struct HalfRoots {
    std::vector<T> re, im;
  };
  const HalfRoots& half_roots() const;

 private:
  void bluestein(T* re, T* im, T* scratch, std::int64_t lanes) const;

  std::int64_t n_;
  mutable std::once_flag once_;
  mutable HalfRoots half_roots_;
  std::vector<FftPass<T>> passes_;
  std::shared_ptr<const FftPlan> padded_;  // Bluestein: the convolution's length
  std::vector<T> chirp_re_, chirp_im_, spectrum_re_, spectrum_im_;
};

// Plans that were used last stay, up to 64 MiB.
template <class T>
std::shared_ptr<const FftPlan<T>> fft_plan(std::int64_t n);

// One pass from x to y; `stride` numbers lie side by side for each element. By instruction set.
template <class T>
struct FftNumbers {
  const T* x_re;
  const T* x_im;
  T* y_re;
  T* y_im;
};
void fft_pass(const FftPass<float>& pass, const FftNumbers<float>& numbers, std::int64_t stride);
void fft_pass(const FftPass<double>& pass, const FftNumbers<double>& numbers, std::int64_t stride);

}  // namespace sdx::cpu
