#pragma once
// The work of an engine's thread: admits requests, forms steps, computes them, and ends finished requests.

#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "text/engine/request.h"

namespace sdx::text {

class Scheduler {
 public:
  Scheduler(std::shared_ptr<const Decoder> decoder, LanguageModelInfo info, const EngineOptions& options,
            std::shared_ptr<Mailbox> mailbox);

  void run();  // until the mailbox says stop; then every request has ended

  // From any thread:
  EngineStatus status() const;
  void submitted();
  // The most tokens that each answer can have. Throws Error(out_of_memory) if the prompt alone exceeds the cache.
  std::int64_t most_tokens(const GenerationRequest& request) const;

 private:
  using Task = std::shared_ptr<GenerationTask::Impl>;
  struct Part {  // a step's work for one sequence
    Task task;
    Sequence* sequence = nullptr;
    std::size_t tokens = 0;
    std::span<float> logits = {};        // behind the last token, where all are computed
    std::exception_ptr error = nullptr;  // of this part alone
    bool completes() const { return tokens == sequence->missing().size(); }
  };

  // scheduler.cc
  bool take_mail();
  void step();
  void end_overdue();
  void admit();
  void begin_answers();
  void begin_answer(const Task& task);
  void take_token(const Task& task, Sequence& sequence);
  void end(const Task& task, const std::exception_ptr& error, bool cancelled = false);
  int active() const;  // sequences under way
  void note(const std::function<void(EngineStatus&)>& change);
  void count();

  // step.cc
  std::vector<Part> plan();
  void share_out(std::vector<Part>& prompts, std::int64_t budget) const;
  void compute(std::vector<Part>& parts);
  void compute_singly(std::vector<Part>& parts, const RunOptions& options);
  void compute_together(std::span<Part> parts, const RunOptions& options);
  void compute_each(std::span<Part> parts, const RunOptions& options, bool ended);
  RunOptions options_of(const std::vector<Part>& parts) const;
  void choose(std::vector<Part>& parts);
  void settle(std::vector<Part>& parts);

  // memory.cc
  bool fits(const Task& task);
  std::vector<bool> held() const;  // by block: whether a text under way has it
  void use_known_blocks(const Task& task, Sequence& sequence);
  bool waits_for_another(const Part& part, const std::vector<Part>& prompts) const;
  void reserve(std::vector<Part>& parts);
  void preempt(const Task& task);
  void remember(Sequence& sequence);
  void forget_unused(std::int64_t held);

  std::shared_ptr<const Decoder> decoder_;
  LanguageModelInfo info_;
  EngineOptions options_;
  std::shared_ptr<Mailbox> mailbox_;
  std::shared_ptr<BlockPool> pool_;     // null where each text has a cache of its own
  std::unique_ptr<PrefixCache> known_;  // null where nothing is shared
  std::int64_t unused_blocks_ = 0;      // that known_ may keep for texts to come
  std::list<Task> waiting_, running_;   // first come, first
  std::size_t turn_ = 0;                // the prompt that is first in line for the remaining tokens
  std::vector<Tensor> logits_;          // of the step

  mutable std::mutex mutex_;
  EngineStatus status_;  // guarded by `mutex_`
};

}  // namespace sdx::text
