#pragma once
// "Did you mean …?"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

// The candidate nearest to `text` by edit distance (letters' case ignored), or "" when none is near enough to be a typing
// error (more than a third of the letters differ, at least two).
SDX_TOOLS_API std::string closest(std::string_view text, std::span<const std::string> candidates);

// "a,,b" -> "a", "b": the parts between commas, unless they are empty.
SDX_TOOLS_API std::vector<std::string> split_list(std::string_view text);
// "a, b, c"
SDX_TOOLS_API std::string join(std::span<const std::string> parts, std::string_view separator = ", ");

}  // namespace sdx
