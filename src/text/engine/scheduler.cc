#include "text/engine/scheduler.h"

#include <algorithm>

#include "base/error.h"

namespace sdx::text {
namespace {

std::exception_ptr error_of(ErrorCode code, const std::string& message) { return std::make_exception_ptr(Error(code, message)); }

}  // namespace

Scheduler::Scheduler(std::shared_ptr<const Decoder> decoder, LanguageModelInfo info, const EngineOptions& options,
                     std::shared_ptr<Mailbox> mailbox)
    : decoder_(std::move(decoder)), info_(std::move(info)), options_(options), mailbox_(std::move(mailbox)) {
  mailbox_->free = static_cast<std::size_t>(options_.max_sequences);
  status_.cache_limit = options_.cache_bytes;
  status_.batches = false;
  status_.why_not = "each text has a cache of its own";
}

void Scheduler::note(const std::function<void(EngineStatus&)>& change) {
  const std::lock_guard lock(mutex_);
  change(status_);
}

EngineStatus Scheduler::status() const {
  EngineStatus s;
  {
    const std::lock_guard lock(mutex_);
    s = status_;
  }
  const std::lock_guard lock(mailbox_->mutex);
  s.waiting += static_cast<int>(mailbox_->arrived.size());
  return s;
}

void Scheduler::submitted() {
  note([](EngineStatus& s) { ++s.requests; });
}

void Scheduler::count_requests() {
  note([&](EngineStatus& s) {
    s.running = static_cast<int>(running_.size());
    s.waiting = static_cast<int>(waiting_.size());
  });
  const std::lock_guard lock(mailbox_->mutex);
  mailbox_->waiting = waiting_.size() + mailbox_->arrived.size();
  mailbox_->free = static_cast<std::size_t>(std::max(0, options_.max_sequences - active()));
}

void Scheduler::run() {
  while (take_mail()) {
    end_overdue();
    admit();
    begin_answers();
    std::vector<Part> parts = plan();
    if (parts.empty()) continue;
    compute(parts);
    choose(parts);
    settle(parts);
  }
  while (!running_.empty()) end(running_.front(), nullptr, true);
  while (!waiting_.empty()) end(waiting_.front(), nullptr, true);
}

// Waits for something to do; false: there is nothing more to come.
bool Scheduler::take_mail() {
  std::unique_lock lock(mailbox_->mutex);
  if (running_.empty() && waiting_.empty()) {
    mailbox_->changed.wait(lock, [&] { return mailbox_->stop || !mailbox_->arrived.empty(); });
  }
  const bool stop = mailbox_->stop;
  waiting_.insert(waiting_.end(), mailbox_->arrived.begin(), mailbox_->arrived.end());
  mailbox_->arrived.clear();
  lock.unlock();
  count_requests();
  return !stop;
}

void Scheduler::end_overdue() {
  std::vector<Task> all(running_.begin(), running_.end());
  all.insert(all.end(), waiting_.begin(), waiting_.end());
  const auto now = Clock::now();
  for (const Task& t : all) {
    if (t->cancel.cancelled()) {
      end(t, nullptr, true);
    } else if (t->request.settings.run.cancel && t->request.settings.run.cancel->cancelled()) {
      end(t, error_of(ErrorCode::cancelled, "the request was cancelled"));
    } else if (t->request.deadline && now >= *t->request.deadline) {
      end(t, error_of(ErrorCode::deadline_exceeded, "the request's deadline has passed"));
    }
  }
}

int Scheduler::active() const {
  int n = 0;
  for (const Task& t : running_) n += static_cast<int>(t->sequences.size()) + (t->prompt ? 1 : 0);
  return n;
}

void Scheduler::admit() {
  while (!waiting_.empty() && active() < options_.max_sequences && fits(waiting_.front())) {
    const Task task = waiting_.front();
    waiting_.pop_front();
    running_.push_back(task);
    if (!task->started) task->started = Clock::now();
    task->prompt.emplace(Sequence{DecoderState(decoder_), task->request.prompt, nullptr, nullptr});
  }
  count_requests();
}

namespace {

std::uint64_t bytes_per_token(const Decoder& d) {
  return static_cast<std::uint64_t>(2 * d.layers * d.kv_heads) * byte_size(d.cache_type, d.head_size);
}

}  // namespace

std::int64_t Scheduler::most_tokens(const GenerationRequest& request) const {
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  std::int64_t most = request.settings.max_tokens;
  if (info_.context > 0) most = std::min(most, info_.context - prompt + 1);  // the last one is not computed
  return most;
}

// Buffers that grow by doubling take at most twice what their tokens need.
bool Scheduler::fits(const Task& task) const {
  if (running_.empty()) return true;
  std::uint64_t tokens = 0;
  const auto need = [](const Task& t) {
    const auto each = static_cast<std::int64_t>(t->request.prompt.size()) + t->most_tokens;
    return static_cast<std::uint64_t>(each * t->request.settings.n);
  };
  for (const Task& t : running_) tokens += need(t);
  return (tokens + need(task)) * 2 * bytes_per_token(*decoder_) <= options_.cache_bytes;
}

// Answers whose prompt is computed, as far as there is room for them.
void Scheduler::begin_answers() {
  const std::vector<Task> all(running_.begin(), running_.end());
  for (const Task& task : all) {
    while (task->prompt && task->prompt->missing().empty()) {
      const bool last = task->begun + 1 == task->request.settings.n;
      if (!last && !task->sequences.empty() && active() >= options_.max_sequences) break;
      try {
        begin_answer(task);
      } catch (...) {
        end(task, std::current_exception());
      }
    }
  }
}

void Scheduler::begin_answer(const Task& task) {
  const GenerationRequest& r = task->request;
  const bool last = task->begun + 1 == r.settings.n;
  Sequence s{last ? std::move(task->prompt->state) : task->prompt->state.fork(), r.prompt, nullptr, nullptr};
  s.answer = std::make_unique<Answer>(info_, r.settings, r.on_token, task->begun, r.prompt, task->most_tokens);
  Tensor logits = last ? std::move(task->logits) : task->logits.clone();
  if (last) task->prompt.reset(), task->logits = Tensor();
  ++task->begun;
  s.answer->choose(logits.mutable_values<float>());
  task->sequences.push_back(std::move(s));
  if (!task->first_token) task->first_token = Clock::now();
  take_token(task, task->sequences.back());
}

// One token for each answer under way; what is left of the step is for prompts.
std::vector<Scheduler::Part> Scheduler::plan() const {
  std::vector<Part> parts, prompts;
  for (const Task& t : running_) {
    for (Sequence& s : t->sequences) (s.missing().size() == 1 ? parts : prompts).push_back({t, &s, 1, {}, nullptr});
    if (t->prompt && !t->prompt->missing().empty()) prompts.push_back({t, &*t->prompt, 0, {}, nullptr});
  }
  share_out(prompts, std::max<std::int64_t>(1, options_.max_step_tokens - static_cast<std::int64_t>(parts.size())));
  for (Part& p : prompts) {
    if (p.tokens > 0) parts.push_back(std::move(p));
  }
  return parts;
}

// Equal shares; what a short prompt does not need is for the others.
void Scheduler::share_out(std::vector<Part>& prompts, std::int64_t budget) const {
  std::vector<Part*> order;
  for (std::size_t i = 0; i < prompts.size(); ++i) order.push_back(&prompts[(i + turn_) % prompts.size()]);
  std::stable_sort(order.begin(), order.end(),
                   [](const Part* a, const Part* b) { return a->sequence->missing().size() < b->sequence->missing().size(); });
  auto left = static_cast<std::size_t>(budget);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t share = (left + order.size() - i - 1) / (order.size() - i);
    order[i]->tokens = std::min({order[i]->sequence->missing().size(), share, left});
    left -= order[i]->tokens;
  }
}

// A step's own limits: a request that is alone in it may end it.
RunOptions Scheduler::options_of(const std::vector<Part>& parts) const {
  RunOptions o;
  o.cancel.emplace();
  const Task& first = parts.front().task;
  if (std::any_of(parts.begin(), parts.end(), [&](const Part& p) { return p.task != first; })) return o;
  o.timeout = first->request.settings.run.timeout;
  o.cancel = first->cancel;
  if (first->request.deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*first->request.deadline - Clock::now());
    const auto most = std::max(left, std::chrono::milliseconds(1));
    o.timeout = o.timeout ? std::min(*o.timeout, most) : most;
  }
  return o;
}

void Scheduler::compute(std::vector<Part>& parts) {
  std::uint64_t prompt = 0;
  for (const Part& p : parts) prompt += p.sequence->answer ? 0 : p.tokens;
  note([&](EngineStatus& s) {
    ++s.steps;
    s.prompt_tokens += prompt;
  });
  const RunOptions options = options_of(parts);
  {
    const std::lock_guard lock(mailbox_->mutex);
    mailbox_->step = *options.cancel;
    if (mailbox_->stop) mailbox_->step.cancel();
  }
  compute_singly(parts, options);
}

void Scheduler::compute_singly(std::vector<Part>& parts, const RunOptions& options) {
  for (Part& p : parts) {
    try {
      p.logits = p.sequence->state.append(p.sequence->missing().first(p.tokens), false, options);
    } catch (...) {
      p.error = std::current_exception();
    }
  }
}

void Scheduler::choose(std::vector<Part>& parts) {
  for (Part& p : parts) {
    if (p.error || !p.sequence->answer || !p.sequence->missing().empty()) continue;
    try {
      p.sequence->answer->choose(p.logits.mutable_values<float>());
    } catch (...) {
      p.error = std::current_exception();
    }
  }
}

void Scheduler::settle(std::vector<Part>& parts) {
  for (Part& p : parts) {
    if (p.task->over) continue;
    if (p.error) {
      // A step that the task's own cancel() or deadline ended is no failure of the model's: the next look at them ends it.
      if (!p.task->cancel.cancelled()) end(p.task, p.error);
    } else if (p.sequence->missing().empty()) {
      if (p.sequence->answer) {
        try {
          take_token(p.task, *p.sequence);
        } catch (...) {
          end(p.task, std::current_exception());
        }
      } else {
        p.task->logits = std::move(p.logits);
      }
    }
  }
  ++turn_;
}

// What it has chosen. The sequence is gone where that was its last one.
void Scheduler::take_token(const Task& task, Sequence& sequence) {
  note([](EngineStatus& s) { ++s.generated_tokens; });
  const TokenId id = sequence.answer->tell();
  sequence.tokens.push_back(id);
  if (!sequence.answer->ended()) return;
  const auto index = static_cast<std::size_t>(sequence.answer->index());
  task->choices[index] = sequence.answer->take_choice();
  task->sequences.remove_if([&](const Sequence& s) { return &s == &sequence; });
  if (task->sequences.empty() && !task->prompt) end(task, nullptr);
}

void Scheduler::end(const Task& task, const std::exception_ptr& error, bool cancelled) {
  const Task keep = task;  // the caller's may be an element of the lists
  keep->over = true;
  running_.remove(keep);
  waiting_.remove(keep);
  Generation result;
  std::exception_ptr failure = error;
  try {
    if (!failure) result = keep->collect();
  } catch (...) {
    failure = std::current_exception();
  }
  note([&](EngineStatus& s) {
    s.cancelled += cancelled ? 1 : 0;
    s.failed += failure ? 1 : 0;
  });
  count_requests();
  keep->end(&result, failure);
}

}  // namespace sdx::text
