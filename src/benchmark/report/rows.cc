#include "benchmark/report/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/counted.h"
#include "base/system/printable.h"
#include "benchmark/machine_limits.h"
#include "benchmark/report/charts.h"
#include "benchmark/statistics.h"

namespace sdx::benchmark {
namespace {

bool any(const BenchRun& run, bool (*f)(const BenchResult&)) { return std::any_of(run.results.begin(), run.results.end(), f); }

std::string threads_text(const BenchResult& r) { return r.threads == 0 ? "auto" : std::to_string(r.threads); }

// "± 1.2 %": half the confidence interval.
std::string uncertainty(const Statistics& s) {
  if (s.p50_ms <= 0 || !has_interval(s)) return "–";
  return fmt::format("±{:.1f}%", 50 * (s.median_high_ms - s.median_low_ms) / s.p50_ms);
}

std::string relative_text(const BenchResult& r) { return r.relative > 0 ? fmt::format("{:.2f}x", r.relative) : "–"; }

std::string count_text(double v) { return v >= 1000 ? fmt::format("{:.0f}", v) : fmt::format("{:.4g}", v); }

std::string limits_line(const MachineLimits& m) {
  if (m.threads == 0) return "";
  return fmt::format("limits of this machine with {}: {:.0f} GFLOP/s (float32 multiply-add), {:.1f} GB/s (reading memory)",
                     counted(m.threads, "thread"), m.gflops_per_s, m.read_gbytes_per_s);
}

// "64% fma" of the peak rate of multiply-adds, or "81% read" of that of reading memory.
std::string limit_text(const LimitShare& s) {
  return s.share > 0 ? fmt::format("{:.0f}% {}", 100 * s.share, s.by_memory ? "read" : "fma") : "–";
}

}  // namespace

namespace {

bool has_clients(const BenchRun& run) {
  return any(run, [](const BenchResult& r) { return r.clients > 1; });
}
bool has_rate(const BenchRun& run) {
  return any(run, [](const BenchResult& r) { return r.rate > 0; });
}
// True if nodes of any result ran on another provider than its name says.
bool has_places(const BenchRun& run) {
  return any(run, [](const BenchResult& r) { return r.error.empty() && !places_text(r).empty(); });
}

}  // namespace

std::string places_text(const BenchResult& r) {
  if (r.backend == "auto") return "";  // its name says it
  if (r.places.size() == 1 && (r.fallbacks.empty() || r.places[0].provider == r.backend)) return "";
  std::vector<std::string> parts;
  for (const ProviderNodes& p : r.places) {
    parts.push_back(r.places.size() == 1 ? p.provider : fmt::format("{} {}", p.provider, p.nodes));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string backend_text(const BenchResult& r) {
  return r.backend == "auto" && !r.provider.empty() ? fmt::format("auto: {}", r.provider) : r.backend;
}

std::size_t key_columns(const BenchRun& run) {
  return 3 + (has_clients(run) ? 1U : 0U) + (has_rate(run) ? 1U : 0U) + (has_places(run) ? 1U : 0U);
}

Rows summary_rows(const BenchRun& run) {
  const bool clients = has_clients(run), rate = has_rate(run), places = has_places(run);
  Rows rows{{"backend", "threads", "batch"}};
  if (places) rows[0].insert(rows[0].begin() + 1, "nodes on");
  if (clients) rows[0].emplace_back("clients");
  if (rate) rows[0].emplace_back("rate/s");
  for (const char* h :
       {"median ms", "95% CI", "mean", "p90", "p99", "min", "samples/s", "ratio", "load ms", "init ms", "first ms", "peak MB"})
    rows[0].emplace_back(h);
  for (const BenchResult& r : run.results) {
    if (!r.error.empty()) continue;
    const Statistics& s = r.statistics;
    auto& row = rows.emplace_back(std::vector<std::string>{backend_text(r), threads_text(r), std::to_string(r.batch)});
    if (places) row.insert(row.begin() + 1, places_text(r));
    if (clients) row.push_back(std::to_string(r.clients));
    if (rate) row.push_back(fmt::format("{:.6g}", r.rate));
    for (const std::string& cell :
         {ms_text(s.p50_ms), uncertainty(s), ms_text(s.mean_ms), ms_text(s.p90_ms), ms_text(s.p99_ms), ms_text(s.min_ms),
          count_text(r.throughput), relative_text(r), fmt::format("{:.1f}", r.load_ms), fmt::format("{:.1f}", r.init_ms),
          ms_text(r.first_run_ms), fmt::format("{:.1f}", r.peak_rss_mb)}) {
      row.push_back(cell);
    }
  }
  return rows;
}

Rows operator_rows(const BenchResult& r, std::size_t most) {
  Rows rows{{"operator", "kernel", "provider", "calls", "ms", "share", "GFLOP/s", "GB/s", "of limit"}};
  double rest = 0;
  for (std::size_t i = 0; i < r.operators.size(); ++i) {
    const OperatorTime& o = r.operators[i];
    if (i >= most) {
      rest += o.share;
      continue;
    }
    const auto speed = [](double v) { return v > 0 ? fmt::format("{:.1f}", v) : std::string("–"); };
    rows.push_back({o.op, o.kernel, o.provider, std::to_string(o.calls), ms_text(o.ms), fmt::format("{:.1f}%", 100 * o.share),
                    speed(o.gflops_per_s), speed(o.gbytes_per_s),
                    limit_text(limit_share(r.limits, o.provider, o.gflops_per_s, o.gbytes_per_s))});
  }
  if (rest > 0)
    rows.push_back(
        {fmt::format("{} more", r.operators.size() - most), "", "", "", "", fmt::format("{:.1f}%", 100 * rest), "", "", ""});
  return rows;
}

Rows node_rows(const BenchResult& r, std::size_t most) {
  Rows rows{{"node", "operator", "kernel", "ms", "share", "MFLOP", "GFLOP/s", "MB", "GB/s", "of limit"}};
  const auto known = [](double v, double unit) { return v > 0 ? fmt::format("{:.2f}", v * unit) : std::string("–"); };
  const auto speed = [](double v) { return v > 0 ? fmt::format("{:.1f}", v) : std::string("–"); };
  for (const NodeTime& n : r.nodes) {
    if (rows.size() > most) break;
    rows.push_back({n.name, n.op, n.provider + ": " + n.kernel, ms_text(n.ms), fmt::format("{:.1f}%", 100 * n.share),
                    known(n.gflop, 1e3), speed(n.gflops_per_s), known(n.gbyte, 1e3), speed(n.gbytes_per_s),
                    limit_text(limit_share(r.limits, n.provider, n.gflops_per_s, n.gbytes_per_s))});
  }
  return rows;
}

std::string node_heading(const BenchResult& r, std::size_t most) {
  return r.nodes.size() > most ? fmt::format("the {} most expensive of {} nodes", most, r.nodes.size()) : "nodes of one run";
}

std::string result_label(const BenchResult& r) {
  std::string out = backend_text(r) + (r.threads != 0 ? ", " + counted(r.threads, "thread") : "");
  if (r.batch != 1) out += fmt::format(", batch {}", r.batch);
  return out;
}

std::string machine_line(const MachineInfo& m) {
  std::string out = fmt::format("{}, {} cores", m.cpu.empty() ? "unknown processor" : m.cpu, m.cores);
  if (!m.isa.empty()) out += ", " + m.isa;
  if (m.memory_mb > 0) out += fmt::format(", {:.0f} GB", m.memory_mb / 1024);
  return out;
}

std::string inputs_line(const BenchRun& run) {
  std::string out;
  for (const BenchInput& i : run.inputs)
    out += fmt::format("{}{}: {}[{}]", out.empty() ? "" : ", ", sdx::one_line(i.name), i.dtype, fmt::join(i.shape, ","));
  return out;
}

std::vector<std::string> all_notes(const BenchRun& run) {
  std::vector<std::string> out = run.notes;
  for (const BenchResult& r : run.results) {
    for (const std::string& n : r.notes) {
      const bool shared = std::all_of(run.results.begin(), run.results.end(), [&](const BenchResult& other) {
        return !other.error.empty() || std::find(other.notes.begin(), other.notes.end(), n) != other.notes.end();
      });
      const std::string text = shared ? n : result_label(r) + ": " + n;
      if (std::find(out.begin(), out.end(), text) == out.end()) out.push_back(text);
    }
    const std::string limits = limits_line(r.limits);
    if (!limits.empty() && std::find(out.begin(), out.end(), limits) == out.end()) out.push_back(limits);
    for (const std::string& f : r.fallbacks) {
      const std::string text = r.backend + ": FALLBACK: " + f;  // whatever the batch size and threads
      if (std::find(out.begin(), out.end(), text) == out.end()) out.push_back(text);
    }
  }
  return out;
}

}  // namespace sdx::benchmark
