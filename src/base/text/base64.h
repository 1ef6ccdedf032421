#pragma once
// Base64 (RFC 4648, section 4).

#include <optional>
#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

SDX_TOOLS_API std::string encode_base64(std::string_view bytes);
// Decodes text with or without padding; nothing if the text is not Base64.
SDX_TOOLS_API std::optional<std::string> decode_base64(std::string_view text);

}  // namespace sdx
