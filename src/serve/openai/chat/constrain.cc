#include "serve/openai/chat/constrain.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "serve/openai/generation.h"

namespace sdx::serve::openai {
namespace {

using Calls = AnswerConstraint::Calls;

// Places begin with "tools[name]".
void refuse_in_part(const std::vector<std::string>& unenforced, const ChatRequest& r) {
  for (const Json& tool : Json::parse(r.tools)) {
    const Json& function = tool["function"];
    const auto name = function["name"].get<std::string>();
    if (std::find(r.strict_tools.begin(), r.strict_tools.end(), name) == r.strict_tools.end()) continue;
    const std::string head = "tools[" + name + "]";
    std::vector<std::string> own;
    for (const std::string& place : unenforced) {
      if (place.starts_with(head + "#")) own.push_back(place.substr(head.size()));
    }
    openai::refuse_in_part(own, function["parameters"], head);
  }
}

// The field to blame for a constraint that cannot be made.
const char* wrong_field(const ChatRequest& r, const LanguageModel& model, Calls calls) {
  if (calls == Calls::none) return r.generation.format->param.c_str();
  if (calls == Calls::required || !r.generation.format) return "tools";
  try {
    std::vector<std::string> unenforced;
    model.constrain(r.generation.format->format, r.generation.format->text, &unenforced);
  } catch (const Error&) {
    return r.generation.format->param.c_str();
  }
  return "tools";
}

void tell(const std::vector<std::string>& unenforced, const ChatRequest& r, Ignored& ignored) {
  if (!r.strict_tools.empty() && !unenforced.empty() && !r.tools.empty()) refuse_in_part(unenforced, r);
  std::vector<std::string> own;
  for (const std::string& place : unenforced) {
    const bool of_tool = place.starts_with("tools[");
    if (!of_tool) own.push_back(place);
    ignored.add_exact(of_tool ? place : r.generation.format->param + place);
  }
  if (r.generation.format && r.generation.format->strict && !own.empty()) {
    openai::refuse_in_part(own, Json::parse(r.generation.format->text), r.generation.format->param);
  }
}

}  // namespace

AnswerFormat format_of(const ChatRequest& r, const Found& found) {
  if (r.raw) return {ToolCallFormat::none, "", ""};
  AnswerFormat format = found.facts->format();
  // Harmony's channels are there without tools, too.
  if (r.tool_use == ToolUse::none && format.calls != ToolCallFormat::harmony) format.calls = ToolCallFormat::none;
  if (r.tool_use == ToolUse::required && (format.calls == ToolCallFormat::detect || format.calls == ToolCallFormat::none)) {
    format.calls = ToolCallFormat::hermes;
  }
  // The form is that of the whole answer, unless the model is one that reasons.
  if (r.generation.format && !found.facts->reasons()) format.reasoning_begin = format.reasoning_end = "";
  return format;
}

void hold_answer(GenerationSettings& settings, const ChatRequest& r, const Found& found, const AnswerFormat& format,
                 const std::string& prompt, Ignored& ignored) {
  AnswerConstraint of;
  if (r.tool_use == ToolUse::required) {
    of.calls = Calls::required;
  } else if (r.tool_use == ToolUse::automatic && (r.generation.format || !r.strict_tools.empty())) {
    of.calls = Calls::allowed;
  }
  if (of.calls == Calls::none && !r.generation.format) return;
  const LanguageModel& model = found.model->language->model;
  of.format = format;
  of.may_reason = found.facts->reasons();
  if (r.generation.format && of.calls != Calls::required) {
    of.output = r.generation.format->format;
    of.text = r.generation.format->text;
  }
  of.tools = r.tools;
  of.choice = {r.tool_name, r.parallel_calls};
  of.all_strict = false;
  of.strict = r.strict_tools;
  of.prompt = prompt;
  of.begun = r.continued;
  try {
    std::vector<std::string> unenforced;
    settings.mask = model.constrain_answer(of, &unenforced);
    tell(unenforced, r, ignored);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument && error.code() != ErrorCode::not_implemented) throw;
    const char* field = wrong_field(r, model, of.calls);
    std::string why = error.message();
    for (const std::string& where : error.context()) why += ", " + where;  // the tool
    refuse(fmt::format("Invalid '{}': {}", field, why), field, "invalid_value");
  }
}

}  // namespace sdx::serve::openai
