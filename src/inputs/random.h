#pragma once
// Random numbers that are the same on every machine: the standard library's distributions differ between implementations.

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace sdx::inputs {

// splitmix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(uniform() * static_cast<double>(n)); }
  double exponential() { return -std::log1p(-uniform()); }  // mean 1
  double normal() {                                         // Box and Muller 1958
    const double radius = std::sqrt(2 * exponential());
    return radius * std::cos(2 * 3.14159265358979323846 * uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace sdx::inputs
