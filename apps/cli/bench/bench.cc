// sdx bench, sweep, report and diff

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <sdx/runner.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"
#include "cli/bench/bench_flags.h"
#include "cli/command.h"

namespace sdx::cli {
namespace {

constexpr const char* kBenchExamples =
    "Examples:\n"
    "  sdx bench model.onnx\n"
    "  sdx bench model.onnx -b cpu -b ort:cpu -b openvino -t 1,2 --json run.json\n"
    "  sdx bench model.onnx --batch-size 1,8 --duration 10\n"
    "  sdx bench model.onnx --clients 4\n"
    "  sdx bench model.onnx --rate 200 --duration 30\n"
    "  sdx bench model.onnx --profile --trace trace.json\n"
    "Unavailable backends are reported and skipped. No backend is replaced by another one without --fallback warn.\n";

constexpr const char* kSweepExamples =
    "Examples:\n"
    "  sdx sweep model.onnx -B 1,2,4,8,16,32\n"
    "  sdx sweep model.onnx -b cpu -b ort:cpu -B 1,8 -n 20 --csv sweep.csv\n";

constexpr const char* kReportExamples =
    "Examples:\n"
    "  sdx report run.json\n"
    "  sdx report run.json -f md\n"
    "  sdx report run.json -f html -o run.html\n";

constexpr const char* kDiffExamples =
    "Examples:\n"
    "  sdx diff main.json branch.json\n"
    "  sdx diff main.json branch.json -t 3 --json\n"
    "  sdx diff main.json branch.json --no-fail\n"
    "The exit code is 1 if something became slower, unless --no-fail is given.\n";

int bench(const BenchFlags& flags) {
  if (flags.dry_run) {
    show_bench_plan(flags);
    return kOk;
  }
  BenchRun run;
  const int code = run_bench(flags, run);
  show_bench(flags, run);
  return code;
}

// The best batch of each backend, by samples a second.
std::string best_batches(const BenchRun& run) {
  std::string out;
  std::vector<std::string> seen;
  for (const BenchResult& r : run.results) {
    const std::string key = fmt::format("{} {}", r.backend, r.threads);
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
    seen.push_back(key);
    const BenchResult* best = nullptr;
    const BenchResult* smallest = nullptr;
    for (const BenchResult& other : run.results) {
      if (other.backend != r.backend || other.threads != r.threads || !other.error.empty()) continue;
      if (best == nullptr || other.throughput > best->throughput) best = &other;
      if (smallest == nullptr || other.batch < smallest->batch) smallest = &other;
    }
    if (best == nullptr) continue;
    out += fmt::format("best batch size on {}{}: {} ({:.4g} samples/s, {:.2f}x of batch {})\n", r.backend,
                       r.threads != 0 ? fmt::format(" with {} threads", r.threads) : "", best->batch, best->throughput,
                       best->throughput / smallest->throughput, smallest->batch);
  }
  return out;
}

int sweep(const BenchFlags& flags) {
  BenchFlags f = flags;
  if (f.given.batch_sizes.empty()) f.given.batch_sizes = {1, 2, 4, 8, 16, 32};
  f.no_interleave = true;  // large batches of large models need the memory
  if (f.given.processes == 0) f.given.processes = 1;
  if (flags.dry_run) {
    show_bench_plan(f);
    return kOk;
  }
  BenchRun run;
  run_bench(f, run);
  const std::string best = best_batches(run);
  if (show_bench(flags, run) && !best.empty()) print("\n" + best);
  // A batch size that does not work is a finding; a sweep without any figure has failed.
  return std::any_of(run.results.begin(), run.results.end(), [](const BenchResult& r) { return r.error.empty(); }) ? kOk
                                                                                                                   : kFailed;
}

void print_or_write(const std::string& path, const std::string& text) {
  if (path.empty() || path == "-") {
    print(text);
  } else {
    write_file_atomically(path, text);
  }
}

int report(const std::string& path, const std::string& format, const std::string& output, int width) {
  const BenchRun run = read_benchmark(path);
  const std::string text = format == "json"   ? to_json(run)
                           : format == "csv"  ? to_csv(run)
                           : format == "md"   ? to_markdown(run)
                           : format == "html" ? to_html(run)
                                              : to_text(run, {width, true});
  print_or_write(output, text);
  return kOk;
}

struct DiffCommand {
  std::string base, current, markdown;
  std::string threshold = "5", alpha = "0.05";
  bool json = false, no_fail = false, different_models = false;
  int run() const;
};

double parse_number(const std::string& text, const char* option) {
  try {
    std::size_t used = 0;
    const double v = std::stod(text, &used);
    const bool percent = text.substr(used) == "%";
    if ((used == text.size() || percent) && std::isfinite(v)) return v;
  } catch (const std::exception&) {
  }
  throw UsageError(fmt::format("{}: '{}' is not a number", option, text));
}

int DiffCommand::run() const {
  DiffOptions o;
  o.threshold_percent = parse_number(threshold, "--threshold");
  o.alpha = parse_number(alpha, "--alpha");
  if (o.threshold_percent < 0) throw UsageError(fmt::format("--threshold must not be negative, received {}", threshold));
  if (!(o.alpha > 0 && o.alpha < 1)) throw UsageError(fmt::format("--alpha must lie between 0 and 1, received {}", alpha));
  o.different_models = different_models;
  const BenchRun a = read_benchmark(base);
  const BenchRun b = read_benchmark(current);
  Diff d = diff(a, b, o);
  d.base = base;
  d.current = current;
  if (markdown == "-" && json) throw UsageError("only one of --json and --md may go to standard output");
  if (!markdown.empty() && markdown != "-") NewFile::check(markdown);
  if (json || markdown == "-") {
    print(json ? to_json(d) : to_markdown(d));
  } else {
    print_coloured(to_text(d, terminal_columns()),
                   {{"REGRESSION", Colour::red}, {"IMPROVEMENT", Colour::green}, {"MISSING", Colour::yellow}});
  }
  if (!markdown.empty() && markdown != "-") write_file_atomically(markdown, to_markdown(d));
  return d.regressed() && !no_fail ? kFailed : kOk;
}

}  // namespace

void add_bench(const Command& app, Action& action) {
  const Command command = app.add_subcommand("bench", "Measure a model on several backends and compare them");
  const auto flags = std::make_shared<BenchFlags>();
  flags->add_to(command, "--batch-size");
  command->footer(kBenchExamples);
  command->callback([flags, &action] { action = [flags] { return bench(*flags); }; });
}

void add_sweep(const Command& app, Action& action) {
  const Command command = app.add_subcommand("sweep", "Measure a model at several batch sizes");
  const auto flags = std::make_shared<BenchFlags>();
  flags->add_to(command, "-B,--batch-size,--batch-sizes");
  command->footer(kSweepExamples);
  command->callback([flags, &action] { action = [flags] { return sweep(*flags); }; });
}

void add_report(const Command& app, Action& action) {
  const Command command = app.add_subcommand("report", "Show a benchmark that `sdx bench --json` wrote");
  struct Options {
    std::string path, format = "terminal", output;
    int width = 0;
  };
  const auto o = std::make_shared<Options>();
  command->add_option("RUN", o->path, "File written by sdx bench --json")->required();
  command->add_option("-f,--format", o->format, "terminal (default), html, json, csv or md")
      ->one_of({"terminal", "html", "json", "csv", "md"})
      ->type_name("FORMAT");
  command->add_option("-o,--output", o->output, "Write to this file")->type_name("FILE");
  command->add_option("--width", o->width, "Width in columns; default: the terminal's")->range(40, 400)->type_name("N");
  command->footer(kReportExamples);
  command->callback([o, &action] {
    action = [o] { return report(o->path, o->format, o->output, o->width > 0 ? o->width : terminal_columns()); };
  });
}

void add_diff(const Command& app, Action& action) {
  const Command command = app.add_subcommand("diff", "Compare two benchmarks and show what became slower or faster");
  const auto c = std::make_shared<DiffCommand>();
  command->add_option("BASE", c->base, "File written by sdx bench --json")->required();
  command->add_option("CURRENT", c->current, "File written by sdx bench --json")->required();
  command->add_option("-t,--threshold", c->threshold, "Changes below this percentage are neutral (5)")->type_name("PERCENT");
  command->add_option("--alpha", c->alpha, "Significance level: largest p-value of a significant change (0.05)")->type_name("P");
  command->add_flag("--json", c->json, "Print JSON");
  command->add_option("--md", c->markdown, "Write a Markdown table; '-': to standard output")->type_name("FILE");
  command->add_flag("--different-models", c->different_models, "Compare benchmarks of different models or inputs");
  command->add_flag("--no-fail", c->no_fail, "Exit with 0 even if something became slower");
  command->footer(kDiffExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
