#include "text/engine/request.h"

namespace sdx {

void GenerationTask::cancel() const {
  impl_->cancel.cancel();
  const std::lock_guard lock(impl_->mailbox->mutex);
  impl_->mailbox->changed.notify_all();
}

bool GenerationTask::ended() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->ended;
}

Generation GenerationTask::wait() const {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->ended; });
  if (impl_->error) std::rethrow_exception(impl_->error);
  return impl_->result;
}

void GenerationTask::Impl::end(const Generation* done, const std::exception_ptr& failure) {
  sequences.clear();
  prompt.reset();
  logits = Tensor();
  if (request.on_end) {
    try {
      request.on_end(failure ? nullptr : done, failure);
    } catch (...) {  // there is nobody left to tell
    }
  }
  // Releases the callbacks: what they refer to may be large, and may hold the task.
  request.on_token = nullptr;
  request.on_end = nullptr;
  const std::lock_guard lock(mutex);
  if (failure) {
    error = failure;
  } else {
    result = *done;
  }
  ended = true;
  changed.notify_all();
}

std::vector<text::Sequence*> GenerationTask::Impl::texts() {
  std::vector<text::Sequence*> all;
  for (text::Sequence& s : sequences) all.push_back(&s);
  if (prompt) all.push_back(&*prompt);
  return all;
}

Generation GenerationTask::Impl::collect() {
  for (text::Sequence& s : sequences) {
    if (!s.answer) continue;
    if (!s.answer->ended()) s.answer->end("cancelled");
    const int index = s.answer->index();
    choices[static_cast<std::size_t>(index)] = s.answer->take_choice();
  }
  Generation g;
  g.prompt_tokens = static_cast<std::int64_t>(request.prompt.size());
  g.cached_tokens = cached_tokens;
  for (std::optional<Choice>& c : choices) {
    g.choices.push_back(c ? std::move(*c) : Choice());
    if (!c) g.choices.back().finish_reason = "cancelled";
    g.completion_tokens += static_cast<std::int64_t>(g.choices.back().tokens.size());
  }
  const auto now = text::Clock::now();
  const auto ms = [](auto duration) { return std::chrono::duration<double, std::milli>(duration).count(); };
  if (first_token) {
    g.first_token_ms = ms(*first_token - submitted);
    // The first token of each answer comes from the prompt's logits.
    const std::int64_t steps = g.completion_tokens - begun;
    const double decoding = ms(now - *first_token);
    if (steps > 0 && decoding > 0) g.tokens_per_s = static_cast<double>(steps) / decoding * 1000.0;
    const double reading = ms(*first_token - *started);
    if (reading > 0) g.prompt_tokens_per_s = static_cast<double>(g.prompt_tokens - cached_tokens) / reading * 1000.0;
  }
  return g;
}

}  // namespace sdx
