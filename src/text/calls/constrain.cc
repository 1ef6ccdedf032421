#include "text/calls/constrain.h"

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text/json_text.h"
#include "text/calls/parser.h"
#include "text/grammar/expressions.h"
#include "text/grammar/readers.h"

namespace sdx::text {
namespace {

using grammar::Characters;
using grammar::Expression;
using grammar::Expressions;
using grammar::JsonParts;
using Format = ToolCallFormat;
using Json = nlohmann::ordered_json;

// Calls as a format writes them.
class CallGrammar {
 public:
  CallGrammar(const AnswerFormat& format, const OfferedTools& tools, Expressions& to)
      : format_(format), tools_(tools), to_(to), parts_(to) {}

  // `follows`: the prompt already ends with the mark of the first call.
  Expression calls(const std::vector<std::size_t>& which, bool parallel, bool follows) {
    std::vector<Expression> each, others;
    for (const std::size_t i : which) {
      const std::size_t notes = to_.notes().size();
      try {
        each.push_back(call(i, follows));
        others.push_back(follows ? call(i, false) : each.back());
      } catch (Error& e) {
        e.add_context("in the parameters of the tool '" + tools_.names[i] + "'");
        throw;
      }
      to_.name_notes(notes, "tools[" + tools_.names[i] + "]");
    }
    const Expression first = to_.choice(each);
    if (!parallel || format_.calls == Format::harmony) return around(first);
    const Expression more = to_.as_rule("call", to_.sequence({text(between()), to_.choice(others)}));
    return around(to_.sequence({first, to_.repeat(more, 0, static_cast<std::uint32_t>(kMostCalls) - 1)}));
  }

  // The reasoning before an answer: text up to its mark, which a model does not write otherwise.
  Expression reasoning() {
    const std::string& end = format_.reasoning_end;
    const auto first = static_cast<unsigned char>(end[0]);
    return to_.sequence({to_.repeat(none_of(first), 0), text(end), text("\n\n")});
  }

 private:
  Expression text(std::string_view utf8) { return to_.text(utf8); }
  Expression none_of(char32_t c) { return to_.characters(grammar::complement(Characters{{c, c}})); }

  const char* between() const {
    switch (format_.calls) {
      case Format::llama: return "; ";
      case Format::mistral:
      case Format::json_list: return ", ";
      case Format::mistral_args:
      case Format::deepseek:
      case Format::gemma4:
      case Format::kimi: return "";
      default: return "\n";
    }
  }

  Expression around(Expression calls) {
    const auto within = [&](std::string_view begin, std::string_view end) {
      return to_.sequence({text(begin), calls, text(end)});
    };
    switch (format_.calls) {
      case Format::mistral: return within("[TOOL_CALLS][", "]");
      case Format::json_list: return within(format_.list_begin + "[", "]" + format_.list_end);
      case Format::deepseek: return within("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>");
      case Format::kimi: return within("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>");
      default: return calls;
    }
  }

  Expression arguments(std::size_t i) {
    Json schema = tools_.parameters[i];
    if (schema.empty()) return parts_.object();
    if (!schema.contains("type") && !schema.contains("$ref") && !schema.contains("anyOf")) schema["type"] = "object";
    return to_.use(grammar::read_json_schema(schema, to_));
  }

  Expression object(std::size_t i, std::string_view key) {
    const std::string head = "{\"name\": " + json_string(tools_.names[i]) + ", \"" + std::string(key) + "\": ";
    return to_.sequence({text(head), arguments(i), text("}")});
  }

  Expression named(std::string_view head, std::size_t i, std::string_view then, std::string_view end) {
    return to_.sequence({text(std::string(head) + tools_.names[i] + std::string(then)), arguments(i), text(end)});
  }

  Expression call(std::size_t i, bool follows) {
    switch (format_.calls) {
      case Format::qwen_xml:
        return tagged(i,
                      {"<tool_call>\n<function=", ">\n", "<parameter=", ">\n", "\n</parameter>\n", "</function>\n</tool_call>"});
      case Format::glm:
        return tagged(i, {"<tool_call>", "\n", "<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n", "</tool_call>"});
      case Format::gemma4: return loose(i);
      case Format::llama: return object(i, "parameters");
      case Format::mistral:
      case Format::json_list: return object(i, "arguments");
      case Format::mistral_args: return named("[TOOL_CALLS]", i, "[ARGS]", "");
      case Format::gemma: return to_.sequence({text("```tool_code\n"), object(i, "parameters"), text("\n```")});
      case Format::functionary: return named(follows ? "" : ">>>", i, "\n", "");
      case Format::deepseek: return named("<｜tool▁call▁begin｜>", i, "<｜tool▁sep｜>", "<｜tool▁call▁end｜>");
      case Format::kimi: {
        const Expression number = to_.repeat(grammar::digits(to_), 1, 3);
        return to_.sequence({text("<|tool_call_begin|>functions." + tools_.names[i] + ":"), number,
                             text("<|tool_call_argument_begin|>"), arguments(i), text("<|tool_call_end|>")});
      }
      case Format::harmony: {
        const Expression thought = to_.sequence(
            {text("<|channel|>analysis<|message|>"), to_.repeat(none_of('<'), 0), text("<|end|><|start|>assistant")});
        return to_.sequence(
            {to_.optional(thought), named("<|channel|>commentary to=functions.", i, " <|constrain|>json<|message|>", "")});
      }
      default: return to_.sequence({text("<tool_call>\n"), object(i, "arguments"), text("\n</tool_call>")});
    }
  }

  // A call in tags: around its name, around a key, behind a value, and at the end.
  struct Tags {
    std::string_view before_name, behind_name, before_key, behind_key, behind_value, end;
  };

  // Texts are written as they are, and end where "<" and `mark` begin; where their length counts, they have no "<".
  Expression plain_text(const Json& schema, char mark) {
    const auto bound = [&](const char* key, std::uint32_t none) {
      if (!schema.contains(key)) return none;
      const auto value = schema[key].get<std::int64_t>();
      if (value < 0 || value > 100'000) fail(ErrorCode::invalid_argument, "{} must be from 0 to 100000, received {}", key, value);
      return static_cast<std::uint32_t>(value);
    };
    const std::uint32_t least = bound("minLength", 0), most = bound("maxLength", grammar::unlimited);
    if (least > most) fail(ErrorCode::invalid_argument, "minLength {} is greater than maxLength {}", least, most);
    if (least != 0 || most != grammar::unlimited) return to_.repeat(none_of('<'), least, most);
    const Expression angle = to_.sequence({text("<"), none_of(static_cast<unsigned char>(mark))});
    return to_.repeat(to_.choice({none_of('<'), angle}), 0);
  }

  Expression tagged_value(const Json& schema, char mark) {
    if (!wants_text(&schema)) return to_.use(grammar::read_json_schema(schema, to_));
    for (const char* key : {"pattern", "format"}) {
      if (schema.contains(key)) to_.note("#/" + std::string(key));
    }
    note_conditions(schema);
    for (const char* key : {"const", "anyOf", "oneOf", "allOf", "$ref"}) {
      if (schema.contains(key)) fail(ErrorCode::invalid_argument, "the keyword '{}' cannot be enforced for texts in tags", key);
    }
    if (!schema.contains("enum") || !schema["enum"].is_array()) return plain_text(schema, mark);
    std::vector<Expression> words;
    for (const Json& word : schema["enum"]) {
      if (word.is_string()) words.push_back(text(word.get<std::string>()));
    }
    return to_.choice(std::move(words));
  }

  // Conditions on a value that is not written as JSON, which no grammar of tags keeps.
  void note_conditions(const Json& schema) {
    for (const char* key : {"not", "if", "dependentRequired", "dependentSchemas", "dependencies", "propertyNames"}) {
      if (schema.contains(key)) to_.note("#/" + std::string(key));
    }
  }

  // The properties of a call that is not JSON, each in the form that `one` returns, and whether it may be left out.
  template <typename One>
  void each_property(std::size_t i, const One& one) {
    const Json& schema = tools_.parameters[i];
    for (const char* key : {"anyOf", "oneOf", "allOf", "$ref", "minProperties"}) {
      if (schema.contains(key)) fail(ErrorCode::invalid_argument, "the keyword '{}' cannot be enforced for values in tags", key);
    }
    note_conditions(schema);
    const Json none = Json::object();
    const Json& properties = schema.contains("properties") && schema["properties"].is_object() ? schema["properties"] : none;
    if (schema.contains("required") && schema["required"].is_array()) {
      for (const Json& name : schema["required"]) {
        const bool known = name.is_string() && properties.contains(name.get<std::string>());
        if (!known) fail(ErrorCode::invalid_argument, "{} is required, but is not one of the properties", name.dump());
      }
    }
    for (const auto& [key, value] : properties.items()) {
      if (!good_name(key)) fail(ErrorCode::invalid_argument, "the parameter '{}' cannot be written in a tag", key.substr(0, 80));
      bool required = false;
      if (schema.contains("required") && schema["required"].is_array()) {
        for (const Json& name : schema["required"]) required = required || name == key;
      }
      one(key, value, required);
    }
  }

  Expression tagged(std::size_t i, const Tags& tags) {
    const auto joined = [&](std::string_view a, std::string_view b, std::string_view c) {
      return text(std::string(a) + std::string(b) + std::string(c));
    };
    std::vector<Expression> all{joined(tags.before_name, tools_.names[i], tags.behind_name)};
    each_property(i, [&](const std::string& key, const Json& value, bool required) {
      const Expression one =
          to_.sequence({joined(tags.before_key, key, tags.behind_key), tagged_value(value, '/'), text(tags.behind_value)});
      all.push_back(required ? one : to_.optional(one));
    });
    all.push_back(text(tags.end));
    return to_.sequence(std::move(all));
  }

  // Arguments of Gemma 4: texts between marks, all else as JSON; required properties come first.
  Expression loose(std::size_t i) {
    std::vector<Expression> needed, others;
    each_property(i, [&](const std::string& key, const Json& value, bool required) {
      const Expression inner = tagged_value(value, '|');
      const Expression written = wants_text(&value) ? to_.sequence({text("<|\"|>"), inner, text("<|\"|>")}) : inner;
      (required ? needed : others).push_back(to_.sequence({text(key + ":"), written}));
    });
    std::vector<Expression> all{text("<|tool_call>call:" + tools_.names[i] + "{")};
    for (std::size_t k = 0; k < needed.size(); ++k) {
      all.push_back(k == 0 ? needed[k] : to_.sequence({text(","), needed[k]}));
    }
    // Each of the others behind those before it, and any of them as the first.
    Expression behind = text("");
    std::vector<Expression> firsts{behind};
    for (std::size_t k = others.size(); k-- > 0;) {
      firsts.push_back(to_.sequence({others[k], behind}));
      behind = to_.sequence({to_.optional(to_.sequence({text(","), others[k]})), behind});
    }
    all.push_back(needed.empty() ? to_.choice(std::move(firsts)) : behind);
    all.push_back(text("}<tool_call|>"));
    return to_.sequence(std::move(all));
  }

  AnswerFormat format_;
  const OfferedTools& tools_;
  Expressions& to_;
  JsonParts parts_;
};

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

}  // namespace

grammar::Grammar grammar_of_calls(const AnswerFormat& format, std::string_view tools, const ToolChoice& choice,
                                  std::string_view prompt) {
  if (format.calls == Format::none) fail(ErrorCode::invalid_argument, "the model's format has no calls");
  const OfferedTools offered = read_tools(tools);
  const std::vector<std::size_t> which = chosen(offered, choice);
  while (!prompt.empty() && is_blank(prompt.back())) prompt.remove_suffix(1);
  const bool thinks =
      !format.reasoning_begin.empty() && !format.reasoning_end.empty() && prompt.ends_with(format.reasoning_begin);
  const bool follows = format.calls == Format::functionary && prompt.ends_with(">>>");
  Expressions expressions;
  CallGrammar writer(format, offered, expressions);
  Expression body = 0;
  try {
    body = writer.calls(which, choice.parallel, follows);
  } catch (const nlohmann::json::exception& e) {
    fail(ErrorCode::invalid_argument, "a tool's parameters have a value of an unexpected type: {}", e.what());
  }
  if (thinks) body = expressions.sequence({writer.reasoning(), body});
  return grammar::Grammar::from_expressions(expressions, body);
}

}  // namespace sdx::text
