#pragma once
// File names that came from outside.

#include <string>
#include <string_view>

namespace sdx {

// Whether `name` may be a file inside a folder: relative, no empty, "." or ".." part, no backslash, colon or control character,
// no part longer than 255 bytes. The reason why not, or "".
std::string unsafe_name(std::string_view name);

}  // namespace sdx
