#pragma once
// What this process and the machine's processors have done.

#include <cstdint>
#include <optional>

#include "base/tools_api.h"

namespace sdx {

struct ProcessUse {
  std::int64_t cpu_ns = 0;       // processor time of all threads
  std::int64_t preempted = 0;    // times that a thread lost its processor; 0 where the system does not count
  std::uint64_t peak_bytes = 0;  // of resident memory
};
SDX_TOOLS_API ProcessUse process_use() noexcept;
// Processor time of processes that this one started and that have ended; 0 where the system does not count.
SDX_TOOLS_API std::int64_t ended_children_cpu_ns() noexcept;

// Since the machine started, of all processors together, in seconds.
struct ProcessorTimes {
  double busy = 0, idle = 0, steal = 0;
};
// nullopt: the system does not say.
SDX_TOOLS_API std::optional<ProcessorTimes> processor_times();

// Whether a process of this number is there, this user's or another's.
SDX_TOOLS_API bool process_exists(std::uint64_t id) noexcept;

}  // namespace sdx
