// Benchmark runs as text, CSV and Markdown.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/csv.h"
#include "base/text/text_table.h"
#include "benchmark/report/charts.h"
#include "benchmark/report/rows.h"
#include "benchmark/statistics.h"

namespace sdx {
namespace {

using namespace benchmark;

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string csv_cell(const std::string& text) {
  return text.find_first_of(",\"\n\r") == std::string::npos ? text : csv_quoted(text);
}

}  // namespace

std::string to_text(const BenchRun& run, const BenchTextOptions& options) {
  std::string out = fmt::format("{}  ({})\n{}\n", run.model, inputs_line(run), machine_line(run.machine));
  const Rows rows = summary_rows(run);
  const auto columns = static_cast<std::size_t>(std::max(0, options.width));
  if (rows.size() > 1) out += "\n" + text_table(rows, TableLayout{"", columns, key_columns(run)});
  for (const BenchResult& r : run.results) {
    if (!r.error.empty()) out += fmt::format("\n{}: no figures: {}\n", result_label(r), r.error);
  }
  for (const BenchResult& r : run.results) {
    if (!r.error.empty() || !options.charts) continue;
    const auto& times = r.statistics.latencies_ms;
    const auto width = static_cast<std::size_t>(std::clamp(options.width > 0 ? options.width - 24 : 76, 10, 120));
    out += fmt::format("\n{}: {} runs\n{}", result_label(r), times.size(), histogram(times, 10, width));
    if (!times.empty()) out += fmt::format("  {:>9} {}\n", "course", sparkline(times, width));
  }
  for (const BenchResult& r : run.results) {
    if (r.operators.empty()) continue;
    out += fmt::format("\n{}: operators of one run\n{}", result_label(r),
                       text_table(operator_rows(r, 20), TableLayout{"  ", columns, 1}));
    if (!r.nodes.empty())
      out += fmt::format("\n{}: {}\n{}", result_label(r), node_heading(r, 20),
                         text_table(node_rows(r, 20), TableLayout{"  ", columns, 1}));
  }
  std::vector<std::string> notes = all_notes(run);
  if (!options.notes) std::erase_if(notes, [](const std::string& n) { return n.find("FALLBACK: ") == std::string::npos; });
  if (!notes.empty()) out += "\n";
  for (const std::string& n : notes) out += "note: " + n + "\n";
  return out;
}

std::string to_text(const BenchResult& r) {
  const Statistics& s = r.statistics;
  const std::string interval = has_interval(s)
                                   ? fmt::format(" (95 % confidence: {:.3f} to {:.3f})", s.median_low_ms, s.median_high_ms)
                                   : fmt::format(" (a confidence interval takes {} runs)", kRunsForInterval);
  return fmt::format(
      "provider     {}\n"
      "runs         {} measured after {} to warm up\n"
      "mean         {:.3f} ms (± {:.3f})\n"
      "median       {:.3f} ms{}\n"
      "min, max     {:.3f} ms, {:.3f} ms\n"
      "p90 p95 p99  {:.3f} ms, {:.3f} ms, {:.3f} ms\n"
      "throughput   {:.1f} samples/s\n"
      "load, init   {:.1f} ms, {:.1f} ms; first run {:.3f} ms\n"
      "peak memory  {:.1f} MB\n",
      r.provider, r.measure_iterations, r.warmup_iterations, s.mean_ms, s.std_ms, s.p50_ms, interval, s.min_ms, s.max_ms,
      s.p90_ms, s.p95_ms, s.p99_ms, r.throughput, r.load_ms, r.init_ms, r.first_run_ms, r.peak_rss_mb);
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
      const std::string low = has_interval(s) ? fmt::format("{}", s.median_low_ms) : "";
      const std::string high = has_interval(s) ? fmt::format("{}", s.median_high_ms) : "";
      out +=
          fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},", s.mean_ms, s.std_ms, s.min_ms, s.max_ms,
                      s.p50_ms, s.p50_ms, s.p90_ms, s.p95_ms, s.p99_ms, s.coefficient_of_variation, low, high, r.throughput,
                      r.relative, r.warmup_iterations, r.measure_iterations, r.load_ms, r.init_ms, r.first_run_ms, r.peak_rss_mb);
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
    if (!r.error.empty()) out += fmt::format("\n**{}**: no figures: {}\n", result_label(r), one_line(r.error));
    if (!r.operators.empty())
      out += fmt::format("\n## Operators of one run: {}\n\n{}", result_label(r), markdown_table(operator_rows(r, 40)));
    if (!r.nodes.empty())
      out += fmt::format("\n## {}: {}\n\n{}", node_heading(r, 40), result_label(r), markdown_table(node_rows(r, 40)));
  }
  const std::vector<std::string> notes = all_notes(run);
  if (!notes.empty()) out += "\n";
  for (const std::string& n : notes) out += "- " + one_line(n) + "\n";
  return out;
}

}  // namespace sdx
