#pragma once
// Handles Ctrl-C during a long task: the work that has begun is finished.

#include "base/tools_api.h"

namespace sdx {

// While one lives, the first SIGINT or SIGTERM sets a flag, and one that comes at least 0.3 seconds later ends the process as it
// does without this. On Windows these are Ctrl-C and Ctrl-Break; closing the console sets the flag, too. One at a time.
class SDX_TOOLS_API Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static bool requested() noexcept;
  // The exit code that shells report for the first signal: 130 for SIGINT, 143 for SIGTERM.
  static int exit_code() noexcept;
  static constexpr int kLookMs = 100;  // how often whoever waits looks at it
};

}  // namespace sdx
