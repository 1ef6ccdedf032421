#pragma once
// Strings of JSON (RFC 8259), without a JSON library.

#include <string>
#include <string_view>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

// Control characters (below U+0020, and U+007F, which terminals obey): \n and \t, the others as \u001b; or all in that form.
enum class JsonControls { short_forms, codes };

// "text" with its quotes. What is not UTF-8 becomes U+FFFD (repair_utf8()).
SDX_TOOLS_API void append_json_string(std::string& out, std::string_view text, JsonControls controls = JsonControls::short_forms);
SDX_TOOLS_API std::string json_string(std::string_view text);
SDX_TOOLS_API std::string json_or_null(std::string_view text);  // null for an empty text
SDX_TOOLS_API std::string json_list(const std::vector<std::string>& texts);

// The shortest digits that are this number, or at most `digits` of them; null for what is not finite, as JSON has no other word.
SDX_TOOLS_API std::string json_number(float value);
SDX_TOOLS_API std::string json_number(double value);
SDX_TOOLS_API std::string json_number(double value, int digits);

// Escapes a piece of text for use between quotes. The piece may begin and end within a character: bytes from 0x80 stay.
SDX_TOOLS_API std::string json_piece(std::string_view piece);

// A document as text; bytes that are not UTF-8 and numbers that are not finite are treated the same way. `indent`: -1 writes one
// line.
template <class Json>
std::string dump_json(const Json& document, int indent = -1) {
  return document.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sdx
