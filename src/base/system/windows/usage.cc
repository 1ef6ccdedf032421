#include "base/system/processes/usage.h"

#include "base/system/windows/api.h"

#define PSAPI_VERSION 2  // the functions of kernel32.dll
#include <psapi.h>

namespace sdx {
namespace {

// Steps of 100 ns.
std::int64_t nanoseconds(const FILETIME& t) noexcept {
  return static_cast<std::int64_t>(std::uint64_t{t.dwHighDateTime} << 32 | t.dwLowDateTime) * 100;
}

}  // namespace

ProcessUse process_use() noexcept {
  ProcessUse use;
  FILETIME made{}, ended{}, kernel{}, user{};
  if (::GetProcessTimes(::GetCurrentProcess(), &made, &ended, &kernel, &user) != 0)
    use.cpu_ns = nanoseconds(kernel) + nanoseconds(user);
  PROCESS_MEMORY_COUNTERS memory{};
  if (::GetProcessMemoryInfo(::GetCurrentProcess(), &memory, sizeof memory) != 0) use.peak_bytes = memory.PeakWorkingSetSize;
  return use;
}

std::int64_t ended_children_cpu_ns() noexcept { return 0; }

// The time of the kernel contains that of idling.
std::optional<ProcessorTimes> processor_times() {
  FILETIME idle{}, kernel{}, user{};
  if (::GetSystemTimes(&idle, &kernel, &user) == 0) return std::nullopt;
  const double idling = static_cast<double>(nanoseconds(idle)) * 1e-9;
  return ProcessorTimes{static_cast<double>(nanoseconds(kernel) + nanoseconds(user)) * 1e-9 - idling, idling, 0};
}

// A process that has ended stays known while somebody holds a handle of it.
bool process_exists(std::uint64_t id) noexcept {
  const HANDLE process = ::OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(id));
  if (process == nullptr) return ::GetLastError() == ERROR_ACCESS_DENIED;
  const bool there = ::WaitForSingleObject(process, 0) == WAIT_TIMEOUT;
  ::CloseHandle(process);
  return there;
}

}  // namespace sdx
