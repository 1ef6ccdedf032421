#pragma once
// Waits for another run's work, but no longer than the caller's own deadline allows.

#include <chrono>
#include <mutex>
#include <thread>

#include "base/cancel.h"

namespace sdx {

// Returns holding `mutex`. While another thread holds it, throws what StopCondition::check() throws. `waiting` is called at each
// check.
template <class F>
std::unique_lock<std::mutex> lock_unless_stopped(std::mutex& mutex, const StopCondition& stop, F&& waiting) {
  constexpr std::chrono::milliseconds kLook{2};
  std::unique_lock turn(mutex, std::defer_lock);
  while (!turn.try_lock()) {
    stop.check();
    waiting();
    std::this_thread::sleep_for(kLook);
  }
  return turn;
}

inline std::unique_lock<std::mutex> lock_unless_stopped(std::mutex& mutex, const StopCondition& stop) {
  return lock_unless_stopped(mutex, stop, [] {});
}

}  // namespace sdx
