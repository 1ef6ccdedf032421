#pragma once
// File names that came from outside.

#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// Whether `name` may be a file inside a folder: relative, no empty, "." or ".." part, no backslash, colon or control character,
// no part longer than 255 bytes. The reason why not, or "".
SDX_TOOLS_API std::string unsafe_name(std::string_view name);

}  // namespace sdx
