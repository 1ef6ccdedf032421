#pragma once
// Which of the machine's processors this process and its threads may use.

#include <vector>

#include "base/tools_api.h"

namespace sdx {

// By number; empty: the system does not say.
SDX_TOOLS_API std::vector<int> usable_cores();
// How many of them there are, also on machines with more than usable_cores() can name; 0: the system does not say.
int count_usable_cores() noexcept;
// That are switched on; 0: the system does not say.
int count_online_cores() noexcept;
// A core's number is below this.
SDX_TOOLS_API int most_cores() noexcept;
// Keeps the calling thread on a core. A refusal (the core went offline) leaves the thread to the system.
SDX_TOOLS_API void stay_on(int core) noexcept;

// Calls these when the process forks; systems that cannot fork never do. Null: nothing to call.
SDX_TOOLS_API void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) noexcept;

}  // namespace sdx
