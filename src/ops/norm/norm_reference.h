#pragma once
// Mean, variance and what normalising operators do with them.

#include <cmath>
#include <cstdint>

namespace sdx::ops {

struct Moments {
  double mean = 0;
  double variance = 0;  // of the population
};

// Two passes in double: no cancellation. Zeros for n == 0.
template <class C>
Moments moments_of(const C* x, std::int64_t n) {
  if (n == 0) return {};
  Moments m;
  for (std::int64_t i = 0; i < n; ++i) m.mean += static_cast<double>(x[i]);
  m.mean /= static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(x[i]) - m.mean;
    m.variance += d * d;
  }
  m.variance /= static_cast<double>(n);
  return m;
}

template <class C>
double mean_square(const C* x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return n == 0 ? 0 : sum / static_cast<double>(n);
}

inline float inverse_rms(const float* x, std::int64_t n, float epsilon) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return static_cast<float>(1 / std::sqrt(sum / static_cast<double>(n) + static_cast<double>(epsilon)));
}

// y = (x - mean) * factor + shift
template <class C>
void scale_row(const C* x, std::int64_t n, double mean, double factor, double shift, C* y) {
  const C m = static_cast<C>(mean);
  const C f = static_cast<C>(factor);
  const C s = static_cast<C>(shift);
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) * f + s;
}

}  // namespace sdx::ops
