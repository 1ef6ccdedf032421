#include "base/system/random_bits.h"

#include <random>

namespace sdx {

// The library's device asks the system (rand_s, RDRAND).
std::uint64_t random_bits() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace sdx
