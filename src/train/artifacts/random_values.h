#pragma once
// Random weights: the same from the same seed, on every machine.

#include <cmath>
#include <cstdint>
#include <string_view>

#include <sdx/tensor.hpp>

namespace sdx::train {

// SplitMix64 (Steele, Lea and Flood 2014), begun from a seed and a name, so that each parameter has numbers of its own.
class RandomValues {
 public:
  RandomValues(std::uint64_t seed, std::string_view name) : state_(seed) {
    for (const char c : name) state_ = state_ * 0x100000001B3ULL + static_cast<unsigned char>(c);
  }

  // [0, 1)
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // Mean 0, deviation 1 (Box and Muller 1958).
  double normal() { return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(6.283185307179586 * uniform()); }

 private:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

}  // namespace sdx::train
