#include "base/text/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace sdx {
namespace {

struct Lead {
  std::size_t bytes;          // of the whole character; 0: none begins so
  unsigned char least, most;  // the second byte's range
};

Lead lead_of(unsigned char c) noexcept {
  if (c < 0x80) return {1, 0, 0};
  if (c >= 0xC2 && c <= 0xDF) return {2, 0x80, 0xBF};
  if (c == 0xE0) return {3, 0xA0, 0xBF};
  if (c == 0xED) return {3, 0x80, 0x9F};
  if (c >= 0xE1 && c <= 0xEF) return {3, 0x80, 0xBF};
  if (c == 0xF0) return {4, 0x90, 0xBF};
  if (c >= 0xF1 && c <= 0xF3) return {4, 0x80, 0xBF};
  if (c == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// The bytes behind the first that fit, up to `lead.bytes - 1`.
std::size_t followers(std::string_view text, std::size_t at, const Lead& lead) noexcept {
  std::size_t n = 0;
  while (n + 1 < lead.bytes && at + n + 1 < text.size()) {
    const auto c = static_cast<unsigned char>(text[at + n + 1]);
    if (c < (n == 0 ? lead.least : 0x80) || c > (n == 0 ? lead.most : 0xBF)) break;
    ++n;
  }
  return n;
}

}  // namespace

CodePoint decode_utf8(std::string_view text, std::size_t at) noexcept {
  const auto first = static_cast<unsigned char>(text[at]);
  const Lead lead = lead_of(first);
  if (lead.bytes == 0 || followers(text, at, lead) + 1 < lead.bytes) return {};
  char32_t value = lead.bytes == 1 ? first : first & (0x7FU >> lead.bytes);
  for (std::size_t i = 1; i < lead.bytes; ++i) value = (value << 6) | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
  return {value, lead.bytes};
}

void append_utf8(std::string& to, char32_t value) {
  const auto put = [&](char32_t byte) { to.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | (value >> 6));
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | (value >> 12));
    put(0x80 | ((value >> 6) & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | (value >> 18));
    put(0x80 | ((value >> 12) & 0x3F));
    put(0x80 | ((value >> 6) & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

std::size_t valid_utf8(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t eight = 0;  // ASCII is passed over eight at a time
    if (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080U) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const std::size_t bytes = decode_utf8(text, at).bytes;
    if (bytes == 0) break;
    at += bytes;
  }
  return at;
}

std::size_t unfinished_utf8(std::string_view text) noexcept {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const std::size_t at = text.size() - back;
    const Lead lead = lead_of(static_cast<unsigned char>(text[at]));
    if (lead.bytes > 1) return lead.bytes > back && followers(text, at, lead) + 1 == back ? back : 0;
    if (lead.bytes == 1) return 0;
  }
  return 0;
}

std::size_t count_chars(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !continues_char(c); }));
}

std::size_t end_of_chars(std::string_view text, std::size_t most) noexcept {
  if (most >= text.size()) return text.size();
  while (most > 0 && continues_char(text[most])) --most;
  return most;
}

std::size_t broken_utf8(std::string_view text) noexcept {
  return std::max<std::size_t>(1, followers(text, 0, lead_of(static_cast<unsigned char>(text[0]))) + 1);
}

std::string repair_utf8(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t valid = valid_utf8(text);
    out += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) return out;
    out += kReplacementCharacter;
    text.remove_prefix(broken_utf8(text));
  }
}

}  // namespace sdx
