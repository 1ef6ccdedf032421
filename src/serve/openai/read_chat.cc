// A chat's messages and tools.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/json_text.h"
#include "serve/openai/requests.h"

namespace sdx::serve::openai {
namespace {

constexpr std::size_t kMostMessages = 16384, kMostTools = 128, kMostCalls = 1024;

// The text of a content: itself, or its parts with a line end between them, as templates of models that only read text want it.
std::string content_text(const Fields& message, const Json& content, const std::string& param, bool assistant) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) wrong_type(param, "a string or an array of content parts", content);
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    Fields part = message.within(content[i], fmt::format("{}[{}]", param, i));
    const std::string type = part.required_text("type");
    if (type != "text" && !(assistant && type == "refusal")) {
      const bool known = type == "image_url" || type == "input_audio" || type == "file" || type == "video_url";
      if (!known) wrong_value(part.path("type"), Json(type), "'text'");
      refuse(fmt::format("Invalid content type '{}' in '{}': this server's models accept only text.", type, part.path("type")),
             part.path("type"), "unsupported_content");
    }
    if (i > 0) text += '\n';
    text += part.required_text(type);
    part.ignore({"cache_control", "annotations"});
    part.finish();
  }
  return text;
}

Json read_call(const Fields& message, const Json& value, const std::string& where, std::vector<std::string>& pending) {
  Fields call = message.within(value, where);
  const std::string id = call.required_text("id");
  if (const auto type = call.text("type"); type && *type != "function") wrong_value(call.path("type"), Json(*type), "'function'");
  call.ignore({"index"});
  Fields function = call.within(call.required("function"), call.path("function"));
  const std::string name = function.required_text("name");
  const std::string arguments = function.required_text("arguments");
  function.finish();
  call.finish();
  // Templates write objects; arguments of the model that are no object stay as they were.
  std::optional<Json> parsed = read_json(arguments);
  pending.push_back(id);
  return {{"id", id},
          {"type", "function"},
          {"function", {{"name", name}, {"arguments", parsed && parsed->is_object() ? std::move(*parsed) : Json(arguments)}}}};
}

Json read_assistant(Fields& m, std::vector<std::string>& pending) {
  Json out = {{"role", "assistant"}};
  const Json* content = m.take("content");
  const Json* calls = m.array("tool_calls", 0, kMostCalls);
  const auto refusal = m.text("refusal");
  m.unsupported("function_call", "Use 'tool_calls' instead.");
  m.ignore({"audio", "annotations"});
  std::optional<std::string> reasoning = m.text("reasoning_content");
  if (const auto other = m.text("reasoning"); other && !reasoning) reasoning = other;
  if (content != nullptr) {
    out["content"] = content_text(m, *content, m.path("content"), true);
  } else if (refusal) {
    out["content"] = *refusal;
  } else if (calls != nullptr && !calls->empty()) {
    out["content"] = "";
  } else {
    wrong_type(m.path("content"), "a string", Json());
  }
  if (reasoning) out["reasoning_content"] = *reasoning;
  if (calls != nullptr && !calls->empty()) {
    out["tool_calls"] = Json::array();
    for (std::size_t i = 0; i < calls->size(); ++i) {
      out["tool_calls"].push_back(read_call(m, (*calls)[i], fmt::format("{}[{}]", m.path("tool_calls"), i), pending));
    }
  }
  return out;
}

Json read_tool_answer(Fields& m, std::vector<std::string>& pending) {
  const std::string id = m.required_text("tool_call_id");
  const auto found = std::find(pending.begin(), pending.end(), id);
  if (found == pending.end()) {
    refuse("Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
           m.path("role"), "invalid_value");
  }
  pending.erase(found);
  return {{"role", "tool"}, {"content", content_text(m, m.required("content"), m.path("content"), false)}, {"tool_call_id", id}};
}

void check_answered(const std::vector<std::string>& pending, std::size_t at) {
  if (pending.empty()) return;
  refuse(fmt::format(
             "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The "
             "following tool_call_ids did not have response messages: {}",
             fmt::join(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(pending.size(), 10)),
                       ", ")),
         fmt::format("messages[{}].role", at), "invalid_value");
}

Json read_message(const Fields& fields, const Json& value, std::size_t index, std::vector<std::string>& pending) {
  Fields m = fields.within(value, fmt::format("messages[{}]", index));
  const std::string role = m.required_text("role");
  if (role != "tool") check_answered(pending, index);
  if (role != "tool") pending.clear();
  Json out;
  if (role == "system" || role == "developer" || role == "user") {
    out = {{"role", role}, {"content", content_text(m, m.required("content"), m.path("content"), false)}};
  } else if (role == "assistant") {
    out = read_assistant(m, pending);
  } else if (role == "tool") {
    out = read_tool_answer(m, pending);
  } else {
    wrong_value(m.path("role"), Json(role), "'system', 'developer', 'user', 'assistant', and 'tool'");
  }
  if (const auto name = m.text("name")) out["name"] = *name;
  m.ignore({"prefix"});
  m.finish();
  return out;
}

std::string read_tool(const Fields& fields, const Json& value, const std::string& where, Json& out,
                      std::vector<std::string>& strict) {
  Fields tool = fields.within(value, where);
  const std::string type = tool.required_text("type");
  if (type != "function") wrong_value(tool.path("type"), Json(type), "'function'");
  Fields function = tool.within(tool.required("function"), tool.path("function"));
  std::string name = function.required_text("name");
  if (!is_function_name(name, 64)) {
    refuse(
        fmt::format(
            "Invalid '{}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_.-]{{1,64}}$'.",
            function.path("name")),
        function.path("name"), "invalid_value");
  }
  Json made = {{"name", name}};
  if (const auto description = function.text("description")) made["description"] = *description;
  const Json* parameters = function.object("parameters");
  made["parameters"] = parameters != nullptr ? *parameters : Json{{"type", "object"}, {"properties", Json::object()}};
  if (function.boolean("strict").value_or(false)) strict.push_back(name);
  function.finish();
  tool.finish();
  out.push_back({{"type", "function"}, {"function", std::move(made)}});
  return name;
}

void read_tool_choice(Fields& fields, const std::vector<std::string>& names, ChatRequest& to) {
  const Json* choice = fields.take("tool_choice");
  to.tool_use = names.empty() ? ToolUse::none : ToolUse::automatic;
  if (choice == nullptr) return;
  if (choice->is_string()) {
    const auto& text = choice->get_ref<const std::string&>();
    if (text != "none" && text != "auto" && text != "required")
      wrong_value("tool_choice", *choice, "'none', 'auto', and 'required'");
    if (names.empty()) {
      if (text == "none") return;
      refuse("Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.", "tool_choice",
             "invalid_value");
    }
    to.tool_use = text == "none" ? ToolUse::none : text == "auto" ? ToolUse::automatic : ToolUse::required;
    return;
  }
  Fields of = fields.within(*choice, "tool_choice");
  if (const std::string type = of.required_text("type"); type != "function") {
    wrong_value("tool_choice.type", Json(type), "'function'");
  }
  Fields function = of.within(of.required("function"), "tool_choice.function");
  to.tool_name = function.required_text("name");
  function.finish();
  of.finish();
  if (std::find(names.begin(), names.end(), to.tool_name) == names.end()) {
    refuse(fmt::format("Invalid value for 'tool_choice': no function named '{}' was specified in the 'tools' parameter.",
                       to.tool_name.substr(0, 100)),
           "tool_choice", "invalid_value");
  }
  to.tool_use = ToolUse::required;
  to.parallel_calls = false;  // this function, once
}

}  // namespace

Json read_messages(const Fields& fields, const Json& messages) {
  Json out = Json::array();
  std::vector<std::string> pending;  // calls without an answer
  for (std::size_t i = 0; i < messages.size(); ++i) out.push_back(read_message(fields, messages[i], i, pending));
  check_answered(pending, messages.size() - 1);
  return out;
}

void read_tools(Fields& fields, ChatRequest& to) {
  const Json* tools = fields.array("tools", 0, kMostTools);
  std::vector<std::string> names;
  if (tools != nullptr && !tools->empty()) {
    Json list = Json::array();
    for (std::size_t i = 0; i < tools->size(); ++i)
      names.push_back(read_tool(fields, (*tools)[i], fmt::format("tools[{}]", i), list, to.strict_tools));
    to.tools = dump_json(list);
  }
  const auto parallel = fields.boolean("parallel_tool_calls");
  if (parallel && names.empty()) {
    refuse("Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.",
           "parallel_tool_calls", "invalid_value");
  }
  to.parallel_calls = parallel.value_or(true);
  read_tool_choice(fields, names, to);
  if (to.tool_use == ToolUse::none) to.tools.clear();
  const bool held = to.tool_use == ToolUse::required || (to.tool_use == ToolUse::automatic && !to.strict_tools.empty());
  if (held && to.generation.ignore_end) {
    refuse("'ignore_eos' cannot be honoured if 'tool_choice' or strict tools determine how the answer ends.", "ignore_eos",
           "invalid_parameter_combination");
  }
}

namespace {

// vLLM's fields, and `prefix` in the last message, as Mistral and DeepSeek have it.
void read_continuation(Fields& fields, const Json& messages, ChatRequest& to) {
  const bool prefix = messages.back().is_object() && messages.back().contains("prefix") && messages.back()["prefix"] == true;
  const bool continues = fields.boolean("continue_final_message").value_or(prefix);
  const auto asked = fields.boolean("add_generation_prompt");
  to.add_generation_prompt = continues || asked.value_or(true);
  if (!continues) return;
  if (asked.value_or(false) && !prefix) {
    refuse("Cannot set both 'continue_final_message' and 'add_generation_prompt' to true.", "continue_final_message",
           "invalid_parameter_combination");
  }
  const Json& last = to.messages.back();
  if (last["role"] != "assistant" || last.contains("tool_calls")) {
    refuse("Invalid value for 'continue_final_message': the last message must be one of the assistant, without 'tool_calls'.",
           "continue_final_message", "invalid_value");
  }
  to.continued = last["content"].get<std::string>();
  to.messages.erase(to.messages.size() - 1);
  if (to.messages.empty()) refuse("Invalid 'messages': there is nothing to answer.", "messages", "invalid_value");
}

}  // namespace

ChatRequest read_chat_request(const Json& body) {
  Ignored ignored;
  Fields fields(body, "", ignored);
  ChatRequest r;
  r.generation = read_generation_fields(fields, true);
  fields.required("messages");
  const Json& messages = *fields.array("messages", 1, kMostMessages);
  r.messages = read_messages(fields, messages);
  read_continuation(fields, messages, r);
  read_tools(fields, r);
  const bool logprobs = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, 20);
  if (top && !logprobs) {
    refuse("The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.", "top_logprobs", "invalid_value");
  }
  if (logprobs) r.logprobs = static_cast<int>(top.value_or(0));
  if (const Json* variables = fields.object("chat_template_kwargs")) r.variables = *variables;
  if (const auto effort = fields.text("reasoning_effort"); effort && !r.variables.contains("reasoning_effort")) {
    r.variables["reasoning_effort"] = *effort;
  }
  if (const Json* modalities = fields.array("modalities", 0, 8)) {
    if (std::any_of(modalities->begin(), modalities->end(), [](const Json& m) { return m != Json("text"); })) {
      refuse("Unsupported value: 'modalities' may only be ['text'] with this server.", "modalities", "unsupported_value");
    }
  }
  fields.unsupported("audio", "This server's models generate only text.");
  fields.unsupported("web_search_options", "This server searches nothing.");
  fields.unsupported("functions", "Use 'tools' instead.");
  fields.unsupported("function_call", "Use 'tool_choice' instead.");
  fields.ignore({"user", "metadata", "store", "service_tier", "prediction", "verbosity", "safety_identifier", "prompt_cache_key",
                 "prompt_cache_retention"});
  fields.finish();
  r.generation.ignored = std::move(ignored);
  return r;
}

}  // namespace sdx::serve::openai
