#include <algorithm>

#include "base/error.h"
#include "text/engine/scheduler.h"
#include "text/model/paged_step.h"

namespace sdx::text {

// One token for each answer under way; the rest of the step is for prompts.
std::vector<Scheduler::Part> Scheduler::plan() {
  std::vector<Part> parts, prompts;
  for (const Task& t : running_) {
    for (Sequence* s : t->texts()) {
      if (s->missing().empty()) continue;  // a prompt whose other answers are still to begin
      if (s->answer && s->missing().size() == 1) {
        parts.push_back({t, s, 1});
        continue;
      }
      use_known_blocks(t, *s);
      const Part part{t, s, 0};
      if (!waits_for_another(part, prompts)) prompts.push_back(part);
    }
  }
  share_out(prompts, std::max<std::int64_t>(1, options_.max_step_tokens - static_cast<std::int64_t>(parts.size())));
  for (Part& p : prompts) {
    if (p.tokens > 0) parts.push_back(std::move(p));
  }
  if (pool_) reserve(parts);
  return parts;
}

// Equal shares; the unused part of a short prompt's share is for the others.
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

// A step ends early where that is right for all of its requests.
RunOptions Scheduler::options_of(const std::vector<Part>& parts) const {
  RunOptions o;
  const Task& first = parts.front().task;
  const bool alone = std::all_of(parts.begin(), parts.end(), [&](const Part& p) { return p.task == first; });
  o.cancel = alone ? first->cancel : CancelToken();
  const auto now = Clock::now();
  o.timeout = std::chrono::milliseconds(0);
  for (const Part& p : parts) {
    std::optional<std::chrono::milliseconds> most = p.task->request.settings.run.timeout;
    if (p.task->request.deadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*p.task->request.deadline - now);
      most = std::max(std::chrono::milliseconds(1), std::min(left, most.value_or(left)));
    }
    if (!most) {
      o.timeout.reset();
      break;
    }
    o.timeout = std::max(*o.timeout, *most);
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
  const auto start = Clock::now();
  pool_ ? compute_together(parts, options) : compute_singly(parts, options);
  const auto taken = Clock::now() - start;
  for (Part& p : parts) {
    const auto& most = p.task->request.settings.run.timeout;
    if (p.error || !most || taken <= *most) continue;
    p.error = std::make_exception_ptr(Error(ErrorCode::deadline_exceeded, "a step took longer than the request's timeout"));
  }
}

void Scheduler::compute_singly(std::vector<Part>& parts, const RunOptions& options) {
  for (Part& p : parts) {
    try {
      logits_.push_back(p.sequence->state.append(p.sequence->missing().first(p.tokens), false, options));
      p.logits = logits_.back().mutable_values<float>();
    } catch (...) {
      p.error = std::current_exception();
    }
  }
}

// If a step fails, each of its parts is computed separately, so that one text's error does not affect the others.
void Scheduler::compute_together(std::span<Part> parts, const RunOptions& options) {
  std::vector<StepPart> step;
  for (const Part& p : parts) {
    step.push_back({&p.sequence->state, p.sequence->missing().first(p.tokens),
                    p.completes() ? StepPart::Logits::last : StepPart::Logits::none});
  }
  Tensor logits;
  try {
    logits = run_together(step, options);
  } catch (const Error& e) {
    const bool ended = e.code() == ErrorCode::cancelled || e.code() == ErrorCode::deadline_exceeded;
    compute_each(parts, options, ended);
    return;
  } catch (...) {
    compute_each(parts, options, false);
    return;
  }
  try {
    const auto width = static_cast<std::size_t>(logits.dim(1));
    const std::span<float> all = logits.mutable_values<float>();
    std::size_t row = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      remember(*parts[i].sequence);
      if (step[i].logits == StepPart::Logits::last) parts[i].logits = all.subspan(width * row++, width);
    }
    logits_.push_back(std::move(logits));
  } catch (...) {
    for (Part& p : parts) p.error = std::current_exception();
  }
}

// Called while an error is handled. If there is only one part, the error is that part's own.
void Scheduler::compute_each(std::span<Part> parts, const RunOptions& options, bool ended) {
  if (ended || parts.size() == 1) {
    for (Part& p : parts) p.error = std::current_exception();
    return;
  }
  for (Part& p : parts) compute_together(std::span(&p, 1), options);
}

void Scheduler::choose(std::vector<Part>& parts) {
  for (Part& p : parts) {
    if (p.error || !p.sequence->answer || !p.sequence->missing().empty()) continue;
    try {
      p.sequence->answer->choose(p.logits);
    } catch (...) {
      p.error = std::current_exception();
    }
  }
}

void Scheduler::settle(std::vector<Part>& parts) {
  const bool stopping = [&] {
    const std::lock_guard lock(mailbox_->mutex);
    return mailbox_->stop;
  }();
  for (Part& p : parts) {
    if (p.task->over) continue;
    if (p.error) {
      // A step that cancel(), or the engine's end, cut short is no failure of the model's: the next look at its tasks ends them.
      if (!stopping && !p.task->cancel.cancelled()) end(p.task, p.error);
    } else if (p.sequence->missing().empty()) {
      if (p.sequence->answer) {
        try {
          take_token(p.task, *p.sequence);
        } catch (...) {
          end(p.task, std::current_exception());
        }
      } else {
        try {
          p.task->logits = Tensor::of<float>({static_cast<std::int64_t>(p.logits.size())}, std::span<const float>(p.logits));
        } catch (...) {  // no memory
          end(p.task, std::current_exception());
        }
      }
    }
  }
  ++turn_;
}

}  // namespace sdx::text
