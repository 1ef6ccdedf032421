#include "base/system/processes/usage.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

namespace sdx {
namespace {

std::int64_t nanoseconds(const timeval& t) noexcept { return t.tv_sec * 1'000'000'000LL + t.tv_usec * 1000LL; }

std::int64_t cpu_ns(const rusage& usage) noexcept { return nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime); }

}  // namespace

ProcessUse process_use() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {cpu_ns(usage), usage.ru_nivcsw, static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};  // Linux counts in KiB
}

std::int64_t ended_children_cpu_ns() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return cpu_ns(usage);
}

std::optional<ProcessorTimes> processor_times() {
  std::ifstream in("/proc/stat");
  std::string word;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  if (!(in >> word >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal)) return std::nullopt;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return ProcessorTimes{(user + nice + system + irq + softirq) / ticks, (idle + iowait) / ticks, steal / ticks};
}

bool process_exists(std::uint64_t id) noexcept { return ::kill(static_cast<pid_t>(id), 0) == 0 || errno != ESRCH; }

}  // namespace sdx
