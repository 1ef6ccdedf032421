#pragma once
// Parsers from notations to expressions.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <sdx/text.hpp>
#include <string>
#include <string_view>

#include "text/grammar/expressions.h"

namespace sdx::text::grammar {

// The rule `root` of a grammar in GBNF.
Rule read_gbnf(std::string_view text, Expressions& to);

// The form of a regular expression's characters: as they are, or within a JSON string.
enum class Writing : std::uint8_t { plain, json_string };
// `search`: a match anywhere suffices, as for JSON Schema's `pattern` (unless ^ and $ fix its place).
Expression read_regex(std::string_view pattern, Expressions& to, Writing writing, bool search);

// JSON in its order, of at most 200 levels and 2000 names in an object. `what` it is called in Error(invalid_argument). Throws
// nlohmann::json::parse_error.
nlohmann::ordered_json parse_ordered(std::string_view text, const char* what);

Rule read_json_schema(const nlohmann::ordered_json& schema, Expressions& to);

// Any of these, checked for size and UTF-8. Throws Error(invalid_argument) that says what is wrong, and where.
Expression read_output(OutputFormat format, std::string_view text, Expressions& to);

// ---- JSON's own parts (json_parts.cc)
class JsonParts {
 public:
  explicit JsonParts(Expressions& to) : to_(to) {}
  Expression space();      // nothing, a blank, or a line end and up to 20 blanks
  Expression character();  // one of a string, escaped or not
  Expression string();
  Expression number();
  Expression integer();
  Expression value();  // anything
  Expression object();
  Expression array();
  Expression members(Expression member);                                          // {…}: any number of them
  Expression elements(Expression item, std::uint32_t least, std::uint32_t most);  // […]
  Expression literal(const nlohmann::ordered_json& value);                        // exactly this, with white space as space()
  Expression quoted(std::string_view text);
  // A string that is none of these, written without escapes.
  Expression other_string(const std::vector<std::string>& names);

 private:
  Expression fraction();

  Expressions& to_;
  Expression space_ = 0, character_ = 0, string_ = 0, number_ = 0, integer_ = 0, value_ = 0, object_ = 0, array_ = 0;
};

Expression digits(Expressions& to, char first = '0', char last = '9');

}  // namespace sdx::text::grammar
