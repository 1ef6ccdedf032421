#include "hub/url.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "base/text/ascii.h"

namespace sdx::hub {
namespace {

// Encodes characters that a request line cannot hold; encoded ones stay as they are.
std::string sendable(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte <= 0x20 || byte >= 0x7f || c == '"' || c == '<' || c == '>' || c == '\\' ? fmt::format("%{:02X}", byte)
                                                                                         : std::string(1, c);
  }
  return out;
}

int parse_port(std::string_view text, std::string_view whole) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port < 1 || port > 65535) {
    fail(ErrorCode::invalid_argument, "'{}' is not a port (in '{}')", text, whole);
  }
  return port;
}

bool host_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_' || c == '[' || c == ']' || c == ':';
}

std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value != nullptr && *value != '\0') return value;
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  value = std::getenv(upper.c_str());
  return value == nullptr ? "" : value;
}

// no_proxy: host names and domain suffixes, comma-separated; "*" is all.
bool without_proxy(const std::string& host) {
  std::string list = ascii_lower(environment("no_proxy")) + ",";
  std::size_t at = 0;
  for (std::size_t comma = list.find(','); comma != std::string::npos; comma = list.find(',', at)) {
    std::string word = list.substr(at, comma - at);
    at = comma + 1;
    word.erase(0, word.find_first_not_of(" ."));
    while (!word.empty() && word.back() == ' ') word.pop_back();
    if (word == "*" || (!word.empty() && (host == word || host.ends_with("." + word)))) return true;
  }
  return false;
}

}  // namespace

std::string Url::origin() const { return fmt::format("{}://{}:{}", scheme, host, port); }

std::string Url::text() const {
  const bool usual = port == (scheme == "https" ? 443 : 80);
  return fmt::format("{}://{}{}{}", scheme, host, usual ? "" : ":" + std::to_string(port), path);
}

Url parse_url(std::string_view text) {
  Url url;
  const auto colon = text.find("://");
  url.scheme = colon == std::string_view::npos ? "" : ascii_lower(text.substr(0, colon));
  if (url.scheme != "http" && url.scheme != "https") {
    fail(ErrorCode::invalid_argument, "'{}' is not an http:// or https:// address", text);
  }
  std::string_view rest = text.substr(colon + 3);
  if (const auto hash = rest.find('#'); hash != std::string_view::npos) {
    url.fragment = rest.substr(hash + 1);
    rest = rest.substr(0, hash);
  }
  const auto slash = rest.find_first_of("/?");
  std::string_view authority = rest.substr(0, slash);
  if (slash != std::string_view::npos) url.path = (rest[slash] == '?' ? "/" : "") + sendable(rest.substr(slash));
  if (authority.find('@') != std::string_view::npos) {
    fail(ErrorCode::invalid_argument, "addresses with a user name or password are not supported; set HF_TOKEN instead");
  }
  url.port = url.scheme == "https" ? 443 : 80;
  const auto bracket = authority.rfind(']');
  const auto port = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (port != std::string_view::npos) {
    url.port = parse_port(authority.substr(port + 1), text);
    authority = authority.substr(0, port);
  }
  url.host = ascii_lower(authority);
  if (url.host.empty() || url.host.size() > 255 || !std::all_of(url.host.begin(), url.host.end(), host_character)) {
    fail(ErrorCode::invalid_argument, "'{}' has no usable host name", text);
  }
  return url;
}

Url resolve_location(const Url& from, std::string_view location) {
  try {
    Url to = from;
    if (location.starts_with("//")) {
      to = parse_url(from.scheme + ":" + std::string(location));
    } else if (location.starts_with("/")) {
      to.path = sendable(location.substr(0, location.find('#')));
    } else if (location.find("://") != std::string_view::npos) {
      to = parse_url(location);
    } else {
      const std::string base = from.path.substr(0, from.path.find('?'));
      to.path = base.substr(0, base.rfind('/') + 1) + sendable(location.substr(0, location.find('#')));
    }
    if (from.scheme == "https" && to.scheme == "http") {
      fail(ErrorCode::io, "{} redirects to {}: from https to http, which is not followed", from.text(), to.text());
    }
    return to;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::io) throw;
    fail(ErrorCode::io, "{} redirects to an address that cannot be used: {}", from.text(), e.message());
  }
}

std::string percent_encode(std::string_view text, bool keep_slash) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_' || c == '~' || (c == '/' && keep_slash);
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

std::string percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr == text.data() + i + 3) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::optional<Url> proxy_for(const Url& url) {
  std::string proxy = environment(url.scheme + "_proxy");
  if (proxy.empty() || without_proxy(url.host)) return std::nullopt;
  if (proxy.find("://") == std::string::npos) proxy = "http://" + proxy;
  return parse_url(proxy);
}

}  // namespace sdx::hub
