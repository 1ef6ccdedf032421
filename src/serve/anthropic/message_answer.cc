#include "serve/anthropic/message_answer.h"

#include <fmt/format.h>

#include "base/text/json_text.h"

namespace sdx::serve::anthropic {
namespace {

void append_event(std::string& out, std::string_view name, std::string_view data) {
  out += "event: ";
  out += name;
  out += "\ndata: ";
  out += data;
  out += "\n\n";
}

// Ids of calls begin as clients know them; those that a model made stay as they are.
std::string tool_id(const std::string& id) { return id.starts_with("call_") ? "toolu_" + id.substr(5) : id; }

std::string tool_start(const std::string& id, const std::string& name, std::string_view input) {
  std::string out = R"({"type":"tool_use","id":)";
  append_json_string(out, tool_id(id));
  out += ",\"name\":";
  append_json_string(out, name);
  out += ",\"input\":";
  out += input;
  return out + '}';
}

std::string message_head(const MessageOptions& options) {
  std::string out = R"({"id":)";
  append_json_string(out, options.id);
  out += R"(,"type":"message","role":"assistant","model":)";
  append_json_string(out, options.model);
  return out;
}

}  // namespace

MessageAnswer::MessageAnswer(const openai::PreparedChat& prepared, const openai::ChatRequest& request, MessageOptions options)
    : SingleAnswer(prepared, request), options_(std::move(options)) {}

std::string MessageAnswer::begin() {
  std::string out;
  append_event(out, "message_start",
               R"({"type":"message_start","message":)" + message_head(options_) +
                   fmt::format(R"(,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":{},)"
                               R"("cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}}}})",
                               prompt_tokens()));
  append_event(out, "ping", R"({"type":"ping"})");
  return out;
}

void MessageAnswer::open(Block block, const std::string& start, std::string& out) {
  close(out);
  block_ = block;
  ++index_;
  append_event(out, "content_block_start",
               fmt::format(R"({{"type":"content_block_start","index":{},"content_block":{}}})", index_, start));
}

void MessageAnswer::close(std::string& out) {
  if (block_ == Block::none) return;
  // A signature tells Anthropic that thinking is its own; here there is nothing to tell.
  if (block_ == Block::thinking) delta("signature_delta", "signature", "", out);
  append_event(out, "content_block_stop", fmt::format(R"({{"type":"content_block_stop","index":{}}})", index_));
  block_ = Block::none;
}

void MessageAnswer::delta(std::string_view type, std::string_view field, std::string_view text, std::string& out) const {
  std::string data = fmt::format(R"({{"type":"content_block_delta","index":{},"delta":{{"type":"{}","{}":)", index_, type, field);
  append_json_string(data, text);
  append_event(out, "content_block_delta", data + "}}");
}

void MessageAnswer::open_text(std::string& out) {
  if (block_ != Block::text) open(Block::text, R"({"type":"text","text":""})", out);
}

void MessageAnswer::write(const AnswerEvent& event, std::string& out) {
  switch (event.kind) {
    case AnswerEvent::Kind::content:
      open_text(out);
      delta("text_delta", "text", event.text, out);
      break;
    case AnswerEvent::Kind::reasoning:
      if (!options_.thinking) break;
      if (block_ != Block::thinking) open(Block::thinking, R"({"type":"thinking","thinking":"","signature":""})", out);
      if (!options_.omit_thinking) delta("thinking_delta", "thinking", event.text, out);
      break;
    case AnswerEvent::Kind::call_begin: open(Block::tool, tool_start(event.id, event.name, "{}"), out); break;
    case AnswerEvent::Kind::arguments: delta("input_json_delta", "partial_json", event.text, out); break;
    case AnswerEvent::Kind::call_end: close(out); break;
  }
}

std::string MessageAnswer::stop_fields(const Generation& generation) const {
  const Choice& choice = generation.choices.front();
  const bool length = choice.finish_reason == "length";
  std::string_view reason = "end_turn";
  if (length) {
    reason = options_.shortened ? "model_context_window_exceeded" : "max_tokens";
  } else if (!calls().empty()) {
    reason = "tool_use";
  } else if (!choice.stop.empty()) {
    reason = "stop_sequence";
  }
  std::string out = fmt::format(R"("stop_reason":"{}","stop_sequence":)", reason);
  return out + (reason == "stop_sequence" ? json_string(choice.stop) : "null");
}

std::string MessageAnswer::usage_json(const Generation& generation) const {
  const openai::Usage u = usage(generation);
  return fmt::format(R"({{"input_tokens":{},"cache_creation_input_tokens":0,"cache_read_input_tokens":{},"output_tokens":{}}})",
                     u.prompt - u.cached, u.cached, u.completion);
}

void MessageAnswer::finish(const Generation& generation, std::string& out) {
  end(out);
  if (index_ < 0) open_text(out);  // an empty answer
  close(out);
  append_event(out, "message_delta",
               R"({"type":"message_delta","delta":{)" + stop_fields(generation) + R"(},"usage":)" + usage_json(generation) + "}");
  append_event(out, "message_stop", R"({"type":"message_stop"})");
}

std::string MessageAnswer::whole(const Generation& generation) {
  std::string nowhere;
  end(nowhere);
  const ParsedAnswer& answer = parsed();
  std::string blocks;
  const auto next = [&] {
    if (!blocks.empty()) blocks += ',';
  };
  if (options_.thinking && !answer.reasoning.empty()) {
    blocks += R"({"type":"thinking","thinking":)";
    append_json_string(blocks, options_.omit_thinking ? std::string_view() : std::string_view(answer.reasoning));
    blocks += R"(,"signature":""})";
  }
  if (!answer.content.empty() || calls().empty()) {
    next();
    blocks += R"({"type":"text","text":)";
    append_json_string(blocks, answer.content);
    blocks += '}';
  }
  for (const ToolCall& call : calls()) {
    next();
    // A call that the end of the answer cut off has no input that could be read.
    blocks += tool_start(call.id, call.name, call.complete ? std::string_view(call.arguments) : "{}");
  }
  return message_head(options_) + ",\"content\":[" + blocks + "]," + stop_fields(generation) +
         ",\"usage\":" + usage_json(generation) + "}";
}

}  // namespace sdx::serve::anthropic
