#pragma once
// A search pattern: a string, a regular expression in Oniguruma's dialect, or one so common that it has code of its own.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/aligned.h"

namespace sdx::text {

class Regex;

// The end of the match that begins at `at`; `at` itself: there is none.
using Scanner = std::size_t (*)(std::string_view text, std::size_t at);

class Pattern {
 public:
  static Pattern literal(std::string text);
  // Throws Error(invalid_model) with Oniguruma's reason.
  static Pattern regex(const std::string& expression);
  // Like regex(), but always by Oniguruma.
  static Pattern slow_regex(const std::string& expression);
  static Pattern scanner(Scanner scan);

  // All matches, in order, and the parts between them: together the whole text. A match may be empty. Thread-safe. Throws
  // Error(runtime_failure) if the expression takes too much time or memory.
  void find(std::string_view text, std::vector<Match>& to) const;

 private:
  void find_literal(std::string_view text, std::vector<Match>& to) const;
  std::string literal_;
  std::shared_ptr<const Regex> regex_;
  Scanner scan_ = nullptr;
};

}  // namespace sdx::text
