#pragma once
// Characters about which the library `tokenizers` and utf8proc 2.8 disagree, and those that only newer versions of utf8proc know.

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
// Whether Unicode 15.0 had no such character, whatever the version of utf8proc in use knows.
bool is_younger(char32_t c) noexcept;
bool differs(UnicodeTable table, char32_t c) noexcept;

}  // namespace sdx::text
