// A benchmark as one HTML file. The summary is there without scripts; the plots are drawn from the JSON inside by report_page.cc.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include <sdx/runner.hpp>

#include "base/text/json_text.h"
#include "base/text/markup.h"
#include "benchmark/report/page.h"
#include "benchmark/report/rows.h"
#include "benchmark/statistics.h"

namespace sdx {
namespace {

using namespace benchmark;

using nlohmann::ordered_json;

// `texts`: how many of the first columns are words.
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t texts) {
  std::string out = "<div class=\"scroll\"><table>";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const char* const cell = r == 0 ? "th" : "td";
    out += r == 0 ? "<thead><tr>" : r == 1 ? "<tbody><tr>" : "<tr>";
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      out += fmt::format("<{}{}>{}</{}>", cell, c < texts ? " class=\"text\"" : "", markup_text(rows[r][c]), cell);
    }
    out += r == 0 ? "</tr></thead>" : "</tr>";
  }
  return out + (rows.size() > 1 ? "</tbody>" : "<tbody></tbody>") + "</table></div>\n";
}

// The data of the plots. Text that came from elsewhere must not close the element that holds it.
std::string data_json(const BenchRun& run) {
  ordered_json results = ordered_json::array();
  for (const BenchResult& r : run.results) {
    const Statistics& s = r.statistics;
    std::vector<double> starts;
    for (const IterationRecord& i : r.iterations) {
      const std::int64_t microseconds = i.t_start_ns / 1000;
      if (!i.warmup) starts.push_back(static_cast<double>(microseconds) * 1e-3);
    }
    if (starts.size() != s.latencies_ms.size()) starts.clear();
    results.push_back({{"label", result_label(r)},
                       {"backend", r.backend},
                       {"threads", r.threads},
                       {"batch_size", r.batch},
                       {"error", r.error},
                       {"median_ms", s.p50_ms},
                       {"p90_ms", s.p90_ms},
                       {"p99_ms", s.p99_ms},
                       {"median_ci95_ms", has_interval(s) ? ordered_json{s.median_low_ms, s.median_high_ms} : ordered_json()},
                       {"throughput", r.throughput},
                       {"latencies_ms", s.latencies_ms},
                       {"t_ms", starts}});
  }
  const std::string text = dump_json(ordered_json{{"results", results}});
  std::string out;
  for (const char c : text) out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

std::string choice(const char* name, const char* value, const char* text) {
  return fmt::format("<button data-choice=\"{}\" value=\"{}\">{}</button>", name, value, text);
}

std::string plots(bool several_batches) {
  std::string out =
      "<div class=\"plots\"><div class=\"legend\" id=\"legend\"></div><div class=\"two\">"
      "<section class=\"card\"><div class=\"head\"><h2>Median time of a run</h2></div><div id=\"medians\"></div></section>"
      "<section class=\"card\"><div class=\"head\"><h2>Distribution</h2><div class=\"tabs\">";
  out += choice("shape", "histogram", "Histogram") + choice("shape", "cumulative", "Cumulative");
  out += "</div></div><div id=\"distribution\"></div></section></div>";
  if (several_batches) {
    out +=
        "<section class=\"card\"><div class=\"head\"><h2>Throughput over batch size</h2></div><div "
        "id=\"batches\"></div></section>";
  }
  out +=
      "<section class=\"card\"><div class=\"head\"><h2>Every run</h2><div class=\"tabs\"><span class=\"mute\" "
      "id=\"beyond\"></span>";
  out += choice("cut", "cut", "Without the slowest") + choice("cut", "all", "All");
  return out + "</div></div><div id=\"course\"></div></section></div>\n";
}

std::string profiles(const BenchRun& run) {
  std::string out;
  for (const BenchResult& r : run.results) {
    if (r.operators.empty()) continue;
    out += fmt::format("<section class=\"card\"><div class=\"head\"><h2>Operators: {}</h2></div>{}</section>\n",
                       markup_text(result_label(r)), table(operator_rows(r, r.operators.size()), 3));
    if (r.nodes.empty()) continue;
    constexpr std::size_t kMost = 400;
    out += fmt::format("<details class=\"card\"{}><summary>Nodes: {} <span class=\"mute\">{}</span></summary>{}</details>\n",
                       run.results.size() == 1 ? " open" : "", markup_text(result_label(r)), markup_text(node_heading(r, kMost)),
                       table(node_rows(r, kMost), 3));
  }
  return out;
}

// True for notes that cast doubt on the figures: these stay visible, all others are folded.
bool weighs(const std::string& note) {
  return note.find("FALLBACK") != std::string::npos || note.find(" ran ") != std::string::npos ||
         note.find("95 % interval") != std::string::npos || note.find("speed changed") != std::string::npos;
}

std::string notes_of(const BenchRun& run) {
  std::string open, folded;
  int count = 0;
  for (const std::string& n : all_notes(run)) {
    if (weighs(n)) {
      open += "<p class=\"note\">" + markup_text(n) + "</p>\n";
    } else {
      folded += "<p class=\"note light\">" + markup_text(n) + "</p>\n";
      ++count;
    }
  }
  if (count == 0) return open;
  return open +
         fmt::format("<details class=\"card\"><summary>{} note{}</summary>{}</details>\n", count, count == 1 ? "" : "s", folded);
}

}  // namespace

std::string to_html(const BenchRun& run) {
  const std::size_t slash = run.model.find_last_of('/');
  const std::string title = markup_text(slash == std::string::npos ? run.model : run.model.substr(slash + 1));
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      // The browser itself blocks all requests that leave the page.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
      "'unsafe-inline'\">";
  out += fmt::format("<title>{} – benchmark</title><style>{}</style></head><body><main>\n", title, kReportStyle);
  out += fmt::format(
      "<header><div><h1>{}</h1><p class=\"soft\">{}</p><p class=\"mute\">{}{}{}</p></div><button "
      "id=\"theme\">Dark</button></header>\n",
      title, markup_text(inputs_line(run)), markup_text(machine_line(run.machine)),
      run.created.empty() ? "" : markup_text(" · " + run.created),
      run.machine.sdx_version.empty() ? "" : markup_text(" · sdx " + run.machine.sdx_version));
  for (const BenchResult& r : run.results) {
    if (!r.error.empty())
      out += fmt::format("<p class=\"note error\">{}: no figures: {}</p>\n", markup_text(result_label(r)), markup_text(r.error));
  }
  const auto rows = summary_rows(run);
  const auto batch = [&](const BenchResult& r) { return r.batch != run.results.front().batch; };
  if (rows.size() > 1) {
    out += plots(std::any_of(run.results.begin(), run.results.end(), batch));
    out +=
        "<section class=\"card\"><div class=\"head\"><h2>Figures</h2><span class=\"mute\">a click on a heading "
        "sorts</span></div>" +
        table(rows, 1) + "</section>\n";
  }
  out += notes_of(run);
  out += profiles(run);
  out += "</main><div id=\"tip\"></div>\n<script type=\"application/json\" id=\"data\">" + data_json(run) + "</script>\n";
  return out + "<script>" + kReportScript + "</script></body></html>\n";
}

}  // namespace sdx
