#include "base/poison.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace sdx {

static_assert(std::endian::native == std::endian::little);

bool poisoning() noexcept {
  static const bool on = [] {
    const char* set = std::getenv("SDX_POISON");
    return set != nullptr && std::string_view(set) == "1";
  }();
  return on;
}

void poison(void* data, std::size_t bytes) noexcept { poison(data, bytes, 0x7FA5A5A5, 4); }

void poison(void* data, std::size_t bytes, std::uint64_t pattern, std::size_t width) noexcept {
  auto* to = static_cast<unsigned char*>(data);
  for (std::size_t at = 0; at < bytes; at += width) std::memcpy(to + at, &pattern, at + width <= bytes ? width : bytes - at);
}

}  // namespace sdx
