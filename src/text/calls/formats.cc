// Determines the format of a model's answers.

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/error.h"
#include "base/suggest.h"
#include "text/calls/constrain.h"
#include "text/calls/parser.h"
#include "text/grammar/readers.h"

namespace sdx {
namespace {

using Format = ToolCallFormat;

constexpr std::array<std::pair<Format, const char*>, 22> kNames{{{Format::detect, "detect"},
                                                                 {Format::none, "none"},
                                                                 {Format::hermes, "hermes"},
                                                                 {Format::qwen_xml, "qwen_xml"},
                                                                 {Format::glm, "glm"},
                                                                 {Format::llama, "llama"},
                                                                 {Format::mistral, "mistral"},
                                                                 {Format::mistral_args, "mistral_args"},
                                                                 {Format::json_list, "json_list"},
                                                                 {Format::gemma, "gemma"},
                                                                 {Format::gemma4, "gemma4"},
                                                                 {Format::functionary, "functionary"},
                                                                 {Format::deepseek, "deepseek"},
                                                                 {Format::kimi, "kimi"},
                                                                 {Format::harmony, "harmony"},
                                                                 {Format::lfm, "lfm"},
                                                                 {Format::olmo, "olmo"},
                                                                 {Format::pythonic, "pythonic"},
                                                                 {Format::command, "command"},
                                                                 {Format::minimax, "minimax"},
                                                                 {Format::nemotron, "nemotron"},
                                                                 {Format::dsml, "dsml"}}};

// Marks that may be tokens of their own.
constexpr std::string_view kMarks[] = {"<tool_call>",
                                       "</tool_call>",
                                       "<tool_calls>",
                                       "</tool_calls>",
                                       "<arg_key>",
                                       "</arg_key>",
                                       "<arg_value>",
                                       "</arg_value>",
                                       "<|tool_call>",
                                       "<tool_call|>",
                                       "<|\"|>",
                                       "<|channel>",
                                       "<|tool_call|>",
                                       "<|/tool_call|>",
                                       "<|python_tag|>",
                                       "[TOOL_CALLS]",
                                       "[ARGS]",
                                       "[CALL_ID]",
                                       "<｜tool▁calls▁begin｜>",
                                       "<｜tool▁calls▁end｜>",
                                       "<｜tool▁call▁begin｜>",
                                       "<｜tool▁call▁end｜>",
                                       "<｜tool▁sep｜>",
                                       "<|tool_calls_section_begin|>",
                                       "<|tool_calls_section_end|>",
                                       "<|tool_call_begin|>",
                                       "<|tool_call_end|>",
                                       "<|tool_call_argument_begin|>",
                                       "<|tool_call_start|>",
                                       "<function_calls>",
                                       "</function_calls>",
                                       "<|python_start|>",
                                       "<|python_end|>",
                                       "<|START_ACTION|>",
                                       "<|END_ACTION|>",
                                       "<TOOLCALL>",
                                       "</TOOLCALL>",
                                       "<minimax:tool_call>",
                                       "</minimax:tool_call>",
                                       "｜DSML｜"};
constexpr std::string_view kHarmonyMarks[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>", "<|end|>", "<|call|>"};

struct Reasoning {
  std::string_view begin, end;
};
constexpr Reasoning kReasoning[] = {{"[THINK]", "[/THINK]"},
                                    {"<seed:think>", "</seed:think>"},
                                    {"<|START_THINKING|>", "<|END_THINKING|>"},
                                    {"<|channel>thought", "<channel|>"}};

Format calls_of(std::string_view source) {
  const auto has = [&](std::string_view mark) { return source.find(mark) != std::string_view::npos; };
  if (has("<|channel|>") && has("<|message|>")) return Format::harmony;
  if (has("｜DSML｜")) return Format::dsml;
  if (has("<minimax:tool_call>")) return Format::minimax;
  if (has("<|START_ACTION|>")) return Format::command;
  if (has("<|tool_call_start|>")) return Format::lfm;
  if (has("<function_calls>")) return Format::olmo;
  if (has("<TOOLCALL>")) return Format::nemotron;
  if (has("<|python_start|>")) return Format::pythonic;
  if (has("<｜tool▁call▁begin｜>")) return Format::deepseek;
  if (has("<|tool_call_begin|>")) return Format::kimi;
  if (has("[TOOL_CALLS]")) return has("[ARGS]") ? Format::mistral_args : Format::mistral;
  if (has(">>>${recipient}") || has(">>>all")) return Format::functionary;
  if (has("<|tool_call>")) return Format::gemma4;
  if (has("functools") || has("<|tool_call|>") || has("<tool_calls>")) return Format::json_list;
  if (has("<tool_call>") && has("<arg_key>")) return Format::glm;
  if (has("<tool_call>")) return has("<function=") ? Format::qwen_xml : Format::hermes;
  if (has("<|python_tag|>") || (has("<|start_header_id|>") && has("\"parameters\": dictionary of argument name"))) {
    return Format::llama;
  }
  if (has("<start_of_turn>")) return Format::gemma;
  return Format::detect;
}

}  // namespace

namespace text {

std::unordered_set<std::uint32_t> kept_tokens(const Tokenizer& tokenizer, const AnswerFormat& format) {
  std::unordered_set<std::uint32_t> kept;
  const auto keep = [&](std::string_view mark) {
    if (mark.empty()) return;
    if (const auto id = tokenizer.token_to_id(mark); id && tokenizer.is_special(*id)) kept.insert(*id);
  };
  keep(format.reasoning_begin);
  keep(format.reasoning_end);
  if (format.calls == Format::none) return kept;
  for (const std::string_view mark : kMarks) keep(mark);
  if (format.calls == Format::harmony || format.calls == Format::detect) {
    // Other models have <|end|> or <|start|>, too: these tokens are Harmony's only if its channels exist.
    if (!tokenizer.token_to_id("<|channel|>")) return kept;
    for (const std::string_view mark : kHarmonyMarks) keep(mark);
  }
  return kept;
}

}  // namespace text

const char* to_string(ToolCallFormat format) {
  for (const auto& [f, name] : kNames) {
    if (f == format) return name;
  }
  return "";
}

ToolCallFormat tool_call_format(std::string_view name) {
  std::vector<std::string> all;
  for (const auto& [format, known] : kNames) {
    if (name == known) return format;
    all.emplace_back(known);
  }
  fail(ErrorCode::invalid_argument, "'{}' is not a call format; known: {}", name, join(all));
}

AnswerFormat answer_format(std::string_view source) {
  AnswerFormat format;
  format.calls = calls_of(source);
  if (format.calls == ToolCallFormat::harmony) {
    format.reasoning_begin.clear();
    format.reasoning_end.clear();
    return format;
  }
  if (source.find("<|tool_call|>") != std::string_view::npos) {
    format.list_begin = "<|tool_call|>";
    format.list_end = "<|/tool_call|>";
  } else if (source.find("<tool_calls>") != std::string_view::npos) {
    format.list_begin = "<tool_calls>";
    format.list_end = "</tool_calls>";
  }
  for (const Reasoning& r : kReasoning) {
    if (source.find(r.begin) == std::string_view::npos) continue;
    format.reasoning_begin = r.begin;
    format.reasoning_end = r.end;
    break;
  }
  return format;
}

AnswerFormat answer_format(const ChatTemplate& chat_template) {
  // Calls are as the template for tools shows them; it may leave out how models think.
  const AnswerFormat plain = answer_format(chat_template.source());
  AnswerFormat format = answer_format(chat_template.tool_source());
  const AnswerFormat usual;
  const bool says_nothing = format.reasoning_begin == usual.reasoning_begin && format.reasoning_end == usual.reasoning_end;
  if (says_nothing && plain.calls != ToolCallFormat::harmony) {
    format.reasoning_begin = plain.reasoning_begin;
    format.reasoning_end = plain.reasoning_end;
  }
  return format;
}

std::function<std::string(std::span<const std::uint32_t>)> answer_detokenizer(Tokenizer tokenizer, const AnswerFormat& format) {
  std::unordered_set<std::uint32_t> kept = text::kept_tokens(tokenizer, format);
  return [words = std::move(tokenizer), kept = std::move(kept)](std::span<const std::uint32_t> ids) {
    if (kept.empty()) return words.decode(ids);
    std::vector<std::uint32_t> shown;
    for (const std::uint32_t id : ids) {
      if (kept.contains(id) || !words.is_special(id)) shown.push_back(id);
    }
    return words.decode(shown, false);
  };
}

std::vector<std::uint32_t> answer_ends(const Tokenizer& tokenizer, const AnswerFormat& format) {
  std::vector<std::uint32_t> ends;
  const auto add = [&](std::string_view token) {
    if (const auto id = tokenizer.token_to_id(token); id && tokenizer.is_special(*id)) ends.push_back(*id);
  };
  const bool any = format.calls == ToolCallFormat::detect;
  if (any || format.calls == ToolCallFormat::llama) add("<|eom_id|>");
  if ((any || format.calls == ToolCallFormat::harmony) && tokenizer.token_to_id("<|channel|>")) {
    add("<|call|>");
    add("<|return|>");
  }
  return ends;
}

namespace text {

OfferedTools read_tools(std::string_view json) {
  OfferedTools out;
  if (json.empty()) return out;
  nlohmann::ordered_json list;
  try {
    list = grammar::parse_ordered(json, "list of tools");
  } catch (const nlohmann::json::exception& e) {
    fail(ErrorCode::invalid_argument, "the list of tools is not valid JSON: {}", e.what());
  }
  if (list.is_null()) return out;
  if (!list.is_array()) fail(ErrorCode::invalid_argument, "the tools must be a JSON list of functions");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const nlohmann::ordered_json& item = list[i];
    const bool wrapped = item.is_object() && item.contains("function");
    const nlohmann::ordered_json& function = wrapped ? item["function"] : item;
    if (!function.is_object() || !function.contains("name") || !function["name"].is_string()) {
      fail(ErrorCode::invalid_argument,
           "tool {} must be a function: {{\"type\": \"function\", \"function\": {{\"name\": …, \"parameters\": …}}}}", i);
    }
    const std::string& name = function["name"].get_ref<const std::string&>();
    if (!good_name(name)) {
      fail(ErrorCode::invalid_argument,
           "the name of tool {} must have 1 to {} bytes, without spaces, quotes or brackets, received '{}'", i, kMostName,
           name.substr(0, 80));
    }
    out.names.push_back(name);
    const bool schema = function.contains("parameters") && function["parameters"].is_object();
    out.parameters.push_back(schema ? function["parameters"] : nlohmann::ordered_json::object());
  }
  return out;
}

}  // namespace text
}  // namespace sdx
