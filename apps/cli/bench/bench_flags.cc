#include "cli/bench/bench_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"
#include "base/thread_pool.h"
#include "base/words.h"
#include "benchmark/model_hash.h"
#include "cli/bench/bench_plan.h"
#include "cli/command.h"
#include "cli/resolve.h"
#include "providers/interface/provider.h"

namespace sdx::cli {
namespace {

constexpr std::array<std::string_view, 2> kArrivals{"poisson", "uniform"};  // in the order of BenchOptions::Arrival

}  // namespace

void BenchFlags::add_to(const Command& command, const char* batches) {
  command_ = command;
  session.add_to(command);
  // Lists take the place of the single values that other commands have.
  for (const char* name : {"--provider", "--threads"}) command.remove_option(name);
  session.given.session.values.strict = true;  // the measured backend must be the requested one
  inputs.add_to(command);
  command.remove_option("--random");  // missing inputs are generated
  command.remove_option("--rate");    // here that is how often runs start
  command.add_option("--sample-rate", inputs.rate, "Convert sound to this rate")->range(1, 768000)->type_name("HZ");
  command
      .add_option("-b,-p,--backend,--provider", backends,
                  "Provider chain to measure; may be repeated, the first is the base of the ratio")
      ->one_word()
      ->type_name("CHAIN");
  command.add_option("-t,--threads", given.threads, "Thread counts, comma-separated or repeated; 0: one per core")
      ->delimiter(',')
      ->one_word()
      ->type_name("N");
  command.add_option(batches, given.batch_sizes, "Batch sizes, comma-separated or repeated")
      ->delimiter(',')
      ->one_word()
      ->type_name("N");
  command.add_option("-w,--warmup", given.warmup, fmt::format("Warm-up runs ({})", given.warmup))
      ->range(0, 100000000)
      ->type_name("N");
  command.add_option("-n,--runs,--iterations", given.runs, fmt::format("Measured runs ({})", given.runs))
      ->range(1, 100000000)
      ->type_name("N");
  command.add_option("--duration", duration, "Measure each combination for this long instead of -n runs: 10, 500ms, 2m")
      ->type_name("TIME");
  command.add_option("--clients", given.clients, fmt::format("Concurrent callers ({})", given.clients))
      ->range(1, 1024)
      ->type_name("N");
  command
      .add_option("--rate", given.rate,
                  "Start R runs per second, whether or not earlier ones are done; latency counts from the intended start")
      ->type_name("R");
  command
      .add_option_function(
          "--arrival",
          [this](const std::vector<std::string>& words) {
            arrival = true;
            given.arrival = parse_word<BenchOptions::Arrival>(kArrivals, words.back());
          },
          fmt::format("Gaps with --rate: {} (default) or {}", kArrivals[0], kArrivals[1]))
      ->expected(1)
      ->one_of({kArrivals.begin(), kArrivals.end()})
      ->type_name("KIND");
  command
      .add_option("--rounds", given.rounds,
                  fmt::format("Number of rounds in which the combinations take turns ({}, fewer for few runs)", kUsualRounds))
      ->range(1, 100000)
      ->type_name("N");
  command
      .add_option("--processes", given.processes,
                  fmt::format("Processes per combination, one after the other (up to {}); `diff` compares them", kMostProcesses))
      ->range(1, 1000)
      ->type_name("N");
  command.add_flag("--no-interleave", no_interleave, "Measure one combination after the other, so that only one is in memory");
  command.add_flag("--no-isolate", no_isolate, "Measure in this process instead of one process for each combination");
  command.add_flag("--profile", given.profile, "Also measure the time of each operator, in further runs");
  command.add_option("--trace", given.trace, "Write the profile as a Chrome trace; implies --profile")->type_name("FILE.json");
  command.add_flag("--dry-run", dry_run, "Print what would be measured, with which inputs and backends; run and write nothing");
  command.add_option("--json", json, "Write everything as JSON; '-' in place of a file: to standard output")->type_name("FILE");
  command.add_option("--csv", csv, "Write one line per combination")->type_name("FILE");
  command.add_option("--html", html, "Write a self-contained page with plots")->type_name("FILE");
  command.add_option("--md", markdown, "Write Markdown tables")->type_name("FILE");
}

BenchOptions BenchFlags::options(SessionOptions of_model) const {
  BenchOptions o = given;
  if (arrival && given.rate == 0) {
    throw UsageError("--arrival needs --rate: without a rate each run starts when the one before has ended");
  }
  for (const std::string& b : backends) {
    if (b.find('+') == std::string::npos) continue;
    throw UsageError(
        fmt::format("-b {}: settings after '+' are for `sdx compare-outputs`; here the session's options (--no-optimize, "
                    "--threads, --disable-pass, …) are the same for all backends",
                    b));
  }
  o.session = std::move(of_model);
  o.backends = backends;
  const Runtime runtime = session.given.session.values.runtime;
  if (o.backends.empty() && runtime == Runtime::automatic && !o.session.providers.empty()) {
    o.backends = {fmt::format("{}", fmt::join(o.session.providers, ","))};
  }
  if (runtime == Runtime::ort) {
    if (o.backends.empty()) o.backends = {"cpu"};
    for (std::string& b : o.backends) b = b.starts_with("ort:") ? b : "ort:" + b;
  } else if (runtime == Runtime::native) {
    if (o.backends.empty()) o.backends = {"cpu"};
    for (const std::string& b : o.backends) {
      if (b != "cpu") throw UsageError(fmt::format("--runtime native has no backend '{}': it runs on cpu", b));
    }
  }
  o.session.providers.clear();
  o.resolve = backend_names();
  o.allow_fallback = !session.given.session.values.strict;
  o.session.strict = !o.allow_fallback;
  if (!duration.empty()) {
    o.duration_s = static_cast<double>(parse_duration(duration, "--duration").count()) * 1e-3;
    if (o.duration_s <= 0) throw UsageError("--duration must be longer than 0");
  }
  o.isolate = !no_isolate;
  o.interleave = !no_interleave;
  o.profile = o.profile || !o.trace.empty();
  o.seed = inputs.seed;
  try {
    Runner check(o);  // everything that the options alone can be wrong about
  } catch (const Error& e) {
    throw UsageError(e.message());
  }
  return o;
}

// The registry's settings for a model hold unless the command line has its own.
void BenchFlags::use_entry(const RegistryEntry& entry, const std::vector<ValueSpec>& specs, BenchOptions& o) const {
  if (command_.count("--warmup") == 0 && entry.warmup) o.warmup = *entry.warmup;
  if (command_.count("--runs") == 0 && entry.iterations) o.runs = *entry.iterations;
  for (const RegistryInput& input : entry.inputs) {
    const auto named = [&](const auto& item) { return item.first == input.name; };
    if (!input.shape || std::any_of(o.shapes.begin(), o.shapes.end(), named) || o.inputs.find(input.name) != nullptr) continue;
    if (std::none_of(specs.begin(), specs.end(), [&](const ValueSpec& s) { return s.name == input.name; })) {
      fail(ErrorCode::invalid_argument, "{}: the model '{}' has no input '{}'", entry.place, entry.name, input.name);
    }
    o.shapes.emplace_back(input.name, *input.shape);
  }
}

namespace {

// Where a format goes. "": nowhere; "-": to standard output.
struct Destination {
  const char* option;
  const std::string& path;
  std::string (*text)(const BenchRun&);
};

std::array<Destination, 4> destinations(const BenchFlags& flags) {
  return {{{"--json", flags.json, [](const BenchRun& r) { return to_json(r); }},
           {"--csv", flags.csv, &to_csv},
           {"--html", flags.html, &to_html},
           {"--md", flags.markdown, &to_markdown}}};
}

// Before anything is measured.
void check_destinations(const BenchFlags& flags) {
  int printed = 0;
  for (const Destination& d : destinations(flags)) {
    if (d.path == "-" && ++printed > 1) throw UsageError("only one of --json, --csv, --html and --md may go to standard output");
    if (!d.path.empty() && d.path != "-") NewFile::check(d.path);
  }
  if (!flags.given.trace.empty()) NewFile::check(flags.given.trace);
}

}  // namespace

bool show_bench(const BenchFlags& flags, const BenchRun& run) {
  bool table = true;
  for (const Destination& d : destinations(flags)) {
    if (d.path == "-") print(d.text(run));
    table = table && d.path != "-";
  }
  // Without a table, warnings are the only place for fallbacks.
  for (const BenchResult& r : run.results) {
    for (const std::string& f : r.fallbacks) {
      if (!table) note(fmt::format("warning: {}: {}", r.backend, f));
    }
  }
  if (table)
    print_coloured(to_text(run, {terminal_columns(), false, !is_quiet()}), {{"no figures", Colour::red}, {"note:", Colour::dim}});
  // Results are shown first, because the disk may be full by then, which ends the command.
  flush_output();
  for (const Destination& d : destinations(flags)) {
    if (!d.path.empty() && d.path != "-") write_file_atomically(d.path, d.text(run));
  }
  return table;
}

BenchSetup BenchFlags::set_up() const {
  static_cast<void>(options(session.asked().session.values));  // wrong uses come before missing files
  check_destinations(*this);
  const project::ResolvedModel model = dry_run ? resolve_unconverted(session) : resolve(session);
  BenchSetup setup;
  setup.shown = model.source.string();
  BenchOptions& o = setup.options;
  o = options(model.options);
  o.model = model.model;
  setup.conversion = model.conversion;
  if (model.conversion) setup.converted = o.model.filename().string();
  setup.specs = model_inputs(o.model, o.session);
  const bool converting = model.dtype != DataType::undefined && !model.conversion;
  for (ValueSpec& s : setup.specs) {
    if (!converting || model.io_stays || s.dtype != DataType::float32) continue;
    s.dtype = model.dtype;
    if (s.type.starts_with("float32")) s.type.replace(0, 7, name(model.dtype));
  }
  if (converting) note(fmt::format("note: '{}' would be converted to {}", setup.shown, name(model.dtype)));
  {
    // A pool of one thread: threads that stay would keep the combinations from running in processes of their own.
    ThreadPool alone(1);
    const PoolScope scope(alone);
    o.inputs = inputs.given(setup.specs);
  }
  o.shapes = inputs.given_shapes(setup.specs);
  if (model.entry) use_entry(*model.entry, setup.specs, o);
  return setup;
}

void show_bench_plan(const BenchFlags& flags) {
  const BenchSetup setup = flags.set_up();
  std::vector<std::string> files;
  for (const Destination& d : destinations(flags)) {
    if (!d.path.empty() && d.path != "-") files.push_back(d.path);
  }
  if (!flags.given.trace.empty()) files.push_back(flags.given.trace.string());
  print(flags.json == "-" ? bench_plan_json(setup, files) : bench_plan_text(setup, files));
}

int run_bench(const BenchFlags& flags, BenchRun& run) {
  BenchSetup setup = flags.set_up();
  {
    Progress bar("measuring");
    setup.options.progress = [&](double done, const std::string&) { bar.show(static_cast<int>(done * 1000), 1000); };
    run = Runner(setup.options).run();
    if (!setup.converted.empty()) {
      run.model = setup.shown;
      run.model_hash = benchmark::model_hash(setup.shown);  // versions may convert in different ways
      run.notes.push_back(fmt::format("the model was converted: {}", setup.converted));
    }
  }
  const auto has_figures = [](const BenchResult& r) { return r.error.empty(); };
  const auto fine = [](const BenchResult& r) { return r.error.empty() || r.error_code == "provider_unavailable"; };
  const bool any = std::any_of(run.results.begin(), run.results.end(), has_figures);
  return any && std::all_of(run.results.begin(), run.results.end(), fine) ? kOk : kFailed;
}

}  // namespace sdx::cli
