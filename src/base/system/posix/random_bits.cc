#include "base/system/random_bits.h"

#include <sys/random.h>

#include <random>

namespace sdx {

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) == static_cast<ssize_t>(sizeof bits)) return bits;
  std::random_device device;  // for kernels, and filters of system calls, that refuse getrandom()
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace sdx
