#pragma once
// What this process may use of the machine's cores, in parts, and what it does use.

#include <optional>

#include "base/tools_api.h"

namespace sdx {

struct CpuShare {
  int cores = 0;                // that are online; 0: the system does not say
  int allowed = 0;              // by affinity; 0: the system does not say
  std::optional<double> quota;  // of their time (base/system/control_group.h)
};
SDX_TOOLS_API CpuShare cpu_share();

// The number of threads that ThreadPool::shared() (base/thread_pool.h) has, or will have. Starts none.
SDX_TOOLS_API int shared_threads();

}  // namespace sdx
