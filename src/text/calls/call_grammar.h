#pragma once
// Calls, and answers around them, as a format writes them: the grammar of what the parser reads.

#include <nlohmann/json.hpp>
#include <sdx/tool_calls.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/calls/parser.h"
#include "text/grammar/expressions.h"
#include "text/grammar/readers.h"

namespace sdx::text {

class CallGrammar {
 public:
  using Json = nlohmann::ordered_json;
  using Expression = grammar::Expression;

  // `strict`: the tools whose parameters must be enforced; nothing: all. Those of others may be left out.
  CallGrammar(const AnswerFormat& format, const OfferedTools& tools, const std::vector<std::string>* strict,
              grammar::Expressions& to)
      : format_(format), tools_(tools), strict_(strict), to_(to), parts_(to) {}

  // `follows`: the prompt already ends with the mark of the first call. Throws Error(invalid_argument) for parameters that cannot
  // be enforced.
  Expression calls(const std::vector<std::size_t>& which, bool parallel, bool follows);
  // The rest of the reasoning that the prompt began, with what is between it and the answer.
  Expression end_of_reasoning();
  // Reasoning, or nothing.
  Expression reasoning();
  // Text for the user, as the format writes it in front of the end of an answer. `content`: what it may be.
  Expression final_text(Expression content);
  // Text in which the parser finds no call, as final_text() writes it; `calls` may follow it.
  Expression text_and_calls(Expression calls);

 private:
  // A call in tags: around its name, around a key, behind a value, and at the end. A key that stands for a text may have other
  // marks behind it.
  struct Tags {
    std::string_view before_name, behind_name, before_key, behind_key, behind_value, end, behind_text_key = {};
  };

  Expression text(std::string_view utf8) { return to_.text(utf8); }
  Expression none_of(char32_t c);
  bool must_hold(std::size_t i) const;
  const char* between() const;
  Expression around(Expression calls);
  Expression arguments(std::size_t i);
  Expression object(std::size_t i, std::string_view key);
  Expression named(std::string_view head, std::size_t i, std::string_view then, std::string_view end);
  Expression call(std::size_t i, bool follows);
  Expression call_of_kind(std::size_t i, bool follows);
  Expression plain_text(const Json& schema, char mark);
  const Json& resolved(const Json& schema, const Json& root) const;
  Expression tagged_value(const Json& value, const Json& root, char mark);
  void note_conditions(const Json& schema);
  template <typename One>
  void each_property(std::size_t i, const One& one);
  Expression any_tagged(std::size_t i, const Tags& tags);
  Expression tagged(std::size_t i, const Tags& tags);
  Expression joined(std::vector<Expression> needed, const std::vector<Expression>& others, std::string_view comma);
  Expression loose(std::size_t i);
  Expression pythonic(std::size_t i);
  Expression thought();

  AnswerFormat format_;
  const OfferedTools& tools_;
  const std::vector<std::string>* strict_;
  grammar::Expressions& to_;
  grammar::JsonParts parts_;
  bool any_ = false;  // parameters may be anything
};

}  // namespace sdx::text
