#include "serve/server/process_metrics.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/system/pages.h"
#include "base/system/processes/usage.h"

namespace sdx::serve {
namespace {

double cpu_seconds() { return static_cast<double>(process_use().cpu_ns) * 1e-9; }

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  if (!(file >> all >> resident)) return 0;
  return resident * static_cast<double>(page_bytes());
}

double open_files() {
  std::error_code error;
  double count = 0;
  for (auto at = std::filesystem::directory_iterator("/proc/self/fd", error); at != std::filesystem::directory_iterator();) {
    ++count;
    at.increment(error);
    if (error) break;
  }
  return count;
}

}  // namespace

void watch_process(Metrics& metrics) {
  const auto add = [&](const char* name, const char* help, const char* kind, std::function<double()> value) {
    metrics.collect(name, help, kind, [value = std::move(value)] { return std::vector<Metrics::Sample>{{"", {}, value()}}; });
  };
  const double start = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  add("process_start_time_seconds", "When the server started, in seconds since 1970.", "gauge", [start] { return start; });
  add("process_cpu_seconds_total", "Processor time, of user and system.", "counter", cpu_seconds);
  add("process_resident_memory_bytes", "Memory that is in use.", "gauge", resident_bytes);
  add("process_open_fds", "Open file descriptors.", "gauge", open_files);
  metrics.collect("sdx_build_info", "The version that runs.", "gauge", [] {
    return std::vector<Metrics::Sample>{{"", {{"version", SDX_VERSION}}, 1}};
  });
}

}  // namespace sdx::serve
