#pragma once
// A template's text as tokens, with Jinja's rules for white space (trim_blocks, lstrip_blocks).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/value.h"

namespace sdx::text::jinja {

enum class Token : std::uint8_t {
  data,
  block_begin,
  block_end,
  variable_begin,
  variable_end,
  name,
  string,
  integer,
  real,
  op,
  end
};

struct Lexeme {
  Token type = Token::end;
  std::string text;  // of data, names, strings and operators
  Int integer = 0;
  double real = 0;
  std::uint32_t line = 1;
  std::uint32_t at = 0;  // byte in the source

  bool is(std::string_view op) const { return type == Token::op && text == op; }
  bool is_name(std::string_view name) const { return type == Token::name && text == name; }
};

// Returns `source` with
//  as line ends and without the last one.
std::string normalize_lines(std::string_view source);
std::vector<Lexeme> tokenize(std::string_view source);
[[noreturn]] void syntax_error(std::uint32_t line, const std::string& message);

}  // namespace sdx::text::jinja
