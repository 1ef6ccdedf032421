#pragma once
// Random numbers that depend on a seed and a position alone, so that any part of a tensor can be filled on any thread.
// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (SplitMix64), 2014.

#include <cmath>
#include <cstdint>
#include <numbers>

namespace sdx::ops {

class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed) : key_(mix(seed + 0x9E3779B97F4A7C15U)) {}

  std::uint64_t bits(std::int64_t i) const { return mix(key_ + static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15U); }
  // In [0, 1), 53 random bits.
  double uniform(std::int64_t i) const { return static_cast<double>(bits(i) >> 11) * 0x1p-53; }
  // Mean 0, variance 1 (Box and Muller, 1958).
  double normal(std::int64_t i) const {
    const double u = static_cast<double>((bits(2 * i) >> 11) + 1) * 0x1p-53;  // in (0, 1]: its logarithm is finite
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * uniform(2 * i + 1));
  }

 private:
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  std::uint64_t key_;
};

}  // namespace sdx::ops
