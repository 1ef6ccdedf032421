#include "serve/anthropic/requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/json_text.h"

namespace sdx::serve::anthropic {
namespace {

using openai::Fields;
using openai::Json;
using openai::refuse;
using openai::ToolUse;

constexpr std::size_t kMostTools = 1024, kMostStops = 128, kLongestStop = 1024;

std::string read_tool(const Fields& fields, const Json& value, const std::string& where, Json& out, openai::ChatRequest& to) {
  Fields tool = fields.within(value, where);
  if (const auto type = tool.text("type"); type && *type != "custom") {
    refuse(fmt::format("{}: tools of type '{}' are not supported: this server runs none itself. Give the tool an 'input_schema'.",
                       where, type->substr(0, 60)),
           where, "unsupported_value");
  }
  std::string name = tool.required_text("name");
  if (!openai::is_function_name(name, 128)) {
    refuse(fmt::format("{}.name: String should match pattern '^[a-zA-Z0-9_.-]{{1,128}}$'", where), where + ".name",
           "invalid_value");
  }
  Json function = {{"name", name}};
  if (const auto description = tool.text("description")) function["description"] = *description;
  const Json& schema = tool.required("input_schema");
  if (!schema.is_object()) openai::wrong_type(where + ".input_schema", "an object", schema);
  function["parameters"] = schema;
  if (tool.boolean("strict").value_or(false)) to.strict_tools.push_back(name);
  tool.ignore({"cache_control", "input_examples", "defer_loading", "allowed_callers", "eager_input_streaming"});
  tool.finish();
  out.push_back({{"type", "function"}, {"function", std::move(function)}});
  return name;
}

void read_choice(Fields& fields, const std::vector<std::string>& names, openai::ChatRequest& to) {
  const Json* value = fields.take("tool_choice");
  to.tool_use = names.empty() ? ToolUse::none : ToolUse::automatic;
  if (value == nullptr) return;
  Fields choice = fields.within(*value, "tool_choice");
  const std::string type = choice.required_text("type");
  to.parallel_calls = !choice.boolean("disable_parallel_tool_use").value_or(false);
  if (type == "none") {
    to.tool_use = ToolUse::none;
  } else if (type == "any" || type == "tool") {
    if (names.empty()) refuse("tool_choice: may only be specified while providing tools", "tool_choice", "invalid_value");
    to.tool_use = ToolUse::required;
  } else if (type != "auto") {
    openai::wrong_value("tool_choice.type", Json(type), "'auto', 'any', 'tool' and 'none'");
  }
  if (type == "tool") {
    to.tool_name = choice.required_text("name");
    if (std::find(names.begin(), names.end(), to.tool_name) == names.end()) {
      refuse(fmt::format("tool_choice.name: no tool named '{}' was specified in 'tools'", to.tool_name.substr(0, 130)),
             "tool_choice.name", "invalid_value");
    }
    to.parallel_calls = false;  // this tool, once
  }
  choice.finish();
}

// Thinking that was not asked for is not shown, and left out where the template can say so.
void read_thinking(Fields& fields, MessageRequest& to) {
  if (const Json* value = fields.take("thinking")) {
    Fields thinking = fields.within(*value, "thinking");
    const std::string type = thinking.required_text("type");
    if (type != "enabled" && type != "disabled" && type != "adaptive") {
      openai::wrong_value("thinking.type", Json(type), "'enabled', 'disabled' and 'adaptive'");
    }
    to.thinking = type != "disabled";
    to.omit_thinking = thinking.text("display").value_or("") == "omitted";
    thinking.integer("budget_tokens", 0);
    thinking.finish();
  }
  to.chat.variables["enable_thinking"] = to.thinking;
}

void set_schema(openai::GenerationFields& to, Fields& format, const std::string& param) {
  if (const std::string type = format.required_text("type"); type != "json_schema") {
    openai::wrong_value(param + ".type", Json(type), "'json_schema'");
  }
  const Json& schema = format.required("schema");
  if (!schema.is_object()) openai::wrong_type(param + ".schema", "an object", schema);
  to.format = openai::FormatField{OutputFormat::json_schema, dump_json(schema), param, false};
  format.ignore({"name", "strict"});
  format.finish();
}

void read_output(Fields& fields, openai::ChatRequest& to) {
  if (const Json* config = fields.object("output_config")) {
    Fields of = fields.within(*config, "output_config");
    if (const auto effort = of.text("effort")) to.variables["reasoning_effort"] = *effort;
    if (const Json* format = of.object("format")) {
      Fields inner = of.within(*format, "output_config.format");
      set_schema(to.generation, inner, "output_config.format");
    }
    of.finish();
  }
  if (const Json* format = fields.object("output_format")) {
    Fields of = fields.within(*format, "output_format");
    set_schema(to.generation, of, "output_format");
  }
}

void read_stops(Fields& fields, openai::GenerationFields& to) {
  const Json* stops = fields.array("stop_sequences", 0, kMostStops);
  if (stops == nullptr) return;
  for (std::size_t i = 0; i < stops->size(); ++i) {
    const std::string param = fmt::format("stop_sequences.{}", i);
    const Json& stop = (*stops)[i];
    if (!stop.is_string()) openai::wrong_type(param, "a string", stop);
    const auto& text = stop.get_ref<const std::string&>();
    if (text.empty() || text.size() > kLongestStop) {
      refuse(fmt::format("{}: a stop sequence must have 1 to {} bytes, but has {}", param, kLongestStop, text.size()), param,
             "invalid_value");
    }
    to.stop.push_back(text);
  }
}

void read_generation(Fields& fields, openai::GenerationFields& to, bool counting) {
  to.model = fields.required_text("model");
  if (!counting) fields.required("max_tokens");
  to.max_tokens = fields.integer("max_tokens", 1);
  to.sampling.temperature = fields.number("temperature", 0, 2);
  to.sampling.top_p = fields.number("top_p", 0, 1);
  to.sampling.top_k = fields.integer("top_k", 0);
  read_stops(fields, to);
  to.stream = fields.boolean("stream").value_or(false);
}

void read_offers(Fields& fields, openai::ChatRequest& to) {
  const Json* tools = fields.array("tools", 0, kMostTools);
  std::vector<std::string> names;
  if (tools != nullptr && !tools->empty()) {
    Json list = Json::array();
    for (std::size_t i = 0; i < tools->size(); ++i) {
      names.push_back(read_tool(fields, (*tools)[i], fmt::format("tools.{}", i), list, to));
    }
    to.tools = dump_json(list);
  }
  read_choice(fields, names, to);
  if (to.tool_use == ToolUse::none) to.tools.clear();
}

}  // namespace

MessageRequest read_message_request(const Json& body, bool counting) {
  openai::Ignored ignored;
  Fields fields(body, "", ignored);
  MessageRequest r;
  read_generation(fields, r.chat.generation, counting);
  read_conversation(fields, r.chat);
  read_offers(fields, r.chat);
  read_thinking(fields, r);
  read_output(fields, r.chat);
  fields.unsupported("mcp_servers", "This server calls no others.");
  fields.unsupported("container", "This server runs no programs.");
  fields.ignore({"metadata", "service_tier", "betas", "context_management", "inference_geo", "speed", "cache_control"});
  fields.finish();
  r.chat.generation.ignored = std::move(ignored);
  return r;
}

}  // namespace sdx::serve::anthropic
