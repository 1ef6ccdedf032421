#pragma once
// Work that may end the process it runs in.

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

struct ChildEnd {
  std::string said;         // all that arrived, also where the child ended early
  bool too_long = false;    // it was ended because it took longer than allowed
  int exit_code = 0;        // that it ended with
  int signal = 0;           // that ended it; 0: none did
  std::string signal_name;  // "Segmentation fault"
};

// Calls work(say) in a child process, so that a crash ends only that, and nothing stays loaded. Systems that cannot fork call it
// in this process: Windows' loader survives what a library's start-up code does. Throws Error(runtime_failure) where no process
// can be started.
SDX_TOOLS_API ChildEnd run_in_child(const std::function<void(const std::function<bool(std::string_view)>& say)>& work,
                                    std::chrono::seconds most);

}  // namespace sdx
