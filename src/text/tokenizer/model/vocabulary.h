#pragma once
// Tokens and their numbers, both ways.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sdx::text {

class Vocabulary {
 public:
  void reserve(std::size_t tokens, std::size_t bytes);
  // A token that already exists gets the new number.
  void add(std::string_view token, std::uint32_t id);
  // After the last token, before anything is looked up by number.
  void finish();

  std::optional<std::uint32_t> id(std::string_view token) const noexcept;
  bool contains(std::string_view token) const noexcept { return id(token).has_value(); }
  std::optional<std::string_view> token(std::uint32_t id) const noexcept;
  // Different tokens.
  std::size_t size() const noexcept { return entries_.size(); }
  std::uint32_t largest_id() const noexcept { return largest_; }
  // Visits tokens in the order in which they were added.
  template <class F>
  void for_each(const F& f) const {
    for (const Entry& e : entries_) f(text(e), e.id);
  }

 private:
  struct Entry {
    std::uint32_t begin, size, id, hash;
  };
  std::string_view text(const Entry& e) const noexcept { return {text_.data() + e.begin, e.size}; }
  void grow(std::size_t slots);
  std::size_t slot_of(std::string_view token, std::uint32_t hash) const noexcept;

  std::string text_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // 1 + place in entries_; a power of two of them, at most half full
  struct Text {
    std::uint32_t begin = 0, size = kNoText;
  };
  static constexpr std::uint32_t kNoText = 0xFFFFFFFF;
  std::vector<Text> by_id_;                                  // where numbers have few gaps
  std::unordered_map<std::uint32_t, std::uint32_t> sparse_;  // else
  std::uint32_t largest_ = 0;
};

}  // namespace sdx::text
