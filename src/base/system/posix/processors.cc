#include "base/system/processors.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace sdx {

std::vector<int> usable_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  }
  return cores;
}

int count_usable_cores() noexcept {
  // The kernel refuses a set that is smaller than its own.
  for (int most = CPU_SETSIZE; most <= 1 << 20; most *= 4) {
    cpu_set_t* const set = CPU_ALLOC(most);
    if (set == nullptr) return 0;
    const std::size_t bytes = CPU_ALLOC_SIZE(most);
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return count;
  }
  return 0;
}

int count_online_cores() noexcept { return static_cast<int>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 0L)); }

int most_cores() noexcept { return CPU_SETSIZE; }

void stay_on(int core) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set);
}

void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) noexcept {
  ::pthread_atfork(before, in_parent, in_child);
}

}  // namespace sdx
