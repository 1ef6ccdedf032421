#include "hub/source.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/text/ascii.h"
#include "base/text/safe_name.h"

namespace sdx::hub {
namespace {

bool name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-' || c == '+';
}

// The nearest usable model name.
std::string tidy(std::string text) {
  for (char& c : text) c = name_character(c) ? c : '-';
  while (!text.empty() && (text.front() == '.' || text.front() == '-')) text.erase(0, 1);
  text.resize(std::min<std::size_t>(text.size(), 128));
  return text.empty() ? "model" : text;
}

Source parse_hub(std::string_view text) {
  Source s;
  s.kind = Source::Kind::hub;
  std::string rest(text.substr(5));
  const auto at = rest.find('@');
  std::string head = rest.substr(0, at);
  std::string tail;
  if (at != std::string::npos) {
    const auto slash = rest.find('/', at);
    s.revision = rest.substr(at + 1, slash == std::string::npos ? slash : slash - at - 1);
    tail = slash == std::string::npos ? "" : rest.substr(slash + 1);
    if (s.revision.empty()) fail(ErrorCode::invalid_argument, "'{}': there is no revision after '@'", text);
  } else if (const auto first = head.find('/'); first != std::string::npos) {
    if (const auto second = head.find('/', first + 1); second != std::string::npos) {
      tail = head.substr(second + 1);
      head.resize(second);
    }
  }
  const auto slash = head.find('/');
  const std::string last = slash == std::string::npos ? head : head.substr(slash + 1);
  const bool named = std::all_of(head.begin(), head.end(), [](char c) { return name_character(c) || c == '/'; });
  if (last.empty() || slash == 0 || last.find('/') != std::string::npos || !named || !unsafe_name(head).empty()) {
    fail(ErrorCode::invalid_argument, "'{}' is not a model of a hub; expected hf://ORG/NAME[@REVISION][/FILE]", text);
  }
  if (!tail.empty()) {
    if (const std::string why = unsafe_name(tail); !why.empty()) {
      fail(ErrorCode::invalid_argument, "'{}': the file name '{}' is refused: {}", text, tail, why);
    }
  }
  s.id = head;
  s.file = tail;
  s.name = tidy(last);
  return s;
}

Source parse_http(std::string_view text) {
  Source s;
  s.kind = Source::Kind::http;
  s.url = parse_url(text);
  if (!s.url.fragment.empty()) {
    if (!s.url.fragment.starts_with("sha256=")) {
      fail(ErrorCode::invalid_argument, "'#{}': only sha256=HEX may follow '#'", s.url.fragment);
    }
    s.sha256 = checked_sha256(std::string_view(s.url.fragment).substr(7));
  }
  const std::string path = percent_decode(s.url.path.substr(0, s.url.path.find('?')));
  s.name = tidy(std::filesystem::path(path).filename().stem().string());
  return s;
}

}  // namespace

Source parse_source(std::string_view text) {
  if (text.empty() || text.find('\0') != std::string_view::npos) fail(ErrorCode::invalid_argument, "the source is empty");
  if (text.starts_with("hf://")) return parse_hub(text);
  const auto scheme = text.find("://");
  if (scheme != std::string_view::npos && !text.starts_with("file://")) return parse_http(text);
  Source s;
  s.path = std::filesystem::path(text.starts_with("file://") ? text.substr(7) : text);
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(s.path, ignored);
  const std::filesystem::path whole = std::filesystem::absolute(s.path, ignored).lexically_normal();
  const std::filesystem::path plain = whole.has_filename() ? whole : whole.parent_path();
  s.name = tidy(folder ? plain.filename().string() : plain.stem().string());
  return s;
}

std::string checked_sha256(std::string_view text) {
  std::string out = ascii_lower(text);
  const bool hex = std::all_of(out.begin(), out.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (out.size() != 64 || !hex)
    fail(ErrorCode::invalid_argument, "'{}' is not a SHA-256 checksum: expected 64 hexadecimal digits", text);
  return out;
}

void check_model_name(const std::string& name) {
  if (name.empty() || name.size() > 128 || name.front() == '.' || !std::all_of(name.begin(), name.end(), name_character)) {
    fail(ErrorCode::invalid_argument, "'{}' cannot be a model's name: letters, digits and ._-+ only, no dot at the start", name);
  }
}

}  // namespace sdx::hub
