#include "base/system/files/find_bytes.h"

#include <cstring>

namespace sdx {

std::size_t find_bytes(std::string_view text, std::string_view part) {
  const void* const found = ::memmem(text.data(), text.size(), part.data(), part.size());
  return found == nullptr ? std::string_view::npos : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace sdx
