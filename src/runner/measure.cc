#include "runner/measure.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>

#include "base/error.h"
#include "base/suggest.h"
#include "tensor/json.h"

namespace sdx {
namespace {

double timed_run(const Session& session, const NamedValues& inputs, const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const NamedValues outputs = session.run(inputs, options);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double peak_rss_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // Linux counts in KiB
}

}  // namespace

Measurement measure(const Session& session, const NamedValues& inputs, const MeasureOptions& options) {
  if (options.runs < 1 || options.warmup < 0) {
    fail(ErrorCode::invalid_argument, "a measurement needs at least 1 run and no negative warm-up, received {} and {}",
         options.runs, options.warmup);
  }
  Measurement m;
  const int total = options.warmup + options.runs;
  std::vector<double> latencies;
  latencies.reserve(static_cast<std::size_t>(options.runs));
  for (int i = 0; i < total; ++i) {
    const double ms = timed_run(session, inputs, options.run);
    if (i == 0) m.first_run_ms = ms;
    if (i >= options.warmup) latencies.push_back(ms);
    if (options.progress) options.progress(i + 1, total);
  }
  const Report report = session.report();
  m.statistics = summarize(std::move(latencies));
  m.warmup_iterations = options.warmup;
  m.measure_iterations = options.runs;
  m.load_ms = report.load_ms;
  m.init_ms = report.init_ms;
  m.throughput = m.statistics.mean_ms > 0 ? 1000.0 * static_cast<double>(options.batch) / m.statistics.mean_ms : 0;
  m.peak_rss_mb = peak_rss_mb();
  m.provider = join(report.providers, ",");
  m.runtime = report.runtime;
  m.fallbacks = report.fallbacks;
  return m;
}

std::string to_json(const Measurement& m) {
  const Statistics& s = m.statistics;
  std::string out = "{\"provider\":";
  append_json_string(out, m.provider);
  out += ",\"runtime\":";
  append_json_string(out, m.runtime);
  fmt::format_to(
      std::back_inserter(out),
      ",\"mean_ms\":{},\"std_ms\":{},\"min_ms\":{},\"max_ms\":{},\"median_ms\":{},\"p50_ms\":{},\"p90_ms\":{},\"p95_ms\":{},"
      "\"p99_ms\":{},\"coefficient_of_variation\":{},\"throughput\":{},\"warmup_iterations\":{},\"measure_iterations\":{},"
      "\"load_ms\":{},\"init_ms\":{},\"first_run_ms\":{},\"peak_rss_mb\":{},\"fallbacks\":[",
      s.mean_ms, s.std_ms, s.min_ms, s.max_ms, s.p50_ms, s.p50_ms, s.p90_ms, s.p95_ms, s.p99_ms, s.coefficient_of_variation,
      m.throughput, m.warmup_iterations, m.measure_iterations, m.load_ms, m.init_ms, m.first_run_ms, m.peak_rss_mb);
  for (std::size_t i = 0; i < m.fallbacks.size(); ++i) {
    if (i != 0) out += ',';
    append_json_string(out, m.fallbacks[i]);
  }
  fmt::format_to(std::back_inserter(out), "],\"latencies_ms\":[{}]}}", fmt::join(s.latencies_ms, ","));
  return out;
}

std::string to_text(const Measurement& m) {
  const Statistics& s = m.statistics;
  return fmt::format(
      "provider     {}\n"
      "runs         {} measured after {} to warm up\n"
      "mean         {:.3f} ms (± {:.3f})\n"
      "median       {:.3f} ms\n"
      "min, max     {:.3f} ms, {:.3f} ms\n"
      "p90 p95 p99  {:.3f} ms, {:.3f} ms, {:.3f} ms\n"
      "throughput   {:.1f} samples/s\n"
      "load, init   {:.1f} ms, {:.1f} ms; first run {:.3f} ms\n"
      "peak memory  {:.1f} MB\n",
      m.provider, m.measure_iterations, m.warmup_iterations, s.mean_ms, s.std_ms, s.p50_ms, s.min_ms, s.max_ms, s.p90_ms,
      s.p95_ms, s.p99_ms, m.throughput, m.load_ms, m.init_ms, m.first_run_ms, m.peak_rss_mb);
}

}  // namespace sdx
