#include "serve/openai/chat/single_answer.h"

#include <algorithm>

namespace sdx::serve::openai {

SingleAnswer::SingleAnswer(const PreparedChat& prepared, const ChatRequest& request)
    : parser_(prepared.format, request.tools, prepared.prompt),
      prompt_tokens_(prepared.prompt_tokens),
      parallel_calls_(request.parallel_calls),
      stream_(request.generation.stream) {
  if (request.logprobs < 0) return;
  const LanguageModel& model = prepared.found.model->language->model;
  texts_ = prepared.found.facts->texts(model);
  ends_ = end_tokens(prepared.job.settings, model.info());
}

bool SingleAnswer::add(const GeneratedToken& token, std::string& out) {
  if (over_) return false;
  if (texts_ && token.logprob && std::find(ends_.begin(), ends_.end(), token.id) == ends_.end()) {
    waiting_.push_back({*token.logprob, token.top, token.text});
  }
  const std::vector<AnswerEvent> events = parser_.add(token.text);
  const auto reasons = [](const AnswerEvent& e) { return e.kind == AnswerEvent::Kind::reasoning; };
  if (std::any_of(events.begin(), events.end(), reasons)) ++reasoning_tokens_;
  write_all(events, out);
  return !over_;
}

void SingleAnswer::write_all(const std::vector<AnswerEvent>& events, std::string& out) {
  for (const AnswerEvent& event : events) {
    if (texts_) take_scores(event);
    if (stream_) write(event, out);
    if (event.kind == AnswerEvent::Kind::call_end && !parallel_calls_) {
      over_ = true;  // the one call that was asked for
      return;
    }
  }
}

// The tokens of a text are those that it was cut from; those before it were marks, those behind it wait for what follows.
void SingleAnswer::take_scores(const AnswerEvent& event) {
  part_scores_.clear();
  const bool content = event.kind == AnswerEvent::Kind::content;
  if (!content && event.kind != AnswerEvent::Kind::reasoning) {
    waiting_.clear();
    return;
  }
  std::string all;
  for (const Score& score : waiting_) all += score.text;
  const std::size_t found = all.find(event.text);
  const std::size_t begin = found == std::string::npos ? 0 : found;
  const std::size_t end = found == std::string::npos ? all.size() + 1 : found + event.text.size();
  std::size_t at = 0, taken = 0;
  for (const Score& score : waiting_) {
    if (at >= end) break;
    const std::size_t next = at + score.text.size();
    // Those that added no text are the beginning of the next one's character.
    if (score.text.empty() ? at >= begin : next > begin) {
      if (!part_scores_.empty()) part_scores_ += ',';
      append_score(part_scores_, score, *texts_);
    }
    at = next;
    ++taken;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(taken));
  std::string& to = content ? content_scores_ : reasoning_scores_;
  if (!to.empty() && !part_scores_.empty()) to += ',';
  to += part_scores_;
}

void SingleAnswer::append_score(std::string& out, const Score& score, const TokenTexts& texts) const {
  texts.append_logprobs(out, score.token, score.top);
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
