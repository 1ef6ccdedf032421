#include "ops/signal/fft.h"

#include <bit>
#include <numbers>

#include "base/error.h"

namespace sdx::ops {
namespace {

std::complex<double> unit(double turns) {
  const double angle = 2 * std::numbers::pi * turns;
  return {std::cos(angle), std::sin(angle)};
}

bool is_power_of_two(std::int64_t n) { return (n & (n - 1)) == 0; }

// Plain products: std::complex's operator* also mends infinities, which costs a call per product.
std::complex<double> times(const std::complex<double>& a, const std::complex<double>& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

Fft::Fft(std::int64_t n, bool inverse) : n_(n), padded_(n), inverse_(inverse) {
  if (n > (std::int64_t{1} << 40)) fail(ErrorCode::out_of_memory, "a Fourier transform of length {} is too long", n);
  if (n <= 1) return;
  const bool direct = is_power_of_two(n);
  if (!direct) padded_ = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(2 * n - 1)));
  roots_.resize(static_cast<std::size_t>(padded_ / 2));
  for (std::int64_t k = 0; k < padded_ / 2; ++k) {
    roots_[static_cast<std::size_t>(k)] = unit(-static_cast<double>(k) / static_cast<double>(padded_));
  }
  if (direct) return;
  chirp_.resize(static_cast<std::size_t>(n));
  std::int64_t square = 0;  // k^2 modulo 2n: keeps the angle exact for large k
  for (std::int64_t k = 0; k < n; ++k) {
    const double turns = static_cast<double>(square) / static_cast<double>(2 * n);
    chirp_[static_cast<std::size_t>(k)] = unit(inverse ? turns : -turns);
    square = (square + 2 * k + 1) % (2 * n);
  }
  spectrum_.assign(static_cast<std::size_t>(padded_), 0);
  work_.resize(static_cast<std::size_t>(padded_));
  for (std::int64_t k = 0; k < n; ++k) {
    const Complex c = std::conj(chirp_[static_cast<std::size_t>(k)]);
    spectrum_[static_cast<std::size_t>(k)] = c;
    if (k > 0) spectrum_[static_cast<std::size_t>(padded_ - k)] = c;
  }
  power_of_two(spectrum_.data(), false);
}

void Fft::power_of_two(Complex* x, bool conjugate) const {
  const std::int64_t n = padded_;
  for (std::int64_t i = 1, j = 0; i < n; ++i) {
    std::int64_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (std::int64_t half = 1; half < n; half *= 2) {
    const std::int64_t step = n / (2 * half);
    for (std::int64_t base = 0; base < n; base += 2 * half) {
      for (std::int64_t k = 0; k < half; ++k) {
        const Complex& root = roots_[static_cast<std::size_t>(k * step)];
        const Complex odd = times(x[base + half + k], conjugate ? std::conj(root) : root);
        x[base + half + k] = x[base + k] - odd;
        x[base + k] += odd;
      }
    }
  }
}

void Fft::bluestein(Complex* x) {
  std::fill(work_.begin(), work_.end(), Complex(0));
  for (std::size_t k = 0; k < chirp_.size(); ++k) work_[k] = times(x[k], chirp_[k]);
  power_of_two(work_.data(), false);
  for (std::size_t k = 0; k < work_.size(); ++k) work_[k] = times(work_[k], spectrum_[k]);
  power_of_two(work_.data(), true);
  const double scale = 1 / static_cast<double>(padded_);
  for (std::size_t k = 0; k < chirp_.size(); ++k) x[k] = times(work_[k], chirp_[k]) * scale;
}

void Fft::operator()(Complex* x) {
  if (n_ <= 1) return;
  if (chirp_.empty()) {
    power_of_two(x, inverse_);
  } else {
    bluestein(x);
  }
}

}  // namespace sdx::ops
