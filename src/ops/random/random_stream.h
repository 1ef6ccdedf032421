#pragma once
// Random numbers that depend on a seed and a position alone, so that any part of a tensor can be filled on any thread.

#include <cmath>
#include <cstdint>
#include <numbers>

#include "base/splitmix64.h"

namespace sdx::ops {

class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed) : key_(SplitMix64::mix(seed + SplitMix64::kStep)) {}

  std::uint64_t bits(std::int64_t i) const { return SplitMix64::mix(key_ + static_cast<std::uint64_t>(i) * SplitMix64::kStep); }
  // A number in [0, 1) with 53 random bits.
  double uniform(std::int64_t i) const { return SplitMix64::unit(bits(i)); }
  // Mean 0, variance 1 (Box and Muller, 1958).
  double normal(std::int64_t i) const {
    const double u = static_cast<double>((bits(2 * i) >> 11) + 1) * 0x1p-53;  // in (0, 1]: its logarithm is finite
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * uniform(2 * i + 1));
  }

 private:
  std::uint64_t key_;
};

}  // namespace sdx::ops
