#pragma once
// Requests to a GenerationEngine for unit tests.

#include <condition_variable>
#include <mutex>
#include <sdx/generation_engine.hpp>
#include <span>
#include <utility>
#include <vector>

namespace sdx::text {

inline GenerationRequest asking(std::vector<TokenId> prompt, GenerationSettings settings) {
  GenerationRequest r;
  r.prompt = std::move(prompt);
  r.settings = std::move(settings);
  return r;
}

// Holds the engine's thread in a callback until it is let go.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false, open = false;
  void pass() {
    std::unique_lock lock(mutex);
    reached = true;
    changed.notify_all();
    changed.wait(lock, [&] { return open; });
  }
  void wait_reached() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached; });
  }
  void let_go() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};

// The answers to all prompts, of which none ends before all are there, however late this thread gets its turn.
inline std::vector<Generation> answers_together(GenerationEngine& engine, std::span<const std::vector<TokenId>> prompts,
                                                const GenerationSettings& settings) {
  Gate gate;
  std::vector<GenerationTask> tasks;
  for (const std::vector<TokenId>& prompt : prompts) {
    GenerationRequest request = asking(prompt, settings);
    if (tasks.empty()) request.on_token = [&](const GeneratedToken&) { return gate.pass(), true; };
    tasks.push_back(engine.submit(std::move(request)));
  }
  gate.let_go();
  std::vector<Generation> out;
  for (const GenerationTask& task : tasks) out.push_back(task.wait());
  return out;
}

}  // namespace sdx::text
