// A request's tools, and which of them must be called.

#include <fmt/format.h>

#include <algorithm>

#include "base/text/json_text.h"
#include "serve/responses/requests.h"

namespace sdx::serve::responses {
namespace {

using openai::Fields;
using openai::Json;
using openai::refuse;
using openai::ToolUse;

constexpr std::size_t kMostTools = 1024;

// A tool whose input is a text: the model calls a function with that text.
Json custom_parameters(Fields& tool, std::string& description) {
  if (const Json* value = tool.object("format")) {
    Fields format = tool.within(*value, tool.path("format"));
    if (format.required_text("type") == "grammar") {
      description += fmt::format("\nThe input follows this grammar ({}):\n{}", format.text("syntax").value_or("lark"),
                                 format.text("definition").value_or(""));
    }
    format.ignore({"syntax", "definition"});
    format.finish();
  }
  return {{"type", "object"},
          {"properties", {{"input", {{"type", "string"}}}}},
          {"required", Json::array({"input"})},
          {"additionalProperties", false}};
}

// "" for a tool that OpenAI's own servers run.
std::string read_tool(const Fields& fields, const Json& value, const std::string& where, Json& out, ResponseRequest& to) {
  Fields tool = fields.within(value, where);
  const std::string type = tool.required_text("type");
  if (type != "function" && type != "custom") return {};
  std::string name = tool.required_text("name");
  if (!openai::is_function_name(name, 128)) {
    refuse(fmt::format("Invalid '{}': string does not match pattern. Expected a string that matches the pattern "
                       "'^[a-zA-Z0-9_.-]{{1,128}}$'.",
                       tool.path("name")),
           tool.path("name"), "invalid_value");
  }
  std::string description = tool.text("description").value_or("");
  Json function = {{"name", name}};
  Json parameters;
  if (type == "custom") {
    parameters = custom_parameters(tool, description);
    to.custom_tools.insert(name);
  } else {
    const Json* given = tool.object("parameters");
    parameters = given != nullptr ? *given : Json{{"type", "object"}, {"properties", Json::object()}};
    if (tool.boolean("strict").value_or(false)) to.chat.strict_tools.push_back(name);
  }
  if (!description.empty()) function["description"] = description;
  function["parameters"] = std::move(parameters);
  tool.ignore({"defer_loading", "output_schema"});
  tool.finish();
  out.push_back({{"type", "function"}, {"function", std::move(function)}});
  return name;
}

void require(const std::vector<std::string>& names, const std::string& name, openai::ChatRequest& to) {
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    refuse(fmt::format("Tool choice '{}' not found in 'tools' parameter.", name.substr(0, 130)), "tool_choice", "invalid_value");
  }
  to.tool_name = name;
  to.tool_use = ToolUse::required;
  to.parallel_calls = false;  // this function, once
}

void choose(const std::string& mode, const std::vector<std::string>& names, openai::ChatRequest& to) {
  if (mode != "none" && mode != "auto" && mode != "required") {
    openai::wrong_value("tool_choice", Json(mode), "'none', 'auto', and 'required'");
  }
  if (mode == "required" && names.empty()) {
    refuse("Tool choice 'required' must be specified with 'tools' parameter.", "tool_choice", "invalid_value");
  }
  if (!names.empty()) to.tool_use = mode == "none" ? ToolUse::none : mode == "auto" ? ToolUse::automatic : ToolUse::required;
}

// Only some of the tools may be called: the model sees no others.
void allow(Fields& choice, std::vector<std::string>& names, Json& list, openai::ChatRequest& to) {
  const std::string mode = choice.text("mode").value_or("auto");
  std::vector<std::string> allowed;
  if (const Json* tools = choice.array("tools", 0, kMostTools)) {
    for (std::size_t i = 0; i < tools->size(); ++i) {
      Fields tool = choice.within((*tools)[i], fmt::format("tool_choice.tools[{}]", i));
      if (auto name = tool.text("name")) allowed.push_back(std::move(*name));
      tool.ignore({"type", "server_label"});
      tool.finish();
    }
  }
  const auto barred = [&](const std::string& name) { return std::find(allowed.begin(), allowed.end(), name) == allowed.end(); };
  std::erase_if(names, barred);
  Json kept = Json::array();
  for (Json& tool : list) {
    if (!barred(tool["function"]["name"].get<std::string>())) kept.push_back(std::move(tool));
  }
  list = std::move(kept);
  choose(mode, names, to);
}

void read_choice(Fields& fields, std::vector<std::string>& names, Json& list, ResponseRequest& to) {
  openai::ChatRequest& chat = to.chat;
  chat.tool_use = names.empty() ? ToolUse::none : ToolUse::automatic;
  const Json* value = fields.take("tool_choice");
  to.echo["tool_choice"] = value != nullptr ? *value : Json("auto");
  if (value == nullptr) return;
  if (value->is_string()) return choose(value->get<std::string>(), names, chat);
  Fields choice = fields.within(*value, "tool_choice");
  const std::string type = choice.required_text("type");
  if (type == "function" || type == "custom") {
    require(names, choice.required_text("name"), chat);
  } else if (type == "allowed_tools") {
    allow(choice, names, list, chat);
    if (names.empty()) chat.tool_use = ToolUse::none;
  } else {
    refuse(fmt::format("Unsupported value: 'tool_choice' of type '{}': this server runs no tools itself.", type.substr(0, 60)),
           "tool_choice", "unsupported_value");
  }
  choice.finish();
}

}  // namespace

void read_tools(Fields& fields, ResponseRequest& to) {
  const Json* tools = fields.array("tools", 0, kMostTools);
  to.echo["tools"] = tools != nullptr ? *tools : Json::array();
  std::vector<std::string> names;
  Json list = Json::array();
  for (std::size_t i = 0; tools != nullptr && i < tools->size(); ++i) {
    const std::string where = fmt::format("tools[{}]", i);
    std::string name = read_tool(fields, (*tools)[i], where, list, to);
    if (name.empty()) {
      to.hosted_tools.insert((*tools)[i]["type"].get<std::string>());
    } else {
      names.push_back(std::move(name));
    }
  }
  to.chat.parallel_calls = fields.boolean("parallel_tool_calls").value_or(true);
  to.echo["parallel_tool_calls"] = to.chat.parallel_calls;
  read_choice(fields, names, list, to);
  if (!list.empty() && to.chat.tool_use != ToolUse::none) to.chat.tools = dump_json(list);
}

}  // namespace sdx::serve::responses
