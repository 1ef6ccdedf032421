#pragma once
// Random numbers that are the same on every machine: the standard library's distributions differ between implementations.

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace sdx {

// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
class SplitMix64 {
 public:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15U;
  // The number that belongs to a state; the next state is kStep further.
  static constexpr std::uint64_t mix(std::uint64_t z) noexcept {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  // A number in [0, 1), from the upper 53 bits.
  static constexpr double unit(std::uint64_t bits) noexcept { return static_cast<double>(bits >> 11) * 0x1p-53; }

  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() { return mix(state_ += kStep); }
  double uniform() { return unit(bits()); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(uniform() * static_cast<double>(n)); }
  double exponential() { return -std::log1p(-uniform()); }  // mean 1
  double normal() {                                         // Box and Muller 1958
    const double radius = std::sqrt(2 * exponential());
    return radius * std::cos(2 * 3.14159265358979323846 * uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace sdx
