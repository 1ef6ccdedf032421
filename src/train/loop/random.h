#pragma once
// Random numbers by purpose: a generator for each epoch and sample, so that nothing depends on earlier draws.

#include <cstdint>
#include <initializer_list>

#include "base/splitmix64.h"

namespace sdx::train::loop {

// The purposes of random numbers.
inline constexpr std::uint64_t kOrder = 1, kAugment = 2, kSplit = 3, kLayers = 4;

inline std::uint64_t mixed(std::uint64_t seed, std::initializer_list<std::uint64_t> keys) {
  for (const std::uint64_t key : keys) seed = SplitMix64(seed ^ (key * 0xD6E8FEB86659FD93ULL)).bits();
  return seed;
}

class Random : public SplitMix64 {
 public:
  Random(std::uint64_t seed, std::initializer_list<std::uint64_t> keys) : SplitMix64(mixed(seed, keys)) {}
};

}  // namespace sdx::train::loop
