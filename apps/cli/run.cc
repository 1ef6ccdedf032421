// sdx run

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <sdx/runner.hpp>
#include <sdx/sdx.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/suggest.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"
#include "cache/fingerprint.h"
#include "cli/command.h"
#include "cli/resolve.h"
#include "cli/run_batch.h"
#include "cli/session_flags.h"
#include "cli/values/inputs.h"
#include "cli/values/outputs.h"
#include "cli/values/postprocess.h"
#include "cli/values/samples.h"
#include "project/process.h"

namespace sdx::cli {
namespace {

constexpr const char* kRunExamples =
    "Examples:\n"
    "  sdx run add.onnx -i A='[1, 2]' -i B=@b.json\n"
    "  sdx run resnet50.onnx -i photo.jpg --normalize imagenet --labels classes.txt --softmax\n"
    "  sdx run vad.onnx -i input=speech.wav --rate 16000 -i sr=16000 -i state=state.npy -o out.npz\n"
    "  sdx run classifier -i photos/ -o results/\n"
    "  sdx run classifier -i 'photos/**/*.jpg' -o results.jsonl\n"
    "  curl -s https://example.org/cat.jpg | sdx run classifier -i -\n"
    "  sdx run model.onnx -f samples.jsonl -o results.jsonl\n"
    "  sdx run model.onnx --random --shape tokens=1x128 --benchmark --runs 50\n";

struct RunCommand {
  SessionFlags session;
  InputFlags inputs;
  PostFlags post;
  std::string output, timeout, profile;
  std::vector<std::string> output_names;
  std::int64_t batch_size = 0;
  bool json = false, benchmark = false, overwrite = false, dry_run = false;
  int runs = 100, warmup = 10;

  int run();

 private:
  RunOptions run_options() const;
  void check_flags() const;
  void check_single() const;
  void check_destinations() const;
  void use_project(const ProjectConfig& config);
  int bench(const Session& s, const NamedValues& given);
  int batch(const Session& s, const Samples& samples, const project::ResolvedModel& model);
  int once(const Session& s, const NamedValues& given, const ProjectConfig* config);
};

RunOptions RunCommand::run_options() const {
  RunOptions o;
  if (!timeout.empty()) o.timeout = parse_duration(timeout, "--timeout");
  o.outputs = output_names;
  return o;
}

// The file's own time limit, profiling and batch size, unless they were typed.
void RunCommand::use_project(const ProjectConfig& c) {
  inputs.project = &c;
  if (timeout.empty() && c.runtime.timeout) timeout = fmt::format("{}ms", c.runtime.timeout->count());
  if (profile.empty() && c.runtime.session.profile) profile = "sdx_profile.json";
  if (batch_size == 0) batch_size = c.runtime.batch_size;
}

// Flags that would change nothing.
void RunCommand::check_flags() const {
  if (!benchmark && (session.typed("--runs") || session.typed("--warmup"))) {
    throw UsageError("--runs and --warmup are for --benchmark");
  }
  if (benchmark && !output.empty() && output != "-" && !output.ends_with(".json")) {
    throw UsageError("--benchmark writes its figures with -o FILE.json");
  }
  for (const char* flag : {"--seed", "--shape"}) {
    if (!inputs.random && session.typed(flag)) throw UsageError(fmt::format("{} is for random inputs: add --random", flag));
  }
  if (post.softmax && !post.any()) {
    throw UsageError("--softmax is for the best classes, which --top-k or --labels shows; outputs stay what the model computes");
  }
  run_options();  // a time that makes no sense
}

// The same where there is one set of inputs.
void RunCommand::check_single() const {
  if (!output.empty()) check_output_name(output);
  for (const char* flag : {"--overwrite", "--dry-run", "--batch-size"}) {
    if (session.typed(flag))
      throw UsageError(fmt::format("{} is for many samples: a folder, a pattern, a .jsonl file or a list", flag));
  }
}

// Before anything is computed that could then not be kept. A folder for results is made before the first sample.
void RunCommand::check_destinations() const {
  if (!profile.empty() && profile == output) throw UsageError(fmt::format("-o and --profile both name '{}'", output));
  if (!profile.empty()) NewFile::check(profile);
  for (const char* ending : {".json", ".jsonl", ".npz", ".npy"}) {
    if (output.ends_with(ending)) NewFile::check(output);
  }
}

int RunCommand::bench(const Session& s, const NamedValues& given) {
  MeasureOptions o;
  o.runs = runs;
  o.warmup = warmup;
  o.run = run_options();
  // The throughput counts samples: the first input's first axis, where that is the batch by its symbol's or shape's look.
  const auto& specs = s.inputs();
  if (!specs.empty() && specs[0].has_shape && !specs[0].shape.empty() && specs[0].shape[0] < 0 && given[0].value.is_tensor()) {
    o.batch = std::max<std::int64_t>(1, given[0].value.tensor().dim(0));
  }
  BenchResult m;
  {
    Progress bar("running", "runs");
    o.progress = [&](std::int64_t done, std::int64_t total) { bar.show(done, total); };
    m = Runner::measure(s, given, o);
  }
  if (!profile.empty()) s.write_trace(profile);
  const std::string text = json || !output.empty()
                               ? fmt::format("{{\"benchmark\":{},\"report\":{}}}\n", to_json(m), report_json(s.report(), -1))
                               : to_text(m);
  if (output.empty() || output == "-") {
    print(text);
  } else {
    write_file_atomically(output, text);
  }
  return kOk;
}

int RunCommand::batch(const Session& s, const Samples& samples, const project::ResolvedModel& model) {
  if (benchmark) throw UsageError("--benchmark measures one set of inputs, not a folder or list of them");
  check_batch_output(output);
  const ProjectConfig* config = model.config();
  const Postprocessor postprocessor(post, config);
  BatchRun run{
      s,  samples, postprocessor, {}, run_options(), output, json, std::max<std::int64_t>(1, batch_size), overwrite, dry_run,
      {}, {}};
  run.check = [&](const NamedValues& values) {
    if (config != nullptr) project::check_inputs(*config, s.inputs(), values);
  };
  run.without_effect = [&] { return inputs.without_effect(); };
  // Everything that results depend on, so that an interrupted run is continued only by the same one.
  run.identity = s.report().model;
  for (const cache::Fingerprint& f : cache::fingerprints(run.identity)) run.identity += "\n" + f.hash;
  for (const auto& part : {join(output_names), post.labels, std::to_string(post.top), std::to_string(post.softmax), inputs.resize,
                           inputs.crop, inputs.fit, inputs.filter, inputs.fill, inputs.layout, inputs.color, inputs.normalize,
                           inputs.mean, inputs.deviation, inputs.scale, std::to_string(inputs.rate)}) {
    run.identity += "\n" + part;
  }
  if (model.project) run.identity += "\n" + hash_text(read_file(model.project->file()));
  const int code = run_batch(run);
  if (!profile.empty() && !dry_run) s.write_trace(profile);
  return code;
}

int RunCommand::once(const Session& s, const NamedValues& given, const ProjectConfig* config) {
  const auto start = std::chrono::steady_clock::now();
  NamedValues outputs = s.run(given, run_options());
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (!profile.empty()) s.write_trace(profile);
  const Shown shown = Postprocessor(post, config)(std::move(outputs));
  if (!output.empty()) write_outputs(output, shown.outputs, s.report(), ms, shown.json);
  if (json && output != "-") print(outputs_json(shown.outputs, s.report(), ms, shown.json));
  if (json || output == "-") return kOk;
  if (!shown.text.empty()) {
    print(shown.text);
  } else if (output.empty()) {
    print(outputs_text(shown.outputs));
  }
  return kOk;
}

int RunCommand::run() {
  check_flags();
  if (!profile.empty()) {
    session.given.session.values.profile = true;
    session.given.session.typed.push_back("profile");
  }
  const project::ResolvedModel model = resolve(session);
  if (model.project) use_project(*model.config());
  check_destinations();
  const Session s = open(model);
  if (model.project) {
    for (const std::string& w : model.project->validate(s)) note("warning: " + w);
  }
  if (const std::optional<Samples> samples = find_samples(inputs, s.inputs(), output)) return batch(s, *samples, model);
  check_single();
  if (model.entry) {
    apply_entry(*model.entry, s.inputs(), inputs.shapes);
    if (model.entry->warmup && !session.typed("--warmup")) warmup = *model.entry->warmup;
    if (model.entry->iterations && !session.typed("--runs")) runs = *model.entry->iterations;
  }
  const auto [given, made_up] = inputs.read(s.inputs(), model.model, model.options);
  if (model.project) project::check_inputs(*model.config(), s.inputs(), given);
  try {
    return benchmark ? bench(s, given) : once(s, given, model.config());
  } catch (Error& e) {
    if (!made_up.empty() && e.code() == ErrorCode::runtime_failure) e.add_context(made_up);
    throw;
  }
}

}  // namespace

void add_run(const Command& app, Action& action) {
  const Command command = app.add_subcommand("run", "Run a model once, or many times with --benchmark");
  const auto c = std::make_shared<RunCommand>();
  c->session.add_to(command);
  c->inputs.add_to(command);
  command
      ->add_option("-o,--output", c->output,
                   "Write the outputs to a .json, .npz or .npy file, of many samples to a folder or .jsonl file; '-': JSON on "
                   "standard output")
      ->type_name("FILE");
  command->add_option("--output-name", c->output_names, "Compute only these outputs, comma-separated")
      ->delimiter(',')
      ->one_word()
      ->type_name("NAME");
  command->add_flag("--json", c->json, "Print outputs and report as JSON");
  command->add_option("--timeout", c->timeout, "Give up after this long, for example 30 (seconds) or 500ms")->type_name("TIME");
  c->post.add_to(command);
  command->add_option("--batch-size", c->batch_size, "Samples per run, if there are several (1)")
      ->range(1, 1 << 20)
      ->type_name("N");
  command->add_flag("--overwrite", c->overwrite, "Recompute and replace results that already exist in the folder");
  command->add_flag("--dry-run", c->dry_run, "Print which samples would run, and run none");
  command->add_flag("--benchmark", c->benchmark, "Measure: see --runs and --warmup");
  command->add_option("--runs", c->runs, "Measured runs (100)")->range(1, 100000000)->type_name("N");
  command->add_option("--warmup", c->warmup, "Warm-up runs (10)")->range(0, 100000000)->type_name("N");
  command->add_option("--profile", c->profile, "Write the time of every step as a Chrome trace")->type_name("TRACE.json");
  command->footer(kRunExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
