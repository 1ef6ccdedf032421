#include "text/tokenizer/charsmap.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/utf8.h"

namespace sdx::text {
namespace {

// A unit of Darts: label in the low byte and the top bit, offset from bit 10 on, one bit for a leaf.
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FFU; }
std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200U) >> 6); }
bool has_leaf(std::uint32_t unit) { return (unit >> 8) & 1; }

constexpr std::size_t kMostBytes = std::size_t{1} << 24;  // the tables in use have 0.3 MB
constexpr std::size_t kLongestKey = 256;                  // bytes; a broken table may go round in circles

std::uint32_t read_u32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes) {
  if (bytes.empty()) return;
  if (bytes.size() > kMostBytes)
    fail(ErrorCode::invalid_model, "precompiled_charsmap has {} bytes; expected at most {}", bytes.size(), kMostBytes);
  const std::size_t size = bytes.size() < 4 ? 0 : read_u32(bytes, 0);
  if (size < 4 || size % 4 != 0 || size > bytes.size() - 4) {
    fail(ErrorCode::invalid_model, "precompiled_charsmap is not a table: its trie has {} bytes, of {} in all", size,
         bytes.size());
  }
  for (std::size_t at = 4; at < 4 + size; at += 4) units_.push_back(read_u32(bytes, at));
  replacements_ = bytes.substr(4 + size);
  if (!is_utf8(replacements_)) fail(ErrorCode::invalid_model, "precompiled_charsmap has text that is not UTF-8");
}

std::optional<Charsmap::Found> Charsmap::find(std::string_view text, bool longest) const noexcept {
  std::optional<Found> found;
  if (units_.empty()) return found;
  std::uint32_t at = offset_of(units_[0]);
  for (std::size_t i = 0; i < std::min(text.size(), kLongestKey) && text[i] != '\0'; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size() || label_of(units_[at]) != byte) break;
    const std::uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (at >= units_.size()) break;
    const std::uint32_t begin = units_[at] & 0x7FFFFFFFU;
    if (begin > replacements_.size()) break;
    const std::string_view rest = std::string_view(replacements_).substr(begin);
    // A place within a character can only come from a broken table.
    if (!rest.empty() && continues_char(rest[0])) break;
    found = Found{i + 1, rest.substr(0, rest.find('\0'))};
    if (!longest) break;
  }
  return found;
}

}  // namespace sdx::text
