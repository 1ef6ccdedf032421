#pragma once
// A run on a thread of its own, which its caller may leave behind.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "session/compiled_chain.h"

namespace sdx::session {

// Costs a thread and a copy of the inputs that are views of the caller's memory.
class BackgroundRun {
 public:
  BackgroundRun(std::shared_ptr<const CompiledChain> chain, const Request& request);
  // Waits for the run unless it was abandoned.
  ~BackgroundRun();
  BackgroundRun(const BackgroundRun&) = delete;
  BackgroundRun& operator=(const BackgroundRun&) = delete;

  enum class Outcome { done, late, stopped };
  // Waits until the run is over (done); or `limit` has passed while a provider works that `suspect` returns true for (late); or
  // the request's deadline or cancellation has come and the run does not heed it (stopped).
  Outcome wait(std::chrono::steady_clock::time_point limit, const std::function<bool(const std::string*)>& suspect);
  // The results of a finished run. Throws what it threw.
  std::vector<Value> results();
  // The provider whose step runs, or failed; may be null. Valid as long as the chain.
  const std::string* provider() const;
  // Asks the run to stop and lets go of it: the thread ends when the provider comes back, and then calls `over`.
  void abandon(std::function<void()> over);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sdx::session
