#pragma once
// Stopping a run: by the caller, or by a deadline.

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

#include "base/error.h"

namespace sdx {

// Checked between steps and inside loops. check() costs one clock reading when a deadline is set, one load otherwise.
struct StopCondition {
  std::shared_ptr<const std::atomic<bool>> cancelled;  // may be null
  std::optional<std::chrono::steady_clock::time_point> deadline;

  // Throws Error(cancelled) or Error(deadline_exceeded).
  void check() const {
    if (cancelled && cancelled->load(std::memory_order_relaxed)) fail(ErrorCode::cancelled, "the run was cancelled");
    if (deadline && std::chrono::steady_clock::now() > *deadline) {
      fail(ErrorCode::deadline_exceeded, "the run took longer than its deadline allows");
    }
  }
};

}  // namespace sdx
