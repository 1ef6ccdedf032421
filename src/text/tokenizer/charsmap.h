#pragma once
// SentencePiece's table of replacements (`precompiled_charsmap`): a double array of Darts, then the replacements, each ended by a
// zero byte.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::text {

class Charsmap {
 public:
  Charsmap() = default;
  // Throws Error(invalid_model) where the bytes are no such table.
  explicit Charsmap(std::string_view bytes);

  bool empty() const noexcept { return units_.empty(); }
  // A replacement for a beginning of the text, and the length of that beginning: the shortest or the longest in the table.
  struct Found {
    std::size_t bytes;
    std::string_view replacement;
  };
  std::optional<Found> shortest(std::string_view text) const noexcept { return find(text, false); }
  std::optional<Found> longest(std::string_view text) const noexcept { return find(text, true); }

 private:
  std::optional<Found> find(std::string_view text, bool longest) const noexcept;
  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace sdx::text
