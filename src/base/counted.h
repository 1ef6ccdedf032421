#pragma once
// Numbers of things, for people.

#include <cstdint>
#include <string>
#include <string_view>

namespace sdx {

// "1 sample", "3 samples": of words that take an s.
inline std::string counted(std::int64_t n, std::string_view one) {
  return std::to_string(n).append(" ").append(one).append(n == 1 ? "" : "s");
}

}  // namespace sdx
