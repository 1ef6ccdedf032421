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
  status_.max_sequences = options_.max_sequences;
  status_.batches = decoder_->paged();
  status_.why_not = decoder_->why_not_paged;
  if (!decoder_->paged()) return;
  // Two slots for each text's state: steps read one and write the other.
  std::shared_ptr<BlockPool> slots;
  std::uint64_t bytes = options_.cache_bytes;
  if (decoder_->has_states()) {
    slots = std::make_shared<BlockPool>(decoder_->state_layout(), 2 * std::int64_t{options_.max_sequences} + 2);
    bytes -= std::min(bytes, static_cast<std::uint64_t>(slots->capacity()) * slots->layout().block_bytes());
  }
  const std::uint64_t block = std::max<std::uint64_t>(decoder_->layout().block_bytes(), 1), blocks = bytes / block;
  const std::uint64_t most = decoder_->layers > 0 ? 1U << 30 : 1U << 20;  // without attention blocks take no memory
  pool_ = std::make_shared<BlockPool>(decoder_->layout(), static_cast<std::int64_t>(std::min(blocks, most)), std::move(slots));
  // A known block is of use only where the state behind it is known as well.
  if (!options_.share_prefixes || decoder_->has_states()) return;
  known_ = std::make_unique<PrefixCache>(pool_);
  unused_blocks_ = static_cast<std::int64_t>(std::min(options_.prefix_bytes / block, blocks));
  status_.prefix_limit = static_cast<std::uint64_t>(unused_blocks_) * block;
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

void Scheduler::count() {
  std::uint64_t bytes = 0, in_use = 0;
  if (pool_) {
    const std::vector<bool> blocks = held();
    const std::uint64_t size = pool_->layout().block_bytes();
    const std::int64_t taken = std::count(blocks.begin(), blocks.end(), true);
    forget_unused(taken);
    in_use = size * static_cast<std::uint64_t>(taken);
    bytes = size * static_cast<std::uint64_t>(pool_->in_use());
    if (const auto& slots = pool_->states()) {
      const std::uint64_t states = slots->layout().block_bytes() * static_cast<std::uint64_t>(slots->in_use());
      in_use += states;
      bytes += states;
    }
  } else {
    for (const Task& t : running_) {
      for (const Sequence* s : t->texts()) in_use += s->state.cache_bytes();
    }
    bytes = in_use;
  }
  note([&](EngineStatus& s) {
    s.running = static_cast<int>(running_.size());
    s.waiting = static_cast<int>(waiting_.size());
    s.cache_bytes = bytes;
    s.cache_in_use = in_use;
    s.prefix_bytes = bytes - in_use;
  });
  const std::lock_guard lock(mailbox_->mutex);
  mailbox_->waiting = waiting_.size() + mailbox_->arrived.size();
  mailbox_->free = static_cast<std::size_t>(std::max(0, options_.max_sequences - active()));
}

void Scheduler::run() {
  for (bool more = true; more;) {
    try {
      more = take_mail();
      if (more) step();
    } catch (...) {  // belongs to no request, such as no memory for the step's own lists; its progress is unknown
      const std::exception_ptr error = std::current_exception();
      if (running_.empty() && !waiting_.empty()) end(waiting_.front(), error);
      while (!running_.empty()) end(running_.front(), error);
    }
    logits_.clear();
  }
  logits_.clear();
  while (!running_.empty()) end(running_.front(), nullptr, true);
  while (!waiting_.empty()) end(waiting_.front(), nullptr, true);
}

void Scheduler::step() {
  end_overdue();
  admit();
  begin_answers();
  std::vector<Part> parts = plan();
  if (parts.empty()) return;
  compute(parts);
  choose(parts);
  settle(parts);
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
  count();
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
  for (const Task& t : running_) n += static_cast<int>(t->texts().size());
  return n;
}

void Scheduler::admit() {
  while (!waiting_.empty()) {
    const Task task = waiting_.front();
    const int texts = std::max<int>(1, static_cast<int>(task->texts().size()));
    if (!running_.empty() && (active() + texts > options_.max_sequences || !fits(task))) break;
    running_.splice(running_.end(), waiting_, waiting_.begin());
    task->waits_again = false;
    if (task->started) continue;  // it was preempted
    task->started = Clock::now();
    try {
      task->prompt.emplace(Sequence{DecoderState(decoder_, pool_), task->request.prompt});
    } catch (...) {  // no memory
      end(task, std::current_exception());
    }
  }
  count();
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
  Sequence s{last ? std::move(task->prompt->state) : task->prompt->state.fork(), r.prompt};
  s.known_blocks = task->prompt->known_blocks;
  s.place = task->prompt->place;
  s.answer = std::make_unique<Answer>(info_, r.settings, r.on_token, task->begun, r.prompt, task->most_tokens);
  Tensor logits = last ? std::move(task->logits) : task->logits.clone();
  if (last) task->prompt.reset(), task->logits = Tensor();
  ++task->begun;
  s.answer->choose(logits.mutable_values<float>());
  task->sequences.push_back(std::move(s));
  if (!task->first_token) task->first_token = Clock::now();
  take_token(task, task->sequences.back());
}

// Takes the token that the answer has chosen. The sequence is removed if that was its last one.
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
  // The caller's may be an element of the lists.
  const Task keep = task;  // NOLINT(performance-unnecessary-copy-initialization)
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
  count();
  keep->end(&result, failure);
}

}  // namespace sdx::text
