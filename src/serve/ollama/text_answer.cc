#include "serve/ollama/text_answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/json_text.h"
#include "serve/openai/chat/time_text.h"

namespace sdx::serve::ollama {
namespace {

std::string answer_head(const std::string& model) {
  std::string out = "{\"model\":";
  append_json_string(out, model);
  return out + ",\"created_at\":\"" + openai::time_text(std::chrono::system_clock::now()) + "\",";
}

std::int64_t nanoseconds(TextAnswer::Clock::duration time) {
  return std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

}  // namespace

std::string loaded_answer(const std::string& model, Kind kind) {
  return answer_head(model) + (kind == Kind::chat ? R"("message":{"role":"assistant","content":""},)" : R"("response":"",)") +
         R"("done":true,"done_reason":"load"})";
}

TextAnswer::TextAnswer(const openai::PreparedChat& prepared, const openai::ChatRequest& request, Kind kind,
                       Clock::time_point arrived)
    : SingleAnswer(prepared, request), kind_(kind), model_(request.generation.model), arrived_(arrived), begun_(Clock::now()) {}

// The answer's content, whole or in part: "message":{…} or "response":"…".
void TextAnswer::append_part(std::string& out, std::string_view content, std::string_view thinking,
                             std::string_view calls) const {
  out += kind_ == Kind::chat ? R"("message":{"role":"assistant","content":)" : "\"response\":";
  append_json_string(out, content);
  if (!thinking.empty()) {
    out += ",\"thinking\":";
    append_json_string(out, thinking);
  }
  if (!calls.empty()) {
    out += ",\"tool_calls\":[";
    out += calls;
    out += ']';
  }
  if (kind_ == Kind::chat) out += '}';
}

void TextAnswer::append_line(std::string& out, std::string_view content, std::string_view thinking,
                             std::string_view calls) const {
  out += answer_head(model_);
  append_part(out, content, thinking, calls);
  append_scores(out, calls.empty() ? part_scores() : std::string());
  out += ",\"done\":false}\n";
}

void TextAnswer::append_scores(std::string& out, const std::string& scores) const {
  if (scores.empty()) return;
  out += ",\"logprobs\":[";
  out += scores;
  out += ']';
}

std::string TextAnswer::call_json(std::size_t index) const {
  const ToolCall& call = parsed().calls[index];
  if (!call.complete) return {};  // the end of the answer cut it off
  std::string out = "{\"id\":";
  append_json_string(out, call.id);
  out += fmt::format(",\"function\":{{\"index\":{},\"name\":", index);
  append_json_string(out, call.name);
  out += ",\"arguments\":";
  // A line has no line ends within, whatever the model wrote between its values.
  const std::optional<openai::Json> arguments = openai::read_json(call.arguments);
  out += arguments ? dump_json(*arguments) : "{}";
  return out + "}}";
}

void TextAnswer::write(const AnswerEvent& event, std::string& out) {
  if (event.kind == AnswerEvent::Kind::content) append_line(out, event.text, {}, {});
  if (event.kind == AnswerEvent::Kind::reasoning) append_line(out, {}, event.text, {});
  if (event.kind != AnswerEvent::Kind::call_end) return;
  const std::string call = call_json(static_cast<std::size_t>(event.index));
  if (!call.empty()) append_line(out, {}, {}, call);
}

std::string TextAnswer::end_fields(const Generation& generation) const {
  const Clock::time_point now = Clock::now();
  const auto first =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(generation.first_token_ms));
  const bool length = generation.choices.front().finish_reason == "length";
  return fmt::format(
      R"(,"done":true,"done_reason":"{}","total_duration":{},"load_duration":{},"prompt_eval_count":{},"prompt_eval_duration":{},)"
      R"("eval_count":{},"eval_duration":{}}})",
      length ? "length" : "stop", nanoseconds(now - arrived_), nanoseconds(begun_ - arrived_), generation.prompt_tokens,
      nanoseconds(first), generation.completion_tokens, nanoseconds(now - begun_ - first));
}

void TextAnswer::finish(const Generation& generation, std::string& out) {
  end(out);
  out += answer_head(model_);
  append_part(out, {}, {}, {});
  out += end_fields(generation) + "\n";
}

std::string TextAnswer::whole(const Generation& generation) {
  std::string nowhere, all;
  end(nowhere);
  for (std::size_t i = 0; i < calls().size(); ++i) {
    const std::string call = call_json(i);
    if (!all.empty() && !call.empty()) all += ',';
    all += call;
  }
  std::string out = answer_head(model_);
  append_part(out, parsed().content, parsed().reasoning, all);
  const std::string &thinking = scores(AnswerEvent::Kind::reasoning), &content = scores(AnswerEvent::Kind::content);
  append_scores(out, thinking + (thinking.empty() || content.empty() ? "" : ",") + content);
  return out + end_fields(generation);
}

}  // namespace sdx::serve::ollama
