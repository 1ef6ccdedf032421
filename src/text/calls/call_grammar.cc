#include "text/calls/call_grammar.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/json_text.h"
#include "text/grammar/free_text.h"

namespace sdx::text {

using grammar::Characters;
using grammar::Expression;
using Format = ToolCallFormat;
using Json = CallGrammar::Json;

namespace {

constexpr std::string_view kThought = "<|channel|>analysis<|message|>", kAssistant = "<|end|><|start|>assistant";
constexpr int kMostReferences = 32;

// The texts of a value that is not written as JSON, whatever else it may be.
bool may_be_text(const Json& schema) {
  if (!schema.is_object() || !schema.contains("type")) return false;
  const Json& type = schema["type"];
  return type == "string" || (type.is_array() && std::find(type.begin(), type.end(), Json("string")) != type.end());
}

}  // namespace

Expression CallGrammar::none_of(char32_t c) { return to_.characters(grammar::complement(Characters{{c, c}})); }

bool CallGrammar::must_hold(std::size_t i) const {
  return strict_ == nullptr || std::find(strict_->begin(), strict_->end(), tools_.names[i]) != strict_->end();
}

Expression CallGrammar::calls(const std::vector<std::size_t>& which, bool parallel, bool follows) {
  std::vector<Expression> each, others;
  for (const std::size_t i : which) {
    const std::size_t notes = to_.notes().size();
    each.push_back(call(i, follows));
    others.push_back(follows ? call(i, false) : each.back());
    to_.name_notes(notes, "tools[" + tools_.names[i] + "]");
  }
  const Expression first = to_.choice(each);
  if (!parallel || format_.calls == Format::harmony) return around(first);
  const Expression more = to_.as_rule("call", to_.sequence({text(between()), to_.choice(others)}));
  return around(to_.sequence({first, to_.repeat(more, 0, static_cast<std::uint32_t>(kMostCalls) - 1)}));
}

Expression CallGrammar::end_of_reasoning() {
  return to_.sequence({grammar::up_to_mark(format_.reasoning_end, to_), to_.repeat(text("\n"), 0, 2)});
}

Expression CallGrammar::reasoning() {
  if (format_.calls == Format::harmony) return to_.optional(thought());
  if (format_.reasoning_begin.empty() || format_.reasoning_end.empty()) return to_.empty();
  return to_.optional(to_.sequence({text(format_.reasoning_begin), end_of_reasoning()}));
}

Expression CallGrammar::thought() {
  return to_.sequence({text(kThought), grammar::up_to_mark("<|end|>", to_), text("<|start|>assistant")});
}

Expression CallGrammar::final_text(Expression content) {
  if (format_.calls != Format::harmony) return content;
  return to_.sequence({text("<|channel|>final"), to_.optional(text(" <|constrain|>json")), text("<|message|>"), content});
}

Expression CallGrammar::text_and_calls(Expression calls) {
  if (format_.calls == Format::harmony) {
    const Expression free =
        grammar::without_marks({"<|channel|>", "<|start|>", "<|end|>", "<|call|>"}, grammar::Beginning::any, to_);
    const Expression said = to_.sequence({text("<|channel|>commentary<|message|>"), free, text(kAssistant)});
    return to_.sequence({to_.optional(said), to_.choice({calls, final_text(free)})});
  }
  const auto beginning = format_.calls == Format::pythonic || format_.calls == Format::detect ? grammar::Beginning::no_list
                         : reads_bare_calls(format_.calls)                                    ? grammar::Beginning::no_object
                                                                                              : grammar::Beginning::any;
  const Expression free = grammar::without_marks(call_marks(format_.calls), beginning, to_);
  // Calls without a mark are calls at the beginning only.
  if (format_.calls == Format::llama || format_.calls == Format::pythonic) return to_.choice({free, calls});
  return to_.sequence({free, to_.optional(calls)});
}

const char* CallGrammar::between() const {
  switch (format_.calls) {
    case Format::llama: return "; ";
    case Format::mistral:
    case Format::json_list:
    case Format::nemotron:
    case Format::lfm:
    case Format::pythonic: return ", ";
    case Format::command: return ",\n    ";
    case Format::mistral_args:
    case Format::deepseek:
    case Format::gemma4:
    case Format::kimi: return "";
    default: return "\n";
  }
}

Expression CallGrammar::around(Expression calls) {
  const auto within = [&](std::string_view begin, std::string_view end) { return to_.sequence({text(begin), calls, text(end)}); };
  switch (format_.calls) {
    case Format::mistral: return within("[TOOL_CALLS][", "]");
    case Format::json_list: return within(format_.list_begin + "[", "]" + format_.list_end);
    case Format::nemotron: return within("<TOOLCALL>[", "]</TOOLCALL>");
    case Format::command: return within("<|START_ACTION|>[\n    ", "\n]<|END_ACTION|>");
    case Format::lfm: return within("<|tool_call_start|>[", "]<|tool_call_end|>");
    case Format::pythonic: return within("[", "]");
    case Format::olmo: return within("<function_calls>", "</function_calls>");
    case Format::minimax: return within("<minimax:tool_call>\n", "\n</minimax:tool_call>");
    case Format::dsml: return within("<｜DSML｜function_calls>\n", "\n</｜DSML｜function_calls>");
    case Format::deepseek: return within("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>");
    case Format::kimi: return within("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>");
    default: return calls;
  }
}

Expression CallGrammar::arguments(std::size_t i) {
  Json schema = tools_.parameters[i];
  if (schema.empty() || any_) return parts_.object();
  if (!schema.contains("type") && !schema.contains("$ref") && !schema.contains("anyOf")) schema["type"] = "object";
  return to_.use(grammar::read_json_schema(schema, to_));
}

Expression CallGrammar::object(std::size_t i, std::string_view key) {
  const std::string head = "{\"name\": " + json_string(tools_.names[i]) + ", \"" + std::string(key) + "\": ";
  return to_.sequence({text(head), arguments(i), text("}")});
}

Expression CallGrammar::named(std::string_view head, std::size_t i, std::string_view then, std::string_view end) {
  return to_.sequence({text(std::string(head) + tools_.names[i] + std::string(then)), arguments(i), text(end)});
}

Expression CallGrammar::call(std::size_t i, bool follows) {
  any_ = false;
  try {
    return call_of_kind(i, follows);
  } catch (Error& e) {
    if (must_hold(i)) {
      e.add_context("in the parameters of the tool '" + tools_.names[i] + "'");
      throw;
    }
  } catch (const Json::exception& e) {
    if (must_hold(i)) {
      fail(ErrorCode::invalid_argument, "the parameters of the tool '{}' have a value of an unexpected type: {}", tools_.names[i],
           e.what());
    }
  }
  any_ = true;
  to_.note("#");
  return call_of_kind(i, follows);
}

Expression CallGrammar::call_of_kind(std::size_t i, bool follows) {
  switch (format_.calls) {
    case Format::qwen_xml:
      return tagged(i, {"<tool_call>\n<function=", ">\n", "<parameter=", ">\n", "\n</parameter>\n", "</function>\n</tool_call>"});
    case Format::glm:
      return tagged(i, {"<tool_call>", "\n", "<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n", "</tool_call>"});
    case Format::minimax:
      return tagged(i, {"<invoke name=\"", "\">\n", "<parameter name=\"", "\">", "</parameter>\n", "</invoke>"});
    case Format::dsml:
      return tagged(i, {"<｜DSML｜invoke name=\"", "\">\n", "<｜DSML｜parameter name=\"", "\" string=\"false\">",
                        "</｜DSML｜parameter>\n", "</｜DSML｜invoke>", "\" string=\"true\">"});
    case Format::gemma4: return loose(i);
    case Format::lfm:
    case Format::olmo:
    case Format::pythonic: return pythonic(i);
    case Format::llama: return object(i, "parameters");
    case Format::mistral:
    case Format::nemotron:
    case Format::json_list: return object(i, "arguments");
    case Format::command: {
      const Expression number = to_.repeat(grammar::digits(to_), 1, 3);
      const std::string then = "\", \"tool_name\": " + json_string(tools_.names[i]) + ", \"parameters\": ";
      return to_.sequence({text("{\"tool_call_id\": \""), number, text(then), arguments(i), text("}")});
    }
    case Format::mistral_args: return named("[TOOL_CALLS]", i, "[ARGS]", "");
    case Format::gemma: return to_.sequence({text("```tool_code\n"), object(i, "parameters"), text("\n```")});
    case Format::functionary: return named(follows ? "" : ">>>", i, "\n", "");
    case Format::deepseek: return named("<｜tool▁call▁begin｜>", i, "<｜tool▁sep｜>", "<｜tool▁call▁end｜>");
    case Format::kimi: {
      const Expression number = to_.repeat(grammar::digits(to_), 1, 3);
      return to_.sequence({text("<|tool_call_begin|>functions." + tools_.names[i] + ":"), number,
                           text("<|tool_call_argument_begin|>"), arguments(i), text("<|tool_call_end|>")});
    }
    case Format::harmony: return named("<|channel|>commentary to=functions.", i, " <|constrain|>json<|message|>", "");
    default: return to_.sequence({text("<tool_call>\n"), object(i, "arguments"), text("\n</tool_call>")});
  }
}

// Texts are written as they are, and end where "<" and `mark` begin; where their length counts, they have no "<".
Expression CallGrammar::plain_text(const Json& schema, char mark) {
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

// The schema that references lead to.
const Json& CallGrammar::resolved(const Json& schema, const Json& root) const {
  const Json* at = &schema;
  for (int i = 0; at->is_object() && at->contains("$ref") && (*at)["$ref"].is_string(); ++i) {
    const auto& name = (*at)["$ref"].get_ref<const std::string&>();
    if (i == kMostReferences || !name.starts_with('#')) {
      fail(ErrorCode::invalid_argument, "the reference '{}' cannot be followed for texts in tags", name.substr(0, 200));
    }
    at = &root.at(Json::json_pointer(name.substr(1)));
  }
  return *at;
}

Expression CallGrammar::tagged_value(const Json& value, const Json& root, char mark) {
  const Json& schema = resolved(value, root);
  for (const char* key : {"anyOf", "oneOf"}) {
    if (!schema.is_object() || !schema.contains(key) || !schema[key].is_array()) continue;
    std::vector<Expression> ways;
    for (const Json& one : schema[key]) ways.push_back(tagged_value(one, root, mark));
    return to_.choice(std::move(ways));
  }
  if (schema.is_object() && schema.contains("const") && schema["const"].is_string()) {
    return text(schema["const"].get<std::string>());
  }
  const bool words = schema.is_object() && schema.contains("enum") && schema["enum"].is_array();
  if (words) {
    std::vector<Expression> all;
    for (const Json& word : schema["enum"]) {
      if (word.is_string() || !wants_text(&schema)) all.push_back(text(word.is_string() ? word.get<std::string>() : word.dump()));
    }
    return to_.choice(std::move(all));
  }
  if (!may_be_text(schema)) {
    Json whole = schema;
    for (const char* key : {"$defs", "definitions"}) {
      if (whole.is_object() && root.contains(key)) whole[key] = root[key];
    }
    return to_.use(grammar::read_json_schema(whole, to_));
  }
  for (const char* key : {"pattern", "format", "allOf"}) {
    if (schema.contains(key)) to_.note("#/" + std::string(key));
  }
  note_conditions(schema);
  return plain_text(schema, mark);
}

// Conditions on a value that is not written as JSON, which no grammar of tags keeps.
void CallGrammar::note_conditions(const Json& schema) {
  for (const char* key : {"not", "if", "dependentRequired", "dependentSchemas", "dependencies", "propertyNames"}) {
    if (schema.contains(key)) to_.note("#/" + std::string(key));
  }
}

// The properties of a call that is not JSON, each in the form that `one` returns, and whether it may be left out.
template <typename One>
void CallGrammar::each_property(std::size_t i, const One& one) {
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

// A call in tags whose parameters may be anything.
Expression CallGrammar::any_tagged(std::size_t i, const Tags& tags) {
  const std::string head = std::string(tags.before_name) + tools_.names[i] + std::string(tags.behind_name);
  const std::string_view end = tags.end.substr(0, tags.end.find('>') + 1), then = tags.end.substr(end.size());
  return to_.sequence({text(head), grammar::up_to_mark(end, to_), text(then)});
}

Expression CallGrammar::tagged(std::size_t i, const Tags& tags) {
  if (any_) return any_tagged(i, tags);
  const auto joined_text = [&](std::string_view a, std::string_view b, std::string_view c) {
    return text(std::string(a) + std::string(b) + std::string(c));
  };
  const Json& root = tools_.parameters[i];
  std::vector<Expression> all{joined_text(tags.before_name, tools_.names[i], tags.behind_name)};
  const auto property = [&](const std::string& key, const Json& value, bool required) {
    const bool words = !tags.behind_text_key.empty() && may_be_text(resolved(value, root));
    const Expression one = to_.sequence({joined_text(tags.before_key, key, words ? tags.behind_text_key : tags.behind_key),
                                         tagged_value(value, root, '/'), text(tags.behind_value)});
    all.push_back(required ? one : to_.optional(one));
  };
  each_property(i, property);
  all.push_back(text(tags.end));
  return to_.sequence(std::move(all));
}

// What must be there comes first; of the others each comes behind those before it, and any of them may be the first.
Expression CallGrammar::joined(std::vector<Expression> needed, const std::vector<Expression>& others, std::string_view comma) {
  std::vector<Expression> all;
  for (std::size_t k = 0; k < needed.size(); ++k) {
    all.push_back(k == 0 ? needed[k] : to_.sequence({text(comma), needed[k]}));
  }
  Expression behind = text("");
  std::vector<Expression> firsts{behind};
  for (std::size_t k = others.size(); k-- > 0;) {
    firsts.push_back(to_.sequence({others[k], behind}));
    behind = to_.sequence({to_.optional(to_.sequence({text(comma), others[k]})), behind});
  }
  all.push_back(needed.empty() ? to_.choice(std::move(firsts)) : behind);
  return to_.sequence(std::move(all));
}

// Arguments of Gemma 4: texts between marks, all else as JSON.
Expression CallGrammar::loose(std::size_t i) {
  const std::string head = "<|tool_call>call:" + tools_.names[i] + "{";
  if (any_) return to_.sequence({text(head), grammar::up_to_mark("}<tool_call|>", to_)});
  std::vector<Expression> needed, others;
  const Json& root = tools_.parameters[i];
  each_property(i, [&](const std::string& key, const Json& value, bool required) {
    const Expression inner = tagged_value(value, root, '|');
    const Expression written = may_be_text(resolved(value, root)) ? to_.sequence({text("<|\"|>"), inner, text("<|\"|>")}) : inner;
    (required ? needed : others).push_back(to_.sequence({text(key + ":"), written}));
  });
  return to_.sequence({text(head), joined(std::move(needed), others, ","), text("}<tool_call|>")});
}

// NAME(KEY=VALUE, …), with values as JSON, whose texts and numbers are Python's, too.
Expression CallGrammar::pythonic(std::size_t i) {
  if (any_) {
    const Characters begin{{'a', 'z'}, {'A', 'Z'}, {'_', '_'}};
    Characters others = begin;
    others.push_back({'0', '9'});
    const Expression name = to_.sequence({to_.characters(begin), to_.repeat(to_.characters(others), 0)});
    const Expression one = to_.sequence({name, text("="), parts_.value()});
    const Expression all = to_.sequence({one, to_.repeat(to_.sequence({text(", "), one}), 0)});
    return to_.sequence({text(tools_.names[i] + "("), to_.optional(all), text(")")});
  }
  std::vector<Expression> needed, others;
  const Json& root = tools_.parameters[i];
  each_property(i, [&](const std::string& key, const Json& value, bool required) {
    Json whole = value;
    for (const char* name : {"$defs", "definitions"}) {
      if (whole.is_object() && root.contains(name)) whole[name] = root[name];
    }
    const Expression written = to_.use(grammar::read_json_schema(whole, to_));
    (required ? needed : others).push_back(to_.sequence({text(key + "="), written}));
  });
  return to_.sequence({text(tools_.names[i] + "("), joined(std::move(needed), others, ", "), text(")")});
}

}  // namespace sdx::text
