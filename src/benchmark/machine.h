#pragma once
// Describes the machine, and its state during a measurement.

#include <cstdint>
#include <string>
#include <vector>

#include <sdx/runner.hpp>

namespace sdx::benchmark {

// The number of cores that this process may use.
int usable_cores();
MachineInfo machine_info();

// Counters of the whole machine at one moment. What the system does not tell is 0.
struct MachineState {
  std::int64_t at_ns = 0;
  double busy_s = 0, idle_s = 0, steal_s = 0;  // processor time of all cores since the start of the machine
  double frequency_mhz = 0;                    // of the first core
  std::int64_t throttle_events = 0;
};
MachineState machine_state();

// Computes the changes from before to after. own_cpu_s: processor time of the measured processes. Lowest and highest frequency
// are sampled in between, 0: unknown. Fills steal_percent and throttle_events; returns notes for people.
std::vector<std::string> what_happened(const MachineState& before, const MachineState& after, double own_cpu_s, double lowest_mhz,
                                       double highest_mhz, MachineInfo& machine);

// "2026-01-31T12:00:00Z"
std::string utc_now();

}  // namespace sdx::benchmark
