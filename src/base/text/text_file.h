#pragma once
// Text as other programs save it.

#include <optional>
#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// UTF-8 without a byte order mark, from UTF-8 with or without one, or from UTF-16, told by its mark or by the zero bytes of its
// first letter. Throws Error(invalid_argument) for UTF-16 that ends within a letter.
SDX_TOOLS_API std::string to_utf8(std::string bytes);

// The separator that Excel's first line "sep=;" of a CSV file names, and the line is taken off; nullopt: there is none.
SDX_TOOLS_API std::optional<char> take_separator_line(std::string_view& csv);

}  // namespace sdx
