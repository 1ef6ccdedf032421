#pragma once
// Times of executed steps.

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include <sdx/session.hpp>

namespace sdx::plan {

// Thread-safe. Keeps at most a million events, so that a forgotten profiler does not eat the machine's memory.
class Profiler {
 public:
  std::int64_t now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
  }
  void record(ProfileEvent event) {
    const std::lock_guard lock(mutex_);
    if (events_.size() < 1000000) events_.push_back(std::move(event));
  }
  std::vector<ProfileEvent> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::vector<ProfileEvent> events_;
};

}  // namespace sdx::plan
