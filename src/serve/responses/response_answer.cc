#include "serve/responses/response_answer.h"

#include <fmt/format.h>

#include <iterator>

#include "base/text/json_text.h"
#include "serve/http/access.h"

namespace sdx::serve::responses {
namespace {

using openai::Json;

// `scores`: members of the list of log probabilities.
Json text_part(std::string_view type, const std::string& text, const std::string& scores = {}) {
  Json part = {{"type", type}, {"text", text}};
  if (type != "output_text") return part;
  part["annotations"] = Json::array();
  part["logprobs"] = Json::parse("[" + scores + "]");
  return part;
}

Json reasoning_item() {
  return {{"id", "rs_" + random_token()},
          {"type", "reasoning"},
          {"summary", Json::array()},
          {"content", Json::array()},
          {"status", "in_progress"}};
}

Json message_item() {
  return {{"id", "msg_" + random_token()},
          {"type", "message"},
          {"status", "in_progress"},
          {"role", "assistant"},
          {"content", Json::array()}};
}

// The text that a tool of type custom gets: the model wrote an object around it.
std::string custom_input(const std::string& arguments) {
  const std::optional<Json> parsed = openai::read_json(arguments);
  if (!parsed || !parsed->is_object()) return arguments;
  const auto input = parsed->find("input");
  return input != parsed->end() && input->is_string() ? input->get<std::string>() : arguments;
}

}  // namespace

ResponseAnswer::ResponseAnswer(const openai::PreparedChat& prepared, const openai::ChatRequest& request, ResponseOptions options)
    : SingleAnswer(prepared, request), options_(std::move(options)), model_(request.generation.model) {}

Json ResponseAnswer::response(std::string_view status) const {
  Json out = {{"id", options_.id},
              {"object", "response"},
              {"created_at", options_.created},
              {"status", status},
              {"background", false},
              {"error", nullptr},
              {"incomplete_details", nullptr},
              {"model", model_},
              {"output", Json::array()},
              {"service_tier", "default"},
              {"usage", nullptr}};
  for (const auto& [name, value] : options_.echo.items()) out[name] = value;
  return out;
}

Json ResponseAnswer::ended(const Generation& generation, Json output) const {
  const bool length = generation.choices.front().finish_reason == "length";
  Json out = response(length ? "incomplete" : "completed");
  if (length) out["incomplete_details"] = {{"reason", "max_output_tokens"}};
  out["output"] = std::move(output);
  const openai::Usage u = usage(generation);
  out["usage"] = {{"input_tokens", u.prompt},
                  {"input_tokens_details", {{"cached_tokens", u.cached}}},
                  {"output_tokens", u.completion},
                  {"output_tokens_details", {{"reasoning_tokens", u.reasoning}}},
                  {"total_tokens", u.prompt + u.completion}};
  return out;
}

void ResponseAnswer::event(std::string_view type, Json fields, std::string& out) {
  Json data = {{"type", type}, {"sequence_number", sequence_++}};
  for (auto& [name, value] : fields.items()) data[name] = std::move(value);
  out += "event: ";
  out += type;
  out += "\ndata: " + dump_json(data) + "\n\n";
}

std::string ResponseAnswer::begin() {
  std::string out;
  event("response.created", {{"response", response("in_progress")}}, out);
  event("response.in_progress", {{"response", response("in_progress")}}, out);
  return out;
}

Json ResponseAnswer::place() const { return {{"item_id", item_["id"]}, {"output_index", items_.size()}, {"content_index", 0}}; }

void ResponseAnswer::open(Open kind, Json item, std::string& out) {
  close("completed", out);
  open_ = kind;
  item_ = std::move(item);
  text_.clear();
  scores_.clear();
  place_text_ = fmt::format("\"item_id\":{},\"output_index\":{}", dump_json(item_["id"]), items_.size());
  if (kind != Open::call) place_text_ += ",\"content_index\":0";
  event("response.output_item.added", {{"output_index", items_.size()}, {"item", item_}}, out);
  if (kind == Open::call) return;
  Json fields = place();
  fields["part"] = text_part(kind == Open::message ? "output_text" : "reasoning_text", "");
  event("response.content_part.added", std::move(fields), out);
}

// Comes for every token, on the engine's thread: written without a document.
void ResponseAnswer::add_delta(std::string_view name, const std::string& text, std::string& out) {
  text_ += text;
  fmt::format_to(std::back_inserter(out), "event: {0}\ndata: {{\"type\":\"{0}\",\"sequence_number\":{1},{2},\"delta\":", name,
                 sequence_++, place_text_);
  append_json_string(out, text);
  if (open_ != Open::message) {
    out += "}\n\n";
    return;
  }
  out += ",\"logprobs\":[";
  out += part_scores();
  out += "]}\n\n";
  if (!scores_.empty() && !part_scores().empty()) scores_ += ',';
  scores_ += part_scores();
}

void ResponseAnswer::close_text(std::string& out) {
  const bool message = open_ == Open::message;
  const Json part = text_part(message ? "output_text" : "reasoning_text", text_, scores_);
  Json fields = place();
  fields["text"] = text_;
  if (message) fields["logprobs"] = part["logprobs"];
  event(message ? "response.output_text.done" : "response.reasoning_text.done", std::move(fields), out);
  fields = place();
  fields["part"] = part;
  event("response.content_part.done", std::move(fields), out);
  item_["content"] = Json::array({part});
}

void ResponseAnswer::close_call(std::string& out) {
  Json fields = place();
  fields.erase("content_index");
  if (item_["type"] == "custom_tool_call") {
    const std::string input = custom_input(text_);
    item_["input"] = input;
    Json delta = fields;
    delta["delta"] = input;
    event("response.custom_tool_call_input.delta", std::move(delta), out);
    fields["input"] = input;
    event("response.custom_tool_call_input.done", std::move(fields), out);
    return;
  }
  item_["arguments"] = text_;
  fields["name"] = item_["name"];
  fields["arguments"] = text_;
  event("response.function_call_arguments.done", std::move(fields), out);
}

void ResponseAnswer::close(std::string_view status, std::string& out) {
  if (open_ == Open::none) return;
  if (open_ == Open::call) {
    close_call(out);
  } else {
    close_text(out);
  }
  item_["status"] = status;
  event("response.output_item.done", {{"output_index", items_.size()}, {"item", item_}}, out);
  items_.push_back(std::move(item_));
  open_ = Open::none;
}

Json ResponseAnswer::call_item(const ToolCall& call, bool whole) const {
  const bool custom = options_.custom_tools.contains(call.name);
  Json item = {{"id", (custom ? "ctc_" : "fc_") + random_token()},
               {"type", custom ? "custom_tool_call" : "function_call"},
               {"status", !whole          ? "in_progress"
                          : call.complete ? "completed"
                                          : "incomplete"},
               {"call_id", call.id},
               {"name", call.name}};
  const std::string given = whole ? call.arguments : std::string();
  item[custom ? "input" : "arguments"] = custom && whole ? custom_input(given) : given;
  return item;
}

void ResponseAnswer::write(const AnswerEvent& event, std::string& out) {
  switch (event.kind) {
    case AnswerEvent::Kind::content:
      if (open_ != Open::message) open(Open::message, message_item(), out);
      add_delta("response.output_text.delta", event.text, out);
      break;
    case AnswerEvent::Kind::reasoning:
      if (open_ != Open::reasoning) open(Open::reasoning, reasoning_item(), out);
      add_delta("response.reasoning_text.delta", event.text, out);
      break;
    case AnswerEvent::Kind::call_begin: open(Open::call, call_item({event.id, event.name, "", false}, false), out); break;
    case AnswerEvent::Kind::arguments:
      if (item_["type"] == "custom_tool_call") {
        text_ += event.text;
      } else {
        add_delta("response.function_call_arguments.delta", event.text, out);
      }
      break;
    case AnswerEvent::Kind::call_end: close(event.complete ? "completed" : "incomplete", out); break;
  }
}

void ResponseAnswer::finish(const Generation& generation, std::string& out) {
  end(out);
  const bool length = generation.choices.front().finish_reason == "length";
  if (open_ == Open::none && items_.empty()) open(Open::message, message_item(), out);  // an empty answer
  close(length ? "incomplete" : "completed", out);
  Json response = ended(generation, items_);
  if (options_.completed) options_.completed(response);
  event(length ? "response.incomplete" : "response.completed", {{"response", std::move(response)}}, out);
}

std::string ResponseAnswer::whole(const Generation& generation) {
  std::string nowhere;
  end(nowhere);
  const ParsedAnswer& answer = parsed();
  const bool length = generation.choices.front().finish_reason == "length";
  const std::string_view status = length ? "incomplete" : "completed";
  Json output = Json::array();
  const auto add = [&](Json item, std::string_view part, const std::string& text, std::string_view its_status) {
    item["content"] = Json::array({text_part(part, text, scores(AnswerEvent::Kind::content))});
    item["status"] = its_status;
    output.push_back(std::move(item));
  };
  const bool only_reasoning = answer.content.empty() && calls().empty() && length;
  if (!answer.reasoning.empty()) add(reasoning_item(), "reasoning_text", answer.reasoning, only_reasoning ? status : "completed");
  if (!answer.content.empty() || (calls().empty() && output.empty())) {
    add(message_item(), "output_text", answer.content, calls().empty() ? status : "completed");
  }
  for (const ToolCall& call : calls()) output.push_back(call_item(call, true));
  const Json response = ended(generation, std::move(output));
  if (options_.completed) options_.completed(response);
  return dump_json(response);
}

std::string ResponseAnswer::failure(const openai::ApiError& error) {
  Json failed = response("failed");
  failed["error"] = {{"code", error.code.value_or("server_error")}, {"message", error.message}};
  std::string out;
  event("response.failed", {{"response", std::move(failed)}}, out);
  return out;
}

}  // namespace sdx::serve::responses
