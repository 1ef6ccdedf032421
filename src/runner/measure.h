#pragma once
// Running a session many times.

#include <cstdint>
#include <functional>
#include <string>

#include <sdx/session.hpp>

#include "runner/statistics.h"

namespace sdx {

struct MeasureOptions {
  int warmup = 10;  // runs before those that count; the first of them is reported as first_run_ms
  int runs = 100;
  std::int64_t batch = 1;  // samples that one run works on, for the throughput
  RunOptions run;
  std::function<void(int done, int total)> progress;  // may be empty
};

struct Measurement {
  Statistics statistics;
  int warmup_iterations = 0;
  int measure_iterations = 0;
  double load_ms = 0, init_ms = 0, first_run_ms = 0;
  double throughput = 0;   // samples a second
  double peak_rss_mb = 0;  // of the process
  std::string provider, runtime;
  std::vector<std::string> fallbacks;
};

Measurement measure(const Session& session, const NamedValues& inputs, const MeasureOptions& options);

// One JSON object with the fields above, latencies_ms included.
std::string to_json(const Measurement& m);
// A few lines for people.
std::string to_text(const Measurement& m);

}  // namespace sdx
