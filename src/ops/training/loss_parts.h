#pragma once
// Shared by losses and their gradients.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include <sdx/tensor.hpp>

#include "base/error.h"

namespace sdx::ops {

enum class Reduction : std::uint8_t { none, sum, mean };

inline Reduction read_reduction(std::string_view word) {
  if (word == "none") return Reduction::none;
  if (word == "sum") return Reduction::sum;
  if (word == "mean") return Reduction::mean;
  fail(ErrorCode::invalid_model, "attribute 'reduction' is '{}'; permitted: none, sum, mean", word);
}

// [N, C, d1, ...] without C: what the labels' shape must be.
template <class S>
S sample_shape(const S& scores) {
  if (scores.size() < 2) {
    fail(ErrorCode::invalid_model, "the scores must have rank 2 or more ([N, C, ...]), received shape {}", to_string(scores));
  }
  S out = scores;
  out.erase(out.begin() + 1);
  return out;
}

// Scores as [batch, classes, inner].
struct LossSizes {
  std::int64_t batch, classes, inner;
  std::int64_t samples() const { return batch * inner; }
  // The position of a sample's class 0; the others follow at distances of `inner`.
  std::int64_t first(std::int64_t sample) const { return sample / inner * classes * inner + sample % inner; }
};

// out = in - log(sum(exp(in))) along the class axis.
template <class C>
void log_softmax(const LossSizes& s, const C* in, C* out) {
  for (std::int64_t row = 0; row < s.samples(); ++row) {
    const std::int64_t at = s.first(row);
    double top = -std::numeric_limits<double>::infinity();
    for (std::int64_t k = 0; k < s.classes; ++k) top = std::max(top, static_cast<double>(in[at + k * s.inner]));
    double sum = 0;
    for (std::int64_t k = 0; k < s.classes; ++k) sum += std::exp(static_cast<double>(in[at + k * s.inner]) - top);
    const double shift = top + std::log(sum);
    for (std::int64_t k = 0; k < s.classes; ++k)
      out[at + k * s.inner] = static_cast<C>(static_cast<double>(in[at + k * s.inner]) - shift);
  }
}

}  // namespace sdx::ops
