#pragma once
// Searching in bytes.

#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// Where `part`, which is not empty, begins in the text; npos: nowhere. In time that grows with the text alone, where
// std::string_view::find takes the product of both lengths for hostile texts.
SDX_TOOLS_API std::size_t find_bytes(std::string_view text, std::string_view part);

}  // namespace sdx
