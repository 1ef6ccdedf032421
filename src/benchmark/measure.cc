// Measuring a session that is open already.

#include "base/error.h"
#include "base/suggest.h"
#include "benchmark/cell.h"
#include "benchmark/statistics.h"

namespace sdx {

BenchResult Runner::measure(const Session& session, const NamedValues& inputs, const MeasureOptions& options) {
  if (options.runs < 1 || options.warmup < 0) {
    fail(ErrorCode::invalid_argument, "a measurement needs at least 1 run and no negative warm-up, received {} and {}",
         options.runs, options.warmup);
  }
  const std::int64_t total = options.warmup + options.runs;
  const std::int64_t zero = benchmark::now_ns();
  const benchmark::Load load = benchmark::generate_load(
      {}, total, 0, 0, [&] { session.run(inputs, options.run); },
      [&](std::int64_t done) {
        if (options.progress) options.progress(done, total);
      });
  BenchResult r;
  std::vector<double> latencies;
  for (const benchmark::Sample& s : load.samples) {
    IterationRecord i;
    i.iter_idx = static_cast<std::int64_t>(r.iterations.size());
    i.t_start_ns = s.start_ns - zero;
    i.t_end_ns = s.end_ns - zero;
    i.latency_ms = static_cast<double>(s.end_ns - s.start_ns) * 1e-6;
    i.warmup = i.iter_idx < options.warmup;
    if (!i.warmup) latencies.push_back(i.latency_ms);
    r.iterations.push_back(i);
  }
  const Report report = session.report();
  r.statistics = benchmark::summarize(std::move(latencies));
  r.batch = options.batch;
  r.warmup_iterations = options.warmup;
  r.measure_iterations = options.runs;
  r.first_run_ms = r.iterations.front().latency_ms;
  r.load_ms = report.load_ms;
  r.init_ms = report.init_ms;
  r.throughput = r.statistics.mean_ms > 0 ? 1000.0 * static_cast<double>(options.batch) / r.statistics.mean_ms : 0;
  r.peak_rss_mb = benchmark::peak_rss_mb();
  r.provider = join(report.providers, ",");
  r.backend = r.provider;
  r.runtime = report.runtime;
  r.fallbacks = report.fallbacks;
  return r;
}

}  // namespace sdx
