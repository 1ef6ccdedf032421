#pragma once
// Text from files, safe for a terminal.

#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// Escapes characters of `text` that would steer a terminal: control characters other than newline and tab ("\u001b", as in JSON),
// Unicode's own line breaks and changes of direction ("\u202e"), and bytes that are not UTF-8 ("\x9b"). JSON stays equivalent
// JSON.
SDX_TOOLS_API std::string printable(std::string_view text);

// The same with "\n" for newlines: a name from a file, which must not look like a line of our own.
SDX_TOOLS_API std::string one_line(std::string_view text);

}  // namespace sdx
