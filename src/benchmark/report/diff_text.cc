// Comparisons of benchmarks as text, Markdown and JSON.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sdx/runner.hpp>

#include "base/text/json_text.h"
#include "base/text/text_table.h"
#include "benchmark/report/charts.h"

namespace sdx {
namespace {

using namespace benchmark;

std::vector<std::vector<std::string>> rows_of(const Diff& d) {
  std::vector<std::vector<std::string>> rows{
      {"backend", "threads", "batch", "base ms", "current ms", "change", "95% CI", "p-value", "verdict", "why"}};
  for (const DiffEntry& e : d.entries) {
    const bool figures = e.verdict != DiffEntry::Verdict::missing;
    rows.push_back({e.backend, e.threads == 0 ? "auto" : std::to_string(e.threads), std::to_string(e.batch), ms_text(e.base_ms),
                    ms_text(e.current_ms), figures ? fmt::format("{:+.1f}%", e.change_percent) : "–",
                    figures ? fmt::format("{:+.1f}% to {:+.1f}%", e.low_percent, e.high_percent) : "–",
                    figures ? fmt::format("{:.2g}", e.p_value) : "–", std::string(name(e.verdict)), e.why});
  }
  return rows;
}

}  // namespace

std::string to_text(const Diff& d, int width) {
  std::string out = text_table(rows_of(d), TableLayout{"", static_cast<std::size_t>(std::max(0, width)), 3});
  for (const std::string& n : d.notes) out += "note: " + n + "\n";
  return out;
}

std::string to_markdown(const Diff& d) {
  std::string out = markdown_table(rows_of(d));
  if (!d.notes.empty()) out += "\n";
  for (const std::string& n : d.notes) out += "- " + n + "\n";
  return out;
}

std::string to_json(const Diff& d) {
  using nlohmann::ordered_json;
  ordered_json entries = ordered_json::array();
  for (const DiffEntry& e : d.entries) {
    entries.push_back({{"backend", e.backend},
                       {"threads", e.threads},
                       {"batch_size", e.batch},
                       {"base_ms", e.base_ms},
                       {"current_ms", e.current_ms},
                       {"change_percent", e.change_percent},
                       {"change_ci95_percent", {e.low_percent, e.high_percent}},
                       {"p_value", e.p_value},
                       {"quiet_rounds", e.quiet_rounds},
                       {"machine_change_percent", e.machine_percent},
                       {"verdict", name(e.verdict)},
                       {"why", e.why}});
  }
  const ordered_json j{
      {"base", d.base},           {"current", d.current},       {"threshold_percent", d.options.threshold_percent},
      {"alpha", d.options.alpha}, {"regressed", d.regressed()}, {"results", entries},
      {"notes", d.notes}};
  return dump_json(j) + "\n";
}

}  // namespace sdx
