#pragma once
// File names that came from outside.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// Checks that `name` may be a file inside a folder: relative, no empty, "." or ".." part, no backslash, colon or control
// character, no part longer than 255 bytes. Returns the reason if not, or "".
SDX_TOOLS_API std::string unsafe_name(std::string_view name);

inline constexpr std::size_t kLongestName = 255;  // bytes of one name in Linux's and macOS's file systems

// The name, or, if it has more than `most` bytes, its beginning with 8 digits of its hash: different names stay different. Cut
// between letters of UTF-8.
SDX_TOOLS_API std::string shortened_name(std::string_view name, std::size_t most = kLongestName);

}  // namespace sdx
