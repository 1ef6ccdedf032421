// Benchmark runs as text, CSV and Markdown.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runner/statistics.h"
#include "runner/tables.h"

namespace sdx {
namespace {

using Rows = std::vector<std::vector<std::string>>;

bool any(const BenchRun& run, bool (*f)(const BenchResult&)) { return std::any_of(run.results.begin(), run.results.end(), f); }

std::string threads_text(const BenchResult& r) { return r.threads == 0 ? "auto" : std::to_string(r.threads); }

// "± 1.2 %": half the confidence interval.
std::string uncertainty(const Statistics& s) {
  if (s.p50_ms <= 0) return "–";
  return fmt::format("±{:.1f}%", 50 * (s.median_high_ms - s.median_low_ms) / s.p50_ms);
}

std::string relative_text(const BenchResult& r) { return r.relative > 0 ? fmt::format("{:.2f}x", r.relative) : "–"; }

std::string count_text(double v) { return v >= 1000 ? fmt::format("{:.0f}", v) : fmt::format("{:.4g}", v); }

Rows summary_rows(const BenchRun& run) {
  const bool clients = any(run, [](const BenchResult& r) { return r.clients > 1; });
  const bool rate = any(run, [](const BenchResult& r) { return r.rate > 0; });
  Rows rows{{"backend", "threads", "batch"}};
  if (clients) rows[0].emplace_back("clients");
  if (rate) rows[0].emplace_back("rate/s");
  for (const char* h :
       {"median ms", "95% CI", "mean", "p90", "p99", "min", "samples/s", "ratio", "load ms", "init ms", "first ms", "peak MB"})
    rows[0].emplace_back(h);
  for (const BenchResult& r : run.results) {
    if (!r.error.empty()) continue;
    const Statistics& s = r.statistics;
    auto& row = rows.emplace_back(std::vector<std::string>{r.backend, threads_text(r), std::to_string(r.batch)});
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
  Rows rows{{"operator", "kernel", "provider", "calls", "ms", "share", "GFLOP/s", "GB/s"}};
  double rest = 0;
  for (std::size_t i = 0; i < r.operators.size(); ++i) {
    const OperatorTime& o = r.operators[i];
    if (i >= most) {
      rest += o.share;
      continue;
    }
    const auto speed = [](double v) { return v > 0 ? fmt::format("{:.1f}", v) : std::string("–"); };
    rows.push_back({o.op, o.kernel, o.provider, std::to_string(o.calls), ms_text(o.ms), fmt::format("{:.1f}%", 100 * o.share),
                    speed(o.gflops_per_s), speed(o.gbytes_per_s)});
  }
  if (rest > 0)
    rows.push_back(
        {fmt::format("{} more", r.operators.size() - most), "", "", "", "", fmt::format("{:.1f}%", 100 * rest), "", ""});
  return rows;
}

std::string label(const BenchResult& r) {
  std::string out = r.backend + (r.threads != 0 ? fmt::format(", {} threads", r.threads) : "");
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
    out += fmt::format("{}{}: {}[{}]", out.empty() ? "" : ", ", i.name, i.dtype, fmt::join(i.shape, ","));
  return out;
}

// Every note once, with who it is about.
std::vector<std::string> all_notes(const BenchRun& run) {
  std::vector<std::string> out = run.notes;
  for (const BenchResult& r : run.results) {
    for (const std::string& n : r.notes) {
      const bool shared = std::all_of(run.results.begin(), run.results.end(), [&](const BenchResult& other) {
        return !other.error.empty() || std::find(other.notes.begin(), other.notes.end(), n) != other.notes.end();
      });
      const std::string text = shared ? n : label(r) + ": " + n;
      if (std::find(out.begin(), out.end(), text) == out.end()) out.push_back(text);
    }
    for (const std::string& f : r.fallbacks) out.push_back(label(r) + ": FALLBACK: " + f);
  }
  return out;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string to_text(const BenchRun& run, const TextOptions& options) {
  std::string out = fmt::format("{}  ({})\n{}\n", run.model, inputs_line(run), machine_line(run.machine));
  const Rows rows = summary_rows(run);
  if (rows.size() > 1) out += "\n" + text_table(rows);
  for (const BenchResult& r : run.results) {
    if (!r.error.empty()) out += fmt::format("\n{}: no figures: {}\n", label(r), r.error);
  }
  for (const BenchResult& r : run.results) {
    if (!r.error.empty() || !options.charts) continue;
    const auto& times = r.statistics.latencies_ms;
    const auto width = static_cast<std::size_t>(std::clamp(options.width - 24, 10, 120));
    out += fmt::format("\n{}: {} runs\n{}", label(r), times.size(), histogram(times, 10, width));
    if (!times.empty()) out += fmt::format("  {:>9} {}\n", "course", sparkline(times, width));
  }
  for (const BenchResult& r : run.results) {
    if (r.operators.empty()) continue;
    out += fmt::format("\n{}: operators of one run\n{}", label(r), text_table(operator_rows(r, 20), "  "));
  }
  const std::vector<std::string> notes = all_notes(run);
  if (!notes.empty()) out += "\n";
  for (const std::string& n : notes) out += "note: " + n + "\n";
  return out;
}

std::string to_text(const BenchResult& r) {
  const Statistics& s = r.statistics;
  return fmt::format(
      "provider     {}\n"
      "runs         {} measured after {} to warm up\n"
      "mean         {:.3f} ms (± {:.3f})\n"
      "median       {:.3f} ms (95 % confidence: {:.3f} to {:.3f})\n"
      "min, max     {:.3f} ms, {:.3f} ms\n"
      "p90 p95 p99  {:.3f} ms, {:.3f} ms, {:.3f} ms\n"
      "throughput   {:.1f} samples/s\n"
      "load, init   {:.1f} ms, {:.1f} ms; first run {:.3f} ms\n"
      "peak memory  {:.1f} MB\n",
      r.provider, r.measure_iterations, r.warmup_iterations, s.mean_ms, s.std_ms, s.p50_ms, s.median_low_ms, s.median_high_ms,
      s.min_ms, s.max_ms, s.p90_ms, s.p95_ms, s.p99_ms, r.throughput, r.load_ms, r.init_ms, r.first_run_ms, r.peak_rss_mb);
}

std::string to_csv(const BenchRun& run) {
  std::string out =
      "model,backend,threads,batch_size,clients,rate,provider,runtime,mean_ms,std_ms,min_ms,max_ms,median_ms,p50_ms,p90_ms,p95_"
      "ms,"
      "p99_ms,coefficient_of_variation,median_low_ms,median_high_ms,throughput,relative,warmup_iterations,measure_iterations,"
      "load_ms,init_ms,first_run_ms,peak_rss_mb,fallbacks,error\n";
  for (const BenchResult& r : run.results) {
    const Statistics& s = r.statistics;
    out += fmt::format("{},{},{},{},{},{},{},{},", csv_cell(run.model), csv_cell(r.backend), r.threads, r.batch, r.clients,
                       r.rate, csv_cell(r.provider), csv_cell(r.runtime));
    if (r.error.empty()) {
      out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},", s.mean_ms, s.std_ms, s.min_ms, s.max_ms,
                         s.p50_ms, s.p50_ms, s.p90_ms, s.p95_ms, s.p99_ms, s.coefficient_of_variation, s.median_low_ms,
                         s.median_high_ms, r.throughput, r.relative, r.warmup_iterations, r.measure_iterations, r.load_ms,
                         r.init_ms, r.first_run_ms, r.peak_rss_mb);
    } else {
      out += std::string(20, ',');
    }
    out += fmt::format("{},{}\n", csv_cell(fmt::format("{}", fmt::join(r.fallbacks, "; "))), csv_cell(one_line(r.error)));
  }
  return out;
}

std::string to_markdown(const BenchRun& run) {
  std::string out = fmt::format("# {}\n\n{}; {}; sdx {}{}\n\n", run.model, inputs_line(run), machine_line(run.machine),
                                run.machine.sdx_version, run.created.empty() ? "" : ", " + run.created);
  const Rows rows = summary_rows(run);
  if (rows.size() > 1) out += markdown_table(rows);
  for (const BenchResult& r : run.results) {
    if (!r.error.empty()) out += fmt::format("\n**{}**: no figures: {}\n", label(r), one_line(r.error));
    if (!r.operators.empty())
      out += fmt::format("\n## Operators of one run: {}\n\n{}", label(r), markdown_table(operator_rows(r, 40)));
  }
  const std::vector<std::string> notes = all_notes(run);
  if (!notes.empty()) out += "\n";
  for (const std::string& n : notes) out += "- " + one_line(n) + "\n";
  return out;
}

}  // namespace sdx
