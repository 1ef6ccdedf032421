#pragma once
// Text on its way from the input to the model, with the place in the input that each of its bytes stands for.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode/unicode.h"

namespace sdx::text {

// Bytes [begin, end).
struct Span {
  std::uint32_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
  std::uint32_t size() const noexcept { return end - begin; }
};

// A piece of text that a pattern matched, or a piece between two matches.
struct Match {
  std::uint32_t begin, end;
  bool matched;
};

// No step makes it much longer than it was: beyond that they throw Error(out_of_memory).
class AlignedText {
 public:
  AlignedText() = default;
  // The part of an input that begins at its byte `shift`, unchanged.
  AlignedText(std::string_view text, std::uint32_t shift)
      : text_(text), shift_(shift), most_(std::min(text.size() * kMostGrowth + kMostAdded, kMost)) {}
  // An empty text that replaces `from`.
  static AlignedText instead_of(const AlignedText& from);

  const std::string& text() const noexcept { return text_; }
  std::string_view view(Span range) const noexcept { return std::string_view(text_).substr(range.begin, range.size()); }
  // The input's bytes that a range of the text stands for. The range may end within a character; it must not be empty.
  Span origin(Span range) const noexcept;

  // Replaces every character, from the beginning; `removed` characters are dropped before the first. Together, the changes must
  // account for all characters.
  void transform(std::span<const Change> chars, std::size_t removed = 0);
  // Characters of the same length in place of others: spans stay as they are.
  template <class F>
  void map_ascii(const F& f) {
    for (char& c : text_) {
      if (static_cast<unsigned char>(c) < 0x80) c = f(c);
    }
  }
  // Replaces every match by `content`. Matches are in order and cover the text.
  void replace(std::span<const Match> matches, std::string_view content);
  // Before the first character, whose span it shares. Does nothing where there is none.
  void prepend(std::string_view s);
  // Without `left` bytes at the beginning and `right` at the end.
  void trim(std::size_t left, std::size_t right);

  // Adds a part of another text, or all of it.
  void append(const AlignedText& other, Span range);
  void append(const AlignedText& other) { append(other, {0, static_cast<std::uint32_t>(other.text_.size())}); }
  // Adds text whose bytes all stand for the same place.
  void append(std::string_view text, Span origin);
  void reserve(std::size_t bytes);
  // Throws Error(out_of_memory) where that is longer than it may become.
  void check_size(std::size_t bytes) const;

 private:
  // Compatibility forms make 11 bytes of one, characters for bytes 2: a file that asks for far more means no good.
  static constexpr std::size_t kMostGrowth = 64, kMostAdded = 4096, kMost = 0xFFFFFFFF;

  void materialize();

  std::string text_;
  std::vector<Span> spans_;  // empty: the text is the input's, from byte `shift_` on
  std::uint32_t shift_ = 0;
  std::size_t most_ = kMost;  // bytes
};

}  // namespace sdx::text
