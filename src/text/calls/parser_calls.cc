// The states after a mark: names, arguments, parameters in tags, and Harmony's channels.

#include <algorithm>

#include "base/text/ascii.h"
#include "base/text/json_text.h"
#include "text/calls/parser.h"
#include "text/calls/python_call.h"

namespace sdx::text {
namespace {

using Format = ToolCallFormat;

constexpr std::size_t kMostBlanks = 64, kMostHeader = 1024, kMostValue = std::size_t{64} << 10;
constexpr std::string_view kInvoke = "<invoke name=\"", kDsmlInvoke = "<｜DSML｜invoke name=\"";
constexpr TagWords kFunctionWords{"<parameter=", "</parameter>", "</function>"};
constexpr TagWords kInvokeWords{"<parameter name=\"", "</parameter>", "</invoke>", true};
constexpr TagWords kDsmlWords{"<｜DSML｜parameter name=\"", "</｜DSML｜parameter>", "</｜DSML｜invoke>", true};
constexpr std::string_view kKey = "<arg_key>", kKeyEnd = "</arg_key>", kArgument = "<arg_value>", kArgumentEnd = "</arg_value>",
                           kCallEnd = "</tool_call>";
const std::vector<std::string_view> kBodyEnds{"<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>"};

bool has_type(const nlohmann::ordered_json* schema, std::string_view type) {
  if (schema == nullptr || !schema->is_object() || !schema->contains("type")) return false;
  const nlohmann::ordered_json& types = (*schema)["type"];
  if (types.is_string()) return types.get_ref<const std::string&>() == type;
  return types.is_array() && std::any_of(types.begin(), types.end(), [&](const auto& t) { return t.is_string() && t == type; });
}

// The text up to the first blank or mark.
std::string_view word(std::string_view text) { return text.substr(0, std::min(text.size(), text.find_first_of(" \t\r\n<"))); }

}  // namespace

bool wants_text(const nlohmann::ordered_json* schema) { return has_type(schema, "string") && (*schema)["type"].is_string(); }

std::string json_of_text(std::string_view text, const nlohmann::ordered_json* schema) {
  const std::string_view t = trimmed_text(text, kBlanks);
  // Templates print Python's words.
  if (t == "True") return "true";
  if (t == "False") return "false";
  if (t == "None") return "null";
  const bool words = has_type(schema, "string");  // or null, or something else: a text where it may be nothing else
  if (!t.empty() && nlohmann::json::accept(t)) {
    const char c = t.front();
    const bool number = c == '-' || (c >= '0' && c <= '9');
    const bool fits = !words || (number && (has_type(schema, "number") || has_type(schema, "integer"))) ||
                      (c == '{' && has_type(schema, "object")) || (c == '[' && has_type(schema, "array")) ||
                      (t == "null" && has_type(schema, "null")) || ((t == "true" || t == "false") && has_type(schema, "boolean"));
    if (fits) return std::string(t);
  }
  return json_string(text);
}

bool AnswerStates::named(std::string_view given, std::string_view id, std::size_t taken) {
  const std::string_view plain = trimmed_text(given, kBlanks);
  if (!good_name(plain) || !out_.can_begin()) return fail_look();
  name_ = plain;
  id_ = good_name(id) ? id : std::string_view();
  take_lead(taken);
  return go(State::arguments);
}

bool AnswerStates::name() {
  if (opener_ == Opener::mistral) return mistral_name();
  const std::string_view mark = opener_ == Opener::deepseek ? "<｜tool▁sep｜>"
                                : opener_ == Opener::kimi   ? "<|tool_call_argument_begin|>"
                                                            : "\n";
  const std::string_view text = rest();
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return ending_ || text.size() > kMostName + mark.size() ? fail_look() : false;
  const std::string_view found = text.substr(0, at);
  if (opener_ == Opener::deepseek && found == "function") {  // V3 and R1: the name comes next, in a line of its own
    take_lead(at + mark.size());
    opener_ = Opener::functionary;
    return true;
  }
  if (opener_ == Opener::kimi) {
    const std::string_view id = trimmed_text(found, kBlanks);
    std::string_view plain = id.substr(id.starts_with("functions.") ? 10 : 0);
    return named(plain.substr(0, plain.rfind(':')), id, at + mark.size());
  }
  if (format_.calls == Format::functionary && found == "all") {
    take(at + mark.size());
    lead_.clear();
    return go(State::content);
  }
  return named(found, {}, at + mark.size());
}

// NAME[ARGS]{…}, NAME[CALL_ID]ID[ARGS]{…}, NAME{…}
bool AnswerStates::mistral_name() {
  const std::string_view text = rest();
  const std::size_t at = text.find_first_of("[{ \t\r\n");
  if (at == std::string_view::npos) return ending_ || text.size() > kMostName ? fail_look() : false;
  const std::string_view found = text.substr(0, at), tail = text.substr(at);
  constexpr std::string_view args = "[ARGS]", id = "[CALL_ID]";
  if (tail[0] == '{') return named(found, {}, at);
  if (tail.starts_with(args)) return named(found, {}, at + args.size());
  if (tail.starts_with(id)) {
    const std::size_t end = tail.find(args);
    if (end != std::string_view::npos) return named(found, tail.substr(id.size(), end - id.size()), at + end + args.size());
    return ending_ || tail.size() > kMostName ? fail_look() : false;
  }
  const bool perhaps = !ending_ && (args.starts_with(tail) || id.starts_with(tail));
  return perhaps ? false : fail_look();
}

bool AnswerStates::arguments() {
  if (lead_.size() > kMostName + 4 * kMostBlanks) return fail_look();
  if (!skip_blanks()) return ending_ ? fail_look() : false;
  if (rest().front() == '`') {
    const int fence = there("```json");
    if (fence > 0) take_lead(7);
    return fence > 0 ? true : fence == 0 ? false : fail_look();
  }
  if (rest().front() != '{') return fail_look();
  out_.begin(name_, id_);
  scan_ = ValueScan();
  return go(State::value);
}

bool AnswerStates::value() {
  const std::string_view text = rest();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const ValueScan::Result result = scan_.feed(text[i]);
    if (result == ValueScan::Result::inside) continue;
    const bool last = result == ValueScan::Result::last;
    out_.arguments(text.substr(0, i + (last ? 1 : 0)));
    take(i + (last ? 1 : 0));
    end_call(last);
    return true;
  }
  out_.arguments(text);
  take(text.size());
  return false;
}

// The state where a tag with a call's name may come.
bool AnswerStates::next_invoke() {
  const std::string_view mark = opener_ == Opener::dsml ? kDsmlInvoke : kInvoke;
  const int is = there(mark);
  if (is == 0) return false;
  if (is < 0) return fail_look();
  take_lead(mark.size());
  return go(State::xml);
}

// NAME(KEY=VALUE): told when it is whole.
bool AnswerStates::python() {
  const std::string_view text = rest();
  if (!ending_ && text.size() > kMostHeader && text.find(')') == std::string_view::npos)
    return text.size() > kMostValue ? fail_look() : false;
  const PythonCall found = read_python_call(text);
  if (found.state == PythonCall::State::part && !ending_ && text.size() <= kMostValue) return false;
  const bool offered = std::find(tools_.names.begin(), tools_.names.end(), found.name) != tools_.names.end();
  if (found.state != PythonCall::State::whole || !good_name(found.name) || !out_.can_begin() || (bare_ && !offered)) {
    return fail_look();
  }
  out_.begin(found.name, {});
  out_.arguments(found.arguments);
  take(found.size);
  end_call(true);
  return true;
}

// NAME>, then parameters in tags, or JSON.
bool AnswerStates::xml() {
  words_ = opener_ == Opener::invoke ? &kInvokeWords : opener_ == Opener::dsml ? &kDsmlWords : &kFunctionWords;
  const std::string_view text = rest();
  const std::size_t end = text.find('>');
  if (end == std::string_view::npos || end > kMostName) {
    return end != std::string_view::npos || ending_ || text.size() > kMostName ? fail_look() : false;
  }
  const std::size_t next = std::min(text.size(), text.find_first_not_of(" \t\r\n", end + 1));
  if (next == text.size()) return ending_ || next - end > kMostBlanks ? fail_look() : false;
  std::string_view found = text.substr(0, end);
  const std::string_view tail = text.substr(next);
  if (words_->attributes) found = found.substr(0, found.find('"'));
  if (!good_name(found) || !out_.can_begin()) return fail_look();
  const std::string_view parameter = words_->parameter, call_end = words_->call_end;
  const bool json = tail[0] == '{', tags = tail.starts_with(parameter) || tail.starts_with(call_end);
  if (!json && !tags) return !ending_ && (parameter.starts_with(tail) || call_end.starts_with(tail)) ? false : fail_look();
  begin_tagged(found);
  take(next);
  if (json) {
    scan_ = ValueScan();
    return go(State::value);
  }
  out_.arguments("{");
  return go(State::xml_text);
}

void AnswerStates::begin_tagged(std::string_view name) {
  out_.begin(name, {});
  lead_.clear();
  members_ = 0;
  properties_ = nullptr;
  for (std::size_t i = 0; i < tools_.names.size(); ++i) {
    if (tools_.names[i] != name || !tools_.parameters[i].contains("properties")) continue;
    properties_ = &tools_.parameters[i]["properties"];
  }
}

void AnswerStates::begin_tagged_value(const std::string& key, std::optional<bool> text) {
  const bool known = properties_ != nullptr && properties_->is_object() && properties_->contains(key);
  schema_ = known ? &(*properties_)[key] : nullptr;
  text_value_ = text.value_or(wants_text(schema_));
  if (text) schema_ = nullptr;
  out_.arguments((members_++ == 0 ? "" : ", ") + json_string(key) + (text_value_ ? ": \"" : ": "));
  xml_value_.clear();
  state_ = State::xml_value;
}

// The state between the tags of parameters.
bool AnswerStates::xml_text() {
  const std::string_view all = rest();
  take(std::min(all.size(), all.find_first_not_of(" \t\r\n")));
  const std::string_view text = rest();
  if (text.empty()) return false;
  const std::string_view mark = words_->parameter;
  const int parameter = there(mark), last = there(words_->call_end);
  if (last > 0) {
    take(words_->call_end.size());
    out_.arguments("}");
    end_call(true);
    return true;
  }
  if (parameter == 0 || last == 0) return false;
  const std::size_t end = text.find('>');
  if (parameter > 0 && end == std::string_view::npos && text.size() <= kMostName + mark.size()) return false;
  if (parameter < 0 || end == std::string_view::npos || end > kMostName + mark.size()) {
    end_call(false);
    return true;
  }
  const std::string_view inside = text.substr(mark.size(), end - mark.size());
  const std::string key(words_->attributes ? inside.substr(0, inside.find('"')) : inside);
  // Says what kind of value it is, whatever the schema says.
  const bool words = inside.find("string=\"true\"") != std::string_view::npos,
             other = inside.find("string=\"false\"") != std::string_view::npos;
  const bool said = words_->attributes && (words || other);
  take(end + 1);
  begin_tagged_value(key, said ? std::optional<bool>(words) : std::nullopt);
  value_end_ = words_->value_end;
  at_value_start_ = !words_->attributes;
  return true;
}

// A value: one line end in front of it and one behind it are the tags', but GLM's.
bool AnswerStates::xml_value() {
  if (at_value_start_ && !rest().empty()) {
    if (rest().front() == '\n') take(1);
    at_value_start_ = false;
  }
  const std::string_view text = rest();
  const MarkFound found = find_mark(text, {value_end_});
  const bool pairs = value_end_ == kArgumentEnd, lines = !pairs && !words_->attributes;
  std::size_t certain = found.at;
  const bool line_end = lines && certain > 0 && text[certain - 1] == '\n';
  if (line_end) --certain;
  if (text_value_) {
    out_.arguments(json_piece(text.substr(0, certain)));
  } else {
    xml_value_ += text.substr(0, certain);
    if (xml_value_.size() > kMostValue) {
      out_.arguments('"' + json_piece(xml_value_));
      xml_value_.clear();
      text_value_ = true;
    }
  }
  take(certain);
  if (!found.whole) return false;
  take((line_end ? 1 : 0) + value_end_.size());
  out_.arguments(text_value_ ? "\"" : json_of_text(xml_value_, schema_));
  return go(pairs ? State::pair : State::xml_text);
}

// NAME, then <arg_key>KEY</arg_key><arg_value>VALUE</arg_value> …, with line ends between them or without.
bool AnswerStates::pairs() {
  const std::string_view text = rest();
  const std::size_t end = text.find('<');
  if (end == std::string_view::npos) return ending_ || text.size() > kMostName + kMostBlanks ? fail_look() : false;
  const std::string_view found = trimmed_text(text.substr(0, end), kBlanks), tail = text.substr(end);
  const bool keys = tail.starts_with(kKey), empty = tail.starts_with(kCallEnd);
  if (!keys && !empty) return !ending_ && (kKey.starts_with(tail) || kCallEnd.starts_with(tail)) ? false : fail_look();
  // A word between marks may be anything, unless the model is one that writes calls so.
  const bool offered = std::find(tools_.names.begin(), tools_.names.end(), found) != tools_.names.end();
  if (!good_name(found) || !out_.can_begin() || (empty && !offered && format_.calls != Format::glm)) return fail_look();
  begin_tagged(found);
  take(end);
  out_.arguments("{");
  return go(State::pair);
}

// The state between the pairs of tags.
bool AnswerStates::pair() {
  const std::string_view all = rest();
  take(std::min(all.size(), all.find_first_not_of(" \t\r\n")));
  const std::string_view text = rest();
  if (text.empty()) return false;
  const int key = there(kKey), last = there(kCallEnd);
  if (last > 0) {
    take(kCallEnd.size());
    out_.arguments("}");
    end_call(true);
    return true;
  }
  if (key == 0 || last == 0) return false;
  const std::size_t end = key > 0 ? text.find(kKeyEnd) : std::string_view::npos;
  if (key > 0 && end == std::string_view::npos && text.size() <= kKey.size() + kMostName + kKeyEnd.size()) return false;
  if (end == std::string_view::npos || end > kKey.size() + kMostName) {
    end_call(false);
    return true;
  }
  const std::size_t behind = end + kKeyEnd.size(), next = std::min(text.size(), text.find_first_not_of(" \t\r\n", behind));
  const std::string_view tail = text.substr(next);
  if (!tail.starts_with(kArgument)) {
    if (kArgument.starts_with(tail) && next - behind <= kMostBlanks) return false;
    end_call(false);
    return true;
  }
  const std::string name(trimmed_text(text.substr(kKey.size(), end - kKey.size()), kBlanks));
  take(next + kArgument.size());
  begin_tagged_value(name);
  value_end_ = kArgumentEnd;
  at_value_start_ = false;
  return true;
}

// call:NAME{…} with texts between marks of their own, as Gemma 4 writes calls.
bool AnswerStates::loose() {
  constexpr std::string_view call = "call:";
  if (lead_.size() > 4 * kMostBlanks) return fail_look();
  if (!skip_blanks()) return ending_ ? fail_look() : false;
  const int is = there(call);
  if (is <= 0) return is == 0 ? false : fail_look();
  const std::string_view text = rest();
  const std::size_t end = text.find('{');
  if (end == std::string_view::npos) return ending_ || text.size() > kMostName + kMostBlanks ? fail_look() : false;
  const std::string_view found = trimmed_text(text.substr(call.size(), end - call.size()), kBlanks);
  if (!good_name(found) || !out_.can_begin()) return fail_look();
  out_.begin(found, {});
  lead_.clear();
  take(end);
  loose_ = LooseScan();
  return go(State::loose_value);
}

bool AnswerStates::loose_value() {
  const std::string_view text = rest();
  std::string json;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const LooseScan::Result result = loose_.feed(text[i], json);
    if (result == LooseScan::Result::inside) continue;
    const bool last = result == LooseScan::Result::last;
    out_.arguments(json);
    take(i + (last ? 1 : 0));
    end_call(last);
    return true;
  }
  out_.arguments(json);
  take(text.size());
  return false;
}

// <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>: who hears what follows.
bool AnswerStates::header() {
  constexpr std::string_view message = "<|message|>", channel_mark = "<|channel|>", to = "to=", functions = "functions.";
  const std::string_view text = rest();
  const std::size_t end = text.find(message);
  if (end == std::string_view::npos) return ending_ || text.size() > kMostHeader ? fail_look() : false;
  if (end > kMostHeader) return fail_look();
  take_lead(end);
  const std::string_view head = lead_;
  const std::size_t channel = head.find(channel_mark), recipient = head.find(to);
  const std::string_view name =
      channel == std::string_view::npos ? std::string_view() : word(head.substr(channel + channel_mark.size()));
  std::string_view who = recipient == std::string_view::npos ? std::string_view() : word(head.substr(recipient + to.size()));
  if (who.starts_with(functions)) who.remove_prefix(functions.size());
  harmony_call_ = good_name(who) && who != "user" && who != "all" && out_.can_begin();
  harmony_reasoning_ = name == "analysis";
  if (harmony_call_) out_.begin(who, {});
  lead_.clear();
  take(message.size());
  return go(State::body);
}

bool AnswerStates::body() {
  const MarkFound found = find_mark(rest(), kBodyEnds);
  const std::size_t certain = ending_ && !found.whole ? rest().size() : found.at;
  const std::string_view text = rest().substr(0, certain);
  if (harmony_call_) {
    out_.arguments(text);
  } else if (harmony_reasoning_) {
    out_.reasoning(text);
  } else {
    out_.content(text);
  }
  take(certain);
  if (!found.whole) return false;
  if (harmony_call_) out_.end(true);
  if (harmony_reasoning_) out_.drop_blanks();
  const std::string_view mark = kBodyEnds[found.which];
  if (mark != "<|start|>" && mark != "<|channel|>") take(mark.size());
  return go(State::content);
}

}  // namespace sdx::text
