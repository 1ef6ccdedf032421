#include "serve/responses/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text/json_text.h"
#include "serve/http/access.h"

namespace sdx::serve::responses {
namespace {

using openai::Fields;
using openai::Json;
using openai::refuse;

constexpr std::size_t kMostItems = 16384;
constexpr std::size_t kMostReferenced = 16 << 20;  // bytes: as many as a body may have

// The items of this turn; references become the items that they stand for, and what has no id gets one.
Json read_input(const Fields& fields, const Json& input, const Store& store, const std::string& owner) {
  if (input.is_string()) {
    return Json::array({{{"id", "msg_" + random_token()},
                         {"type", "message"},
                         {"role", "user"},
                         {"content", Json::array({{{"type", "input_text"}, {"text", input}}})}}});
  }
  if (!input.is_array()) openai::wrong_type("input", "a string or an array of items", input);
  if (input.size() > kMostItems)
    refuse(fmt::format("Invalid 'input': more than {} items.", kMostItems), "input", "array_above_max_length");
  Json out = Json::array();
  std::size_t referenced = 0;
  for (std::size_t i = 0; i < input.size(); ++i) {
    const std::string where = fmt::format("input[{}]", i);
    Fields item = fields.within(input[i], where);
    const std::string type = item.text("type").value_or("message");
    if (type == "item_reference") {
      const std::string id = item.required_text("id");
      const std::optional<std::string> found = store.find_item(id, owner);
      if (!found) refuse(fmt::format("Item with id '{}' not found.", id.substr(0, 100)), where, "invalid_value");
      referenced += found->size();
      if (referenced > kMostReferenced) {
        refuse(fmt::format("Invalid 'input': its references stand for more than {} bytes.", kMostReferenced), where,
               "invalid_value");
      }
      out.push_back(Json::parse(*found));
      continue;
    }
    Json copy = input[i];
    copy["type"] = type;
    if (!copy.contains("id") || !copy["id"].is_string()) copy["id"] = (type == "message" ? "msg_" : "item_") + random_token();
    out.push_back(std::move(copy));
  }
  return out;
}

void read_format(Fields& text, openai::GenerationFields& to) {
  const Json* value = text.object("format");
  if (value == nullptr) return;
  Fields format = text.within(*value, "text.format");
  const std::string type = format.required_text("type");
  if (type == "json_schema") {
    const Json& schema = format.required("schema");
    if (!schema.is_object()) openai::wrong_type("text.format.schema", "an object", schema);
    to.format = openai::FormatField{OutputFormat::json_schema, dump_json(schema), "text.format",
                                    format.boolean("strict").value_or(false)};
    format.ignore({"name", "description"});
  } else if (type == "json_object") {
    to.format = openai::FormatField{OutputFormat::json_object, "", "text.format", false};
  } else if (type != "text") {
    openai::wrong_value("text.format.type", Json(type), "'json_object', 'json_schema', and 'text'");
  }
  format.finish();
}

void read_text(Fields& fields, ResponseRequest& to) {
  to.echo["text"] = {{"format", {{"type", "text"}}}};
  if (const Json* value = fields.object("text")) {
    Fields text = fields.within(*value, "text");
    read_format(text, to.chat.generation);
    text.ignore({"verbosity"});
    text.finish();
    if (const auto format = value->find("format"); format != value->end() && format->is_object())
      to.echo["text"]["format"] = *format;
  }
}

void read_reasoning(Fields& fields, ResponseRequest& to) {
  to.echo["reasoning"] = {{"effort", nullptr}, {"summary", nullptr}};
  const Json* value = fields.object("reasoning");
  if (value == nullptr) return;
  Fields reasoning = fields.within(*value, "reasoning");
  if (const auto effort = reasoning.text("effort")) {
    if (*effort == "none") {
      to.chat.variables["enable_thinking"] = false;
    } else {
      to.chat.variables["reasoning_effort"] = *effort;
    }
    to.echo["reasoning"]["effort"] = *effort;
  }
  reasoning.ignore({"summary", "generate_summary", "context"});
  reasoning.finish();
}

void read_generation(Fields& fields, ResponseRequest& to) {
  openai::GenerationFields& g = to.chat.generation;
  g.model = fields.required_text("model");
  g.max_tokens = fields.integer("max_output_tokens", 1);
  g.sampling.temperature = fields.number("temperature", 0, 2);
  g.sampling.top_p = fields.number("top_p", 0, 1);
  g.sampling.min_p = fields.number("min_p", 0, 1);
  g.sampling.top_k = fields.integer("top_k", -1);
  g.sampling.seed = fields.integer("seed", std::numeric_limits<std::int64_t>::min());
  g.stream = fields.boolean("stream").value_or(false);
  to.store = fields.boolean("store").value_or(true);
  if (const Json* variables = fields.object("chat_template_kwargs")) to.chat.variables = *variables;
  to.echo["max_output_tokens"] = g.max_tokens ? Json(*g.max_tokens) : Json();
  to.echo["temperature"] = g.sampling.temperature ? Json(*g.sampling.temperature) : Json();
  to.echo["top_p"] = g.sampling.top_p ? Json(*g.sampling.top_p) : Json();
  to.echo["store"] = to.store;
}

// Log probabilities are one of several things that `include` may add; the others come in any case, or are of tools that run
// elsewhere.
void read_logprobs(Fields& fields, ResponseRequest& to) {
  constexpr std::size_t kMostIncluded = 64;
  const auto top = fields.integer("top_logprobs", 0, 20);
  to.echo["top_logprobs"] = top.value_or(0);
  const Json* include = fields.array("include", 0, kMostIncluded);
  if (include == nullptr) return;
  for (const Json& what : *include) {
    if (!what.is_string()) openai::wrong_type("include", "an array of strings", what);
    if (what == "message.output_text.logprobs") to.chat.logprobs = static_cast<int>(top.value_or(0));
  }
}

// Fields that the response repeats as they are.
void read_echoes(Fields& fields, ResponseRequest& to) {
  const Json* metadata = fields.object("metadata");
  to.echo["metadata"] = metadata != nullptr ? *metadata : Json::object();
  const std::string truncation = fields.text("truncation").value_or("disabled");
  if (truncation != "disabled" && truncation != "auto")
    openai::wrong_value("truncation", Json(truncation), "'auto' and 'disabled'");
  to.echo["truncation"] = "disabled";
  for (const char* name : {"user", "safety_identifier", "prompt_cache_key"}) {
    if (const auto text = fields.text(name)) to.echo[name] = *text;
  }
}

}  // namespace

ResponseRequest read_response_request(const Json& body, const Store& store, const std::string& owner) {
  openai::Ignored ignored;
  Fields fields(body, "", ignored);
  ResponseRequest r;
  read_generation(fields, r);
  const std::string instructions = fields.text("instructions").value_or("");
  r.echo["instructions"] = instructions.empty() ? Json() : Json(instructions);
  const auto previous = fields.text("previous_response_id");
  r.echo["previous_response_id"] = previous ? Json(*previous) : Json();
  if (previous) {
    r.previous = store.find(*previous, owner);
    if (!r.previous) {
      openai::ApiError error(400, fmt::format("Previous response with id '{}' not found.", previous->substr(0, 100)));
      error.param = "previous_response_id";
      error.code = "previous_response_not_found";
      throw error;
    }
  }
  r.input = read_input(fields, fields.required("input"), store, owner);
  Json items = r.previous ? r.previous->conversation() : Json::array();
  for (const Json& item : r.input) items.push_back(item);
  r.chat.messages = messages_of(fields, items, instructions);
  if (r.chat.messages.empty()) refuse("Invalid 'input': there is nothing to answer.", "input", "empty_array");
  read_tools(fields, r);
  read_text(fields, r);
  read_reasoning(fields, r);
  read_echoes(fields, r);
  fields.unsupported("background", "Responses are given at once, or as a stream.");
  fields.unsupported("conversation", "Use 'previous_response_id'.");
  fields.unsupported("prompt", "This server stores no prompts. Send 'input'.");
  read_logprobs(fields, r);
  fields.ignore(
      {"max_tool_calls", "service_tier", "prompt_cache_retention", "stream_options", "context_management", "client_metadata"});
  fields.finish();
  for (const std::string& type : r.hosted_tools) ignored.add("tools[]." + type);
  r.chat.generation.ignored = std::move(ignored);
  return r;
}

}  // namespace sdx::serve::responses
