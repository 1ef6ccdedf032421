#include "hub/source.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/system/network/sockets.h"
#include "base/text/ascii.h"
#include "base/text/model_name.h"
#include "base/text/safe_name.h"

namespace sdx::hub {
namespace {

constexpr std::size_t kLongestName = 256;

// Letters, digits and "._-+", with '/' between them.
bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && unsafe_name(std::string(text)).empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_model_name_character(c) || c == '/'; });
}

// "NAME:TAG" -> both; the colon of a port comes before a '/'.
std::pair<std::string, std::string> split_tag(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.find('/', colon) != std::string_view::npos) return {std::string(text), ""};
  return {std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

// "hf.co/org/name:Q4_K_M" without its host.
Source parse_quantised(std::string_view text, std::string_view rest) {
  Source s;
  s.kind = Source::Kind::hub;
  s.gguf = true;
  std::tie(s.id, s.tag) = split_tag(rest);
  const auto slashes = std::count(s.id.begin(), s.id.end(), '/');
  const bool tagged = rest.find(':') != std::string_view::npos;
  if (!is_id(s.id) || slashes != 1 || (tagged && (!is_id(s.tag) || s.tag.find('/') != std::string::npos))) {
    fail(ErrorCode::invalid_argument, "'{}' is not a model of a hub; expected hf.co/ORG/NAME[:QUANTISATION]", text);
  }
  if (s.tag == "latest") s.tag.clear();
  s.name = "hf.co/" + s.id + (s.tag.empty() ? "" : ":" + s.tag);
  return s;
}

// A name that a registry could have; nothing: a path. What looks like a file is one, although it is not there.
std::optional<Source> parse_registry(std::string_view text) {
  const auto [path, tag] = split_tag(text);
  const bool tagged = path.size() != text.size();
  if (text.find('\\') != std::string_view::npos || text.starts_with('.') || text.starts_with('/') || text.starts_with('~'))
    return {};
  if (!tagged && text.find_first_of("/.") != std::string_view::npos) return {};
  Source s;
  s.kind = Source::Kind::registry;
  s.id = path;
  const std::size_t slash = path.find('/');
  const std::string host = slash == std::string::npos ? "" : path.substr(0, slash);
  if (host.find_first_of(".:") != std::string::npos || host == "localhost") {
    const std::string name = host.substr(0, host.find(':'));
    s.url = parse_url((name == "localhost" || is_loopback(name) ? "http://" : "https://") + host);
    s.id = path.substr(slash + 1);
  }
  s.tag = tag.empty() && !tagged ? "latest" : tag;
  if (!is_id(s.id) || !is_id(s.tag) || s.tag.find('/') != std::string::npos) return {};
  if (s.id.find('/') == std::string::npos) s.id = "library/" + s.id;
  s.name = std::string(text);
  if (s.name.ends_with(":latest")) s.name.resize(s.name.size() - std::string_view(":latest").size());
  return s;
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
  const bool named = std::all_of(head.begin(), head.end(), [](char c) { return is_model_name_character(c) || c == '/'; });
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
  s.name = model_folder_name(last);
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
  s.name = model_folder_name(std::filesystem::path(path).filename().stem().string());
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
  for (const std::string_view hub : {"hf.co/", "huggingface.co/"}) {
    if (text.starts_with(hub) && !std::filesystem::exists(s.path, ignored)) return parse_quantised(text, text.substr(hub.size()));
  }
  if (!text.starts_with("file://") && !std::filesystem::exists(s.path, ignored)) {
    if (std::optional<Source> named = parse_registry(text)) return *named;
  }
  const bool folder = std::filesystem::is_directory(s.path, ignored);
  const std::filesystem::path whole = std::filesystem::absolute(s.path, ignored).lexically_normal();
  const std::filesystem::path plain = whole.has_filename() ? whole : whole.parent_path();
  s.name = model_folder_name(folder ? plain.filename().string() : plain.stem().string());
  return s;
}

Source parse_model_name(std::string_view text) {
  for (const std::string_view hub : {"hf.co/", "huggingface.co/"}) {
    if (text.starts_with(hub)) return parse_quantised(text, text.substr(hub.size()));
  }
  std::optional<Source> named;
  const bool tagged = !split_tag(text).second.empty();
  if (text.find("://") == std::string_view::npos)
    named = parse_registry(tagged ? std::string(text) : std::string(text) + ":latest");
  if (!named || !named->url.host.empty()) {
    fail(ErrorCode::invalid_argument, "'{}' is not the name of a model in a registry or hub: NAME[:TAG], hf.co/ORG/NAME[:TAG]",
         text);
  }
  return *named;
}

std::string checked_sha256(std::string_view text) {
  std::string out = ascii_lower(text);
  const bool hex = std::all_of(out.begin(), out.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (out.size() != 64 || !hex)
    fail(ErrorCode::invalid_argument, "'{}' is not a SHA-256 checksum: expected 64 hexadecimal digits", text);
  return out;
}

void check_model_name(const std::string& name) {
  if (name.empty() || name.size() > 128 || name.front() == '.' ||
      !std::all_of(name.begin(), name.end(), is_model_name_character)) {
    fail(ErrorCode::invalid_argument, "'{}' cannot be a model's name: letters, digits and ._-+ only, no dot at the start", name);
  }
}

}  // namespace sdx::hub
