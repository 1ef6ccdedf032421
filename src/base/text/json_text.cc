#include "base/text/json_text.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text/utf8.h"

namespace sdx {
namespace {

bool is_plain(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\' && c != '\x7F'; }

void append_escape(std::string& out, char c, JsonControls controls) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (controls == JsonControls::short_forms && (c == '\n' || c == '\t')) {
    out += c == '\n' ? "\\n" : "\\t";
  } else {
    out += "\\u00";
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
}

void append_piece(std::string& out, std::string_view piece, JsonControls controls) {
  for (std::size_t at = 0; at < piece.size(); ++at) {
    const std::size_t begin = at;
    while (at < piece.size() && is_plain(piece[at])) ++at;
    out += piece.substr(begin, at - begin);
    if (at < piece.size()) append_escape(out, piece[at], controls);
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text, JsonControls controls) {
  out += '"';
  append_piece(out, is_utf8(text) ? text : repair_utf8(text), controls);
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string json_or_null(std::string_view text) { return text.empty() ? "null" : json_string(text); }

std::string json_list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    if (out.size() > 1) out += ',';
    append_json_string(out, text);
  }
  return out + "]";
}

std::string json_number(float value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }
std::string json_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }
std::string json_number(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : "null";
}

std::string json_piece(std::string_view piece) {
  std::string out;
  append_piece(out, piece, JsonControls::short_forms);
  return out;
}

}  // namespace sdx
