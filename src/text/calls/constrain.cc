#include "text/calls/constrain.h"

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "text/calls/call_grammar.h"
#include "text/calls/parser.h"
#include "text/grammar/expressions.h"
#include "text/grammar/readers.h"

namespace sdx::text {
namespace {

using grammar::Expression;
using grammar::Expressions;
using Calls = AnswerConstraint::Calls;
using Format = ToolCallFormat;

std::vector<std::size_t> chosen(const OfferedTools& tools, const ToolChoice& choice) {
  if (tools.names.empty()) fail(ErrorCode::invalid_argument, "a call needs tools: there are none");
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < tools.names.size(); ++i) {
    if (choice.name.empty() || tools.names[i] == choice.name) which.push_back(i);
  }
  if (which.empty()) {
    fail(ErrorCode::invalid_argument, "'{}' is not one of the tools: {}", choice.name, join(tools.names));
  }
  return which;
}

// What may come in front of calls and texts.
Expression reasoning_before(const AnswerConstraint& of, std::string_view prompt, CallGrammar& writer) {
  const AnswerFormat& format = of.format;
  const Expression nothing = grammar::Expressions().empty();
  if (format.calls == Format::harmony) return writer.reasoning();
  if (format.reasoning_begin.empty() || format.reasoning_end.empty()) return nothing;
  if (prompt.ends_with(format.reasoning_begin)) return writer.end_of_reasoning();
  return of.may_reason && !prompt.ends_with(format.reasoning_end) ? writer.reasoning() : nothing;
}

Expression answer_body(const AnswerConstraint& of, const OfferedTools& tools, std::string_view prompt, CallGrammar& writer,
                       Expressions& to) {
  Expression calls = to.never();
  if (of.calls != Calls::none) {
    if (of.format.calls == Format::none) fail(ErrorCode::invalid_argument, "the model's format has no calls");
    const bool follows = of.format.calls == Format::functionary && prompt.ends_with(">>>");
    calls = writer.calls(chosen(tools, of.choice), of.choice.parallel, follows);
  }
  const Expression before = reasoning_before(of, prompt, writer);
  if (of.calls == Calls::required) return to.sequence({before, calls});
  if (!of.output) return to.sequence({before, writer.text_and_calls(calls)});
  const Expression content = writer.final_text(read_output(*of.output, of.text, to));
  return to.sequence({before, to.choice({content, calls})});
}

}  // namespace

grammar::Grammar grammar_of_answer(const AnswerConstraint& of) {
  const OfferedTools offered = read_tools(of.tools);
  std::string_view prompt = of.prompt;
  while (!prompt.empty() && is_blank(prompt.back())) prompt.remove_suffix(1);
  Expressions expressions;
  CallGrammar writer(of.format, offered, of.all_strict ? nullptr : &of.strict, expressions);
  Expression body = 0;
  try {
    body = answer_body(of, offered, prompt, writer, expressions);
  } catch (const nlohmann::json::exception& e) {
    fail(ErrorCode::invalid_argument, "the answer's form has a value of an unexpected type: {}", e.what());
  }
  return grammar::Grammar::from_expressions(expressions, body);
}

grammar::Grammar grammar_of_calls(const AnswerFormat& format, std::string_view tools, const ToolChoice& choice,
                                  std::string_view prompt) {
  AnswerConstraint all;
  all.format = format;
  all.tools = tools;
  all.choice = choice;
  all.calls = Calls::required;
  all.prompt = prompt;
  return grammar_of_answer(all);
}

}  // namespace sdx::text
