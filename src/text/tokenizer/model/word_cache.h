#pragma once
// Words that a model has cut before, with their tokens.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::text {

struct Token {
  std::uint32_t id;
  std::uint32_t begin, end;  // bytes of the piece
  bool from_text;            // it reads as the piece does there, not as the vocabulary has it
};

// Caches words of one model, for one thread. At most a few megabytes: when it is full, it is emptied.
class WordCache {
 public:
  static constexpr std::size_t kLongest = 128;  // bytes; longer words seldom come again

  static std::uint64_t hash(std::string_view word) noexcept;
  // Null: unknown. Holds until the next put().
  const std::span<const Token>* find(std::string_view word, std::uint64_t hash) noexcept;
  void put(std::string_view word, std::uint64_t hash, std::span<const Token> tokens);

 private:
  struct Entry {
    std::uint64_t hash;
    std::uint32_t word, tokens;
    std::uint16_t word_size, token_count;
  };
  static constexpr std::size_t kSlots = 1U << 15, kEntries = kSlots / 2, kTokens = 1U << 18;

  std::vector<std::uint16_t> slots_;
  std::vector<Entry> entries_;
  std::string words_;
  std::vector<Token> tokens_;
  std::span<const Token> found_;
};

}  // namespace sdx::text
