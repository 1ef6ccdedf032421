#pragma once
// Ending what a thread computes from outside of the engine: a signal that an interpreter has to handle in this very thread.

#include <chrono>
#include <utility>

#include "base/error.h"

namespace sdx {

// Asked by the thread itself between the steps of a run, about twenty times a second.
class Interruption {
 public:
  // `ask(context)` says whether to stop; once it has said so, it is not asked again.
  Interruption(bool (*ask)(void*), void* context) : ask_(ask), context_(context) {}

  bool wanted() {
    if (wanted_) return true;
    if (--left_ > 0) return false;
    const auto now = std::chrono::steady_clock::now();
    // Steps of a microsecond need no clock reading each; long ones get it.
    left_ = now - std::exchange(looked_, now) < kBetween / kMostSkipped ? kMostSkipped : 1;
    if (now - asked_ < kBetween) return false;
    asked_ = now;
    return wanted_ = ask_(context_);
  }

 private:
  static constexpr std::chrono::milliseconds kBetween{50};
  static constexpr int kMostSkipped = 4;

  bool (*ask_)(void*);
  void* context_;
  bool wanted_ = false;
  int left_ = 1;
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now(), asked_ = looked_;
};

// The interruption of this thread; null: none. Not a parameter, because an interpreter handles signals in one thread, no matter
// how deep the call stack is.
inline thread_local Interruption* interruption = nullptr;

// Sets it for a while.
class InterruptionScope {
 public:
  explicit InterruptionScope(Interruption* here) : before_(std::exchange(interruption, here)) {}
  ~InterruptionScope() { interruption = before_; }
  InterruptionScope(const InterruptionScope&) = delete;
  InterruptionScope& operator=(const InterruptionScope&) = delete;

 private:
  Interruption* before_;
};

inline bool interrupted() { return interruption != nullptr && interruption->wanted(); }

// Throws Error(cancelled). Costs one load where no interruption is set.
inline void check_interruption() {
  if (interrupted()) fail(ErrorCode::cancelled, "the run was interrupted");
}

}  // namespace sdx
