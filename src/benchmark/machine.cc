#include "benchmark/machine.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sdx/provider.hpp>

#include "base/error.h"
#include "base/system/control_group.h"
#include "base/system/cpu_features.h"
#include "base/system/pages.h"
#include "base/system/process.h"
#include "base/system/processes/usage.h"
#include "benchmark/load.h"

namespace sdx::benchmark {
namespace {

namespace fs = std::filesystem;

// The first line of a small file of the system; "" where there is none.
std::string line_of(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

double number_of(const fs::path& path) {
  std::istringstream in(line_of(path));
  double v = 0;
  return in >> v ? v : 0;
}

double frequency_mhz() {
  const double khz = number_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
  if (khz > 0) return khz / 1000;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos || !line.starts_with("cpu MHz")) continue;
    std::istringstream text(line.substr(colon + 2));
    double mhz = 0;
    return text >> mhz ? mhz : 0;
  }
  return 0;
}

std::int64_t throttle_events() {
  std::int64_t sum = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/cpu", ignored)) {
    sum += static_cast<std::int64_t>(number_of(entry.path() / "thermal_throttle" / "core_throttle_count"));
  }
  return sum;
}

}  // namespace

int usable_cores() { return usable_cpus(); }

MachineInfo machine_info() {
  MachineInfo m;
  m.cpu = processor_name();
  m.isa = std::string(name(cpu_isa()));
  const SystemNames names = system_names();
  m.kernel = fmt::format("{} {}", names.system, names.release);
  m.governor = line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  m.cores = usable_cores();
  m.memory_mb = static_cast<double>(sdx::machine_memory()) / 1048576;
  m.frequency_mhz = frequency_mhz();
  m.load_average = number_of("/proc/loadavg");
  m.sdx_version = version();
  return m;
}

MachineState machine_state() {
  MachineState s;
  s.at_ns = now_ns();
  const ProcessorTimes times = processor_times().value_or(ProcessorTimes());
  s.busy_s = times.busy;
  s.idle_s = times.idle;
  s.steal_s = times.steal;
  s.frequency_mhz = frequency_mhz();
  s.throttle_events = throttle_events();
  return s;
}

std::vector<std::string> what_happened(const MachineState& before, const MachineState& after, double own_cpu_s, double lowest_mhz,
                                       double highest_mhz, MachineInfo& machine) {
  std::vector<std::string> notes;
  const double busy = after.busy_s - before.busy_s;
  const double steal = after.steal_s - before.steal_s;
  const double all = busy + steal + after.idle_s - before.idle_s;
  const double wall = static_cast<double>(after.at_ns - before.at_ns) * 1e-9;
  machine.steal_percent = all > 0 ? 100 * steal / all : 0;
  machine.throttle_events = after.throttle_events - before.throttle_events;
  // The counters step in hundredths of a second.
  const double others = wall >= 0.2 ? (busy - own_cpu_s) / wall : 0;
  if (others > 0.1) {
    notes.push_back(
        fmt::format("other processes kept {:.1f} of {} cores busy while measuring: times are too long", others, machine.cores));
  } else if (machine.load_average > 0.5 * machine.cores) {
    notes.push_back(fmt::format("load average {:.1f} on {} cores when the benchmark began", machine.load_average, machine.cores));
  }
  if (wall >= 0.2 && machine.steal_percent > 1) {
    notes.push_back(fmt::format("the hypervisor gave {:.1f} % of the processors' time to others", machine.steal_percent));
  }
  if (machine.throttle_events > 0) {
    notes.push_back(fmt::format("the processor throttled {} times because of heat", machine.throttle_events));
  }
  if (lowest_mhz > 0 && highest_mhz > 1.1 * lowest_mhz) {
    notes.push_back(fmt::format("the processor's frequency went from {:.0f} to {:.0f} MHz", lowest_mhz, highest_mhz));
  }
  if (!machine.governor.empty() && machine.governor != "performance") {
    notes.push_back(fmt::format("the frequency governor is '{}'; 'performance' is steadier", machine.governor));
  }
  return notes;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace sdx::benchmark
