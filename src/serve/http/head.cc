#include "serve/http/head.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/text/ascii.h"
#include "serve/http/text.h"

namespace sdx::serve {
namespace {

constexpr std::string_view kEnd = "\r\n\r\n";

// RFC 9110: token.
bool is_token(std::string_view text) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return c < 128 && (std::isalnum(c) != 0 || marks.find(static_cast<char>(c)) != std::string_view::npos);
  });
}

// Whether `word` is an item of a list with commas.
bool has_word(std::string_view list, std::string_view word) {
  while (true) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (same_word(trimmed(list.substr(0, comma)), word)) return true;
    if (comma == list.size()) return false;
    list.remove_prefix(comma + 1);
  }
}

std::optional<HeadError> bad(std::string message, int status = 400) { return HeadError{status, std::move(message)}; }

std::optional<HeadError> check_request_line(std::string_view line, bool& needs_host) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return bad("the request line is not 'METHOD TARGET HTTP/1.1'");
  }
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(line.substr(0, first))) return bad("the method is not a word");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return bad("the request line ends with an unknown version of HTTP; this server speaks HTTP/1.1", 505);
  }
  const bool plain = std::all_of(target.begin(), target.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (target.empty() || target.front() != '/' || !plain) return bad("the target is not a path such as /name");
  needs_host = version == "HTTP/1.1";
  return std::nullopt;
}

struct Fields {
  int hosts = 0, lengths = 0, encodings = 0;
};

std::optional<HeadError> check_field(std::string_view line, Fields& seen) {
  if (line.front() == ' ' || line.front() == '\t') return bad("a header field is folded over several lines");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return bad("a header field is not 'Name: value'");
  const std::string name = ascii_lower(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (name == "host") {
    ++seen.hosts;
  } else if (name == "content-length") {
    ++seen.lengths;
    const bool digits = std::all_of(value.begin(), value.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
    if (!digits || value.empty() || value.size() > 18) return bad("Content-Length is not a number of bytes");
  } else if (name == "transfer-encoding") {
    ++seen.encodings;
    if (ascii_lower(value) != "chunked") return bad("the only Transfer-Encoding that this server reads is 'chunked'", 501);
  } else if (name == "expect" && ascii_lower(value) != "100-continue") {
    return bad("the only Expect that this server supports is '100-continue'", 417);
  }
  return std::nullopt;
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_harmless(std::string_view path) {
  if (path.find('\0') != std::string_view::npos || path.find('\\') != std::string_view::npos) return false;
  for (std::size_t at = 1; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == "." || part == ".." || (part.empty() && end != path.size())) return false;
    at = end + 1;
  }
  return true;
}

}  // namespace

HeadEnd find_head_end(std::string_view data, std::size_t from) {
  const std::size_t start = from < kEnd.size() ? 0 : from - kEnd.size();
  const std::size_t end = data.find(kEnd, start);
  const std::size_t stop = end == std::string_view::npos ? data.size() : end + kEnd.size();
  for (std::size_t i = start; i < stop; ++i) {
    const unsigned char c = static_cast<unsigned char>(data[i]);
    const bool line_end = c == '\n' ? i > 0 && data[i - 1] == '\r' : i == 0 || data[i - 1] != '\r';
    if (!line_end || (c < 0x20 && c != '\r' && c != '\n' && c != '\t') || c == 0x7f) return {HeadState::broken, 0};
  }
  if (end == std::string_view::npos) return {};
  return {HeadState::complete, stop};
}

std::optional<HeadError> check_head(std::string_view head) {
  if (!head.ends_with(kEnd)) return bad("the head of the request is incomplete");
  head.remove_suffix(2);
  std::size_t end = head.find("\r\n");
  bool needs_host = false;
  if (auto error = check_request_line(head.substr(0, end), needs_host)) return error;
  Fields seen;
  for (std::size_t at = end + 2; at < head.size(); at = end + 2) {
    end = head.find("\r\n", at);
    if (auto error = check_field(head.substr(at, end - at), seen)) return error;
  }
  if (seen.hosts > 1 || (needs_host && seen.hosts == 0)) return bad("a request must have exactly one header field Host");
  if (seen.encodings > 0 && !needs_host) return bad("HTTP/1.0 does not support Transfer-Encoding");
  if (seen.lengths + seen.encodings > 1) {
    return bad("a request must have at most one of Content-Length and Transfer-Encoding, and only once");
  }
  return std::nullopt;
}

Framing read_head(std::string_view head, Request& request) {
  std::size_t end = head.find("\r\n");
  const std::string_view line = head.substr(0, end);
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  request.method = line.substr(0, first);
  request.target = line.substr(first + 1, last - first - 1);
  Framing framing;
  framing.old = line.ends_with("1.0");
  framing.length = 0;
  bool close = false, keep = false;
  for (std::size_t at = end + 2; at + 2 < head.size(); at = end + 2) {
    end = head.find("\r\n", at);
    const std::string_view field = head.substr(at, end - at);
    const std::size_t colon = field.find(':');
    const auto& [name, value] = request.headers.emplace_back(field.substr(0, colon), trimmed(field.substr(colon + 1)));
    if (same_word(name, "content-length")) {
      std::uint64_t length = 0;
      std::from_chars(value.data(), value.data() + value.size(), length);
      framing.length = length;
    } else if (same_word(name, "transfer-encoding")) {
      framing.length.reset();
    } else if (same_word(name, "connection")) {
      close = close || has_word(value, "close");
      keep = keep || has_word(value, "keep-alive");
    }
  }
  framing.keep_alive = !close && (!framing.old || keep);
  return framing;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus) {
      out.push_back(' ');
    } else if (text[i] != '%') {
      out.push_back(text[i]);
    } else {
      const int high = i + 2 < text.size() ? digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    }
  }
  return out;
}

bool split_target(Request& request) {
  const std::string_view target = request.target;
  const std::size_t mark = target.find('?');
  const auto path = percent_decode(target.substr(0, mark), false);
  if (!path || path->empty() || path->front() != '/' || !is_harmless(*path)) return false;
  request.path = *path;
  request.query.clear();
  std::string_view rest = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const auto name = percent_decode(pair.substr(0, equals), true);
    const auto value = percent_decode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) return false;
    request.query.emplace_back(*name, *value);
  }
  return true;
}

}  // namespace sdx::serve
