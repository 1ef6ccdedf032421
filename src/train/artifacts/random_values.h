#pragma once
// Random weights: the same from the same seed, on every machine.

#include <cmath>
#include <cstdint>
#include <string_view>

#include <sdx/tensor.hpp>

#include "base/splitmix64.h"

namespace sdx::train {

// Begun from a seed and a name, so that each parameter has numbers of its own.
class RandomValues {
 public:
  RandomValues(std::uint64_t seed, std::string_view name) : random_(seed_of(seed, name)) {}

  // [0, 1)
  double uniform() { return random_.uniform(); }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // Mean 0, deviation 1 (Box and Muller 1958).
  double normal() { return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(6.283185307179586 * uniform()); }

 private:
  static std::uint64_t seed_of(std::uint64_t seed, std::string_view name) {
    for (const char c : name) seed = seed * 0x100000001B3ULL + static_cast<unsigned char>(c);
    return seed;
  }
  SplitMix64 random_;
};

}  // namespace sdx::train
