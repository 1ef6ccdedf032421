#pragma once
// Continuous batching for one language model: requests join and leave between steps, and each step computes the next tokens of
// all of them together. Link libsdx_text (CMake: sardonyx::text).
//
//   sdx::GenerationEngine engine(model, {.max_sequences = 8});
//   sdx::GenerationTask task = engine.submit({.prompt = tokens, .settings = {.max_tokens = 64}});
//   const sdx::Generation answer = task.wait();
//
// docs/language-models.md describes how steps are composed. All functions throw sdx::Error.

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
  int max_sequences = 16;  // answers computed together; further ones wait
  int max_waiting = 256;   // waiting requests; submit() refuses more
  // The most tokens of a step: one for each running answer, the rest for prompts, which are computed in chunks of this size; 0:
  // 512.
  std::int64_t max_step_tokens = 0;
  // Limit on the key-value cache; 0: half of the memory available to the process when the engine is made.
  std::uint64_t cache_bytes = 0;
  bool share_prefixes = true;  // compute common prompt prefixes once and keep them while there is room
  // Limit on the caches that are kept for later prompts while no running answer uses them; 0: a tenth of the memory available to
  // the process when the engine is made, at least 64 MiB. Never more than cache_bytes.
  std::uint64_t prefix_bytes = 0;
};

struct GenerationRequest {
  std::vector<TokenId> prompt;
  GenerationSettings settings;  // `mask` is called once for each of the n answers
  OnToken on_token;  // on the engine's thread: must be quick and must not call the engine except cancel(); false ends the answer
  // Called once, after the last token, on the engine's thread, with the result or the error that ended the request.
  std::function<void(const Generation* result, std::exception_ptr error)> on_end;
  // When this time passes, the request ends with Error(deadline_exceeded), even if it still waits.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

// A request in progress. Copies share it and may outlive the engine. Thread-safe.
class SDX_API GenerationTask {
 public:
  void cancel() const;  // ends its answers with finish_reason "cancelled": before the next step, or during one that serves this
                        // request alone
  bool ended() const;
  Generation wait() const;  // returns the result, or throws the error that ended the request

  struct Impl;
  explicit GenerationTask(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

struct EngineStatus {
  int running = 0, waiting = 0;                                      // requests
  std::uint64_t cache_bytes = 0, cache_limit = 0, cache_in_use = 0;  // in_use: of running answers
  std::uint64_t prefix_bytes = 0, prefix_limit = 0;                  // of cache_bytes: kept for later prompts; may be evicted
  std::uint64_t steps = 0, prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;  // since the engine was made
  int max_sequences = 0;                                                                // of EngineOptions
  std::uint64_t requests = 0, failed = 0, cancelled = 0, preempted = 0;
  bool batches = true;       // the network's attention supports several sequences in one step
  std::string why_not = {};  // reason if it does not
};

// Thread-safe. Runs steps on a thread of its own.
class SDX_API GenerationEngine {
 public:
  explicit GenerationEngine(LanguageModel model, const EngineOptions& options = {});
  ~GenerationEngine();  // cancels running requests; on_end has been called for every request when it returns
  GenerationEngine(const GenerationEngine&) = delete;
  GenerationEngine& operator=(const GenerationEngine&) = delete;

  // Throws Error(invalid_argument) for settings out of range, tokens outside the vocabulary, and prompts that are empty or exceed
  // the context; Error(out_of_memory) if max_waiting requests are waiting or the prompt alone exceeds the cache. An answer ends
  // with "length" when the context, or the cache with only this request in it, is full.
  GenerationTask submit(GenerationRequest request);

  EngineStatus status() const;
  const LanguageModel& model() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sdx
