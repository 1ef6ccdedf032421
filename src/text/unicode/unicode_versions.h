#pragma once
// Characters about which the library `tokenizers` and utf8proc disagree.

namespace sdx::text {

enum class UnicodeTable {
  other,
  punctuation,
  nonspacing,
  mark,
  word,
  letter,
  numeric,          // Rust's own
  number_of_regex,  // those of regular expressions
  mark_of_regex,
  sign_of_regex,  // punctuation or symbol
  undecomposed,   // compatibility forms leave them alone
};
bool differs(UnicodeTable table, char32_t c) noexcept;

}  // namespace sdx::text
