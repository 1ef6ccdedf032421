#pragma once
// Requests that people and service managers make of a running program, apart from its end (interrupt.h).

#include "base/tools_api.h"

namespace sdx {

// For programs that read lines: from catch_break() on, Ctrl-C sets a flag in place of ending the process, and waiting calls of
// the system return early.
SDX_TOOLS_API void catch_break() noexcept;
SDX_TOOLS_API bool break_seen() noexcept;
SDX_TOOLS_API void forget_break() noexcept;

// While one lives, SIGHUP asks to read settings again in place of ending the process. Windows has no such signal. One at a time.
class SDX_TOOLS_API ReloadRequests {
 public:
  ReloadRequests();
  ~ReloadRequests();
  ReloadRequests(const ReloadRequests&) = delete;
  ReloadRequests& operator=(const ReloadRequests&) = delete;

  // Whether there was one since the last call.
  static bool take() noexcept;
};

}  // namespace sdx
