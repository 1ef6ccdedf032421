#include "serve/openai/chat/single_answer.h"

#include <algorithm>

namespace sdx::serve::openai {

SingleAnswer::SingleAnswer(const PreparedChat& prepared, const ChatRequest& request)
    : parser_(prepared.format, request.tools, prepared.prompt),
      prompt_tokens_(prepared.prompt_tokens),
      parallel_calls_(request.parallel_calls),
      stream_(request.generation.stream) {}

bool SingleAnswer::add(const GeneratedToken& token, std::string& out) {
  if (over_) return false;
  const std::vector<AnswerEvent> events = parser_.add(token.text);
  const auto reasons = [](const AnswerEvent& e) { return e.kind == AnswerEvent::Kind::reasoning; };
  if (std::any_of(events.begin(), events.end(), reasons)) ++reasoning_tokens_;
  write_all(events, out);
  return !over_;
}

void SingleAnswer::write_all(const std::vector<AnswerEvent>& events, std::string& out) {
  for (const AnswerEvent& event : events) {
    if (stream_) write(event, out);
    if (event.kind == AnswerEvent::Kind::call_end && !parallel_calls_) {
      over_ = true;  // the one call that was asked for
      return;
    }
  }
}

void SingleAnswer::end(std::string& out) {
  if (!over_) write_all(parser_.finish(), out);
  over_ = true;
}

std::span<const ToolCall> SingleAnswer::calls() const {
  const std::vector<ToolCall>& all = parser_.answer().calls;
  return std::span(all).first(parallel_calls_ ? all.size() : std::min<std::size_t>(all.size(), 1));
}

Usage SingleAnswer::usage(const Generation& generation) const {
  Usage usage;
  usage.add(generation);
  usage.reasoning = reasoning_tokens_;
  return usage;
}

bool SingleAnswer::cut_short(const Generation& generation) const {
  return generation.choices.empty() || (generation.choices.front().finish_reason == "cancelled" && !over_);
}

}  // namespace sdx::serve::openai
