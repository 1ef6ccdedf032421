#pragma once

#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// Text as HTML and XML show it, between tags and in attributes in double quotes: also its line ends, which XML would change in
// attributes. Other control characters, which neither has, become spaces.
SDX_TOOLS_API std::string markup_text(std::string_view text);

}  // namespace sdx
