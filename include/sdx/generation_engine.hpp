#pragma once
// Many texts at once from one language model: requests come and go between steps, and one step computes the next tokens of all of
// them together. Link libsdx_text (CMake: sardonyx::text).
//
//   sdx::GenerationEngine engine(model, {.max_sequences = 8});
//   sdx::GenerationTask task = engine.submit({.prompt = tokens, .settings = {.max_tokens = 64}});
//   const sdx::Generation answer = task.wait();
//
// docs/language-models.md says how steps are made up. All functions throw sdx::Error.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <sdx/export.hpp>
#include <sdx/text.hpp>

namespace sdx {

struct EngineOptions {
  int max_sequences = 16;            // answers that are computed together; more wait
  int max_waiting = 256;             // requests that wait; submit() refuses more
  std::int64_t max_step_tokens = 0;  // of one step: one for each answer under way, the rest for prompts, which are computed in
                                     // such chunks; 0: 512
  std::uint64_t cache_bytes = 0;     // the most that keys and values may take; 0: half of the memory that the process could take
                                     // when the engine is made
  bool share_prefixes = true;        // what prompts have in common is computed once, and kept while there is room
};

struct GenerationRequest {
  std::vector<TokenId> prompt;
  GenerationSettings settings;  // `mask` makes a mask for each of its n answers
  OnToken on_token;  // on the engine's thread: must be quick, must not call the engine but for cancel(); false ends the answer
  // Once, behind the last token, on the engine's thread: the result, or the error with which the request ended.
  std::function<void(const Generation* result, std::exception_ptr error)> on_end;
  std::optional<std::chrono::steady_clock::time_point> deadline;  // then it ends with Error(deadline_exceeded), waiting or not
};

// A request under way. Copies share it, and may outlive the engine. Thread-safe.
class SDX_API GenerationTask {
 public:
  void cancel() const;  // its answers end with finish_reason "cancelled": before the next step, or in the middle of one that is
                        // for this request alone
  bool ended() const;
  Generation wait() const;  // the result, or throws what the request ended with

  struct Impl;
  explicit GenerationTask(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

struct EngineStatus {
  int running = 0, waiting = 0;                                      // requests
  std::uint64_t cache_bytes = 0, cache_limit = 0, cache_in_use = 0;  // in_use: of texts under way; the others may be thrown away
  std::uint64_t steps = 0, prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;  // since the engine was made
  std::uint64_t requests = 0, failed = 0, cancelled = 0, preempted = 0;
  bool batches = true;       // the network's attention takes several texts in one step
  std::string why_not = {};  // where it does not
};

// Thread-safe. Has a thread of its own, on which steps run.
class SDX_API GenerationEngine {
 public:
  explicit GenerationEngine(LanguageModel model, const EngineOptions& options = {});
  ~GenerationEngine();  // cancels what is under way; on_end has been called for every request when it returns
  GenerationEngine(const GenerationEngine&) = delete;
  GenerationEngine& operator=(const GenerationEngine&) = delete;

  // Throws Error(invalid_argument) for settings out of range, tokens outside the vocabulary, and prompts that are empty or exceed
  // the context; Error(out_of_memory) where max_waiting requests wait, or the prompt alone exceeds the cache. An answer ends with
  // "length" where the context, or the cache with this request alone in it, has room for no more.
  GenerationTask submit(GenerationRequest request);

  EngineStatus status() const;
  const LanguageModel& model() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sdx
