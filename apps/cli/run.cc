// sdx run

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <sdx/sdx.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/session_flags.h"

namespace sdx::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  sdx run add.onnx -i A='[1, 2]' -i B=@b.json\n"
    "  sdx run resnet50.onnx -i photo.jpg --normalize imagenet --labels classes.txt --softmax\n"
    "  sdx run vad.onnx -i input=speech.wav --rate 16000 -i sr=16000 -i state=state.npy -o out.npz\n"
    "  sdx run model.onnx --random --shape tokens=1x128 --benchmark --runs 50\n";

struct RunCommand {
  SessionFlags session;
  InputFlags inputs;
  std::string output, timeout, labels, profile;
  std::vector<std::string> output_names;
  std::int64_t top = 0;
  bool softmax = false, json = false, benchmark = false;
  int runs = 100, warmup = 10;

  int run();

 private:
  RunOptions run_options() const;
  void use_project(const ProjectConfig& project);
  int bench(const Session& s, const NamedValues& given);
  std::string ranking(const NamedValues& outputs, std::string& json_part) const;
};

RunOptions RunCommand::run_options() const {
  RunOptions o;
  if (!timeout.empty()) o.timeout = parse_duration(timeout);
  o.outputs = output_names;
  return o;
}

// What a project file asks for and this command does not do must not pass unseen.
void warn_of_unused(const ProjectConfig& c) {
  const auto unused = [](const std::string& key, const char* instead) {
    note(fmt::format("warning: the project file's {} has no effect on `sdx run`{}", key, instead));
  };
  const auto pre = [&](const Preprocessing& p, const std::string& key) {
    if (!p.tokenizer.empty()) unused(key + ".tokenizer", ": give token numbers");
    if (p.max_length > 0) unused(key + ".max_length", "");
    if (p.shorter_side > 0) unused(key + ".resize with one number", ": give [width, height]");
    if (p.crop_width > 0) unused(key + ".crop", ": `fit: crop` cuts out the middle");
    if (p.fill != Preprocessing{}.fill) unused(key + ".fill", "");
  };
  const auto post = [&](const Postprocessing& p, const std::string& key) {
    if (!p.activation.empty() || p.ranks() || p.axis != Postprocessing{}.axis) {
      unused(key, ": use --labels, --top-k and --softmax");
    }
  };
  if (c.inputs.empty()) pre(c.preprocessing, "preprocessing");
  for (const ProjectInput& i : c.inputs) {
    pre(i.preprocessing, fmt::format("inputs.{}.preprocessing", i.name));
    if (i.max_length > 0) unused(fmt::format("inputs.{}.max_length", i.name), "");
    if (!i.required) unused(fmt::format("inputs.{}.required", i.name), ": the model decides");
    if (i.shape || i.dtype != DataType::undefined) unused(fmt::format("inputs.{}: type and shape", i.name), ": the model's hold");
  }
  post(c.postprocessing, "postprocessing");
  for (const ProjectOutput& o : c.outputs) {
    post(o.postprocessing, fmt::format("outputs.{}: labels and scores", o.name));
    if (o.shape || o.dtype != DataType::undefined)
      unused(fmt::format("outputs.{}: type and shape", o.name), ": the model's hold");
  }
  if (c.runtime.batch_size != 1) unused("runtime.batch_size", ": use --shape or --dim");
}

// The file's own time limit and profiling, where nothing was typed.
void RunCommand::use_project(const ProjectConfig& project) {
  warn_of_unused(project);
  inputs.project = &project;
  if (timeout.empty() && project.runtime.timeout) timeout = fmt::format("{}ms", project.runtime.timeout->count());
  if (profile.empty() && project.runtime.enable_profiling) profile = "sdx_profile.json";
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
    Progress bar("running");
    o.progress = [&](std::int64_t done, std::int64_t total) { bar.show(static_cast<int>(done), static_cast<int>(total)); };
    m = measure(s, given, o);
  }
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

// The best classes of the first output that holds numbers.
std::string RunCommand::ranking(const NamedValues& outputs, std::string& json_part) const {
  const Tensor* scores = nullptr;
  std::string name;
  for (const NamedValue& item : outputs) {
    if (scores == nullptr && item.value.is_tensor() && is_floating(item.value.tensor().dtype())) {
      scores = &item.value.tensor();
      name = item.name;
    }
  }
  if (scores == nullptr)
    fail(ErrorCode::invalid_argument, "--top-k needs an output of floating-point numbers; this model has none");
  const std::vector<Ranked> best =
      top_k(*scores, top > 0 ? top : 5, softmax, labels.empty() ? std::vector<std::string>{} : read_labels(labels));
  std::string text;
  json_part = ",\"top\":[";
  for (std::size_t i = 0; i < best.size(); ++i) {
    const Ranked& r = best[i];
    text += fmt::format("{:3d}. {:10.6f}  {}{}\n", i + 1, r.score, r.label.empty() ? "class " : "",
                        r.label.empty() ? std::to_string(r.index) : r.label);
    json_part +=
        fmt::format("{}{{\"output\":{},\"index\":{},\"score\":{},\"label\":{}}}", i != 0 ? "," : "", json_text(name), r.index,
                    std::isfinite(r.score) ? fmt::format("{}", r.score) : "null", r.label.empty() ? "null" : json_text(r.label));
  }
  json_part += "]";
  return text;
}

int RunCommand::run() {
  if (!output.empty()) check_output_name(output);
  if (benchmark && !output.empty() && output != "-" && !output.ends_with(".json")) {
    throw UsageError("--benchmark writes its figures with -o FILE.json");
  }
  const std::optional<ProjectConfig> project = find_project(session.model);
  if (project) use_project(*project);
  const RunOptions options = run_options();
  session.profile = !profile.empty();
  const Session s = session.open(project);
  const SessionOptions chosen = project ? session.options(*project) : session.options();
  const NamedValues given = inputs.read(s.inputs(), chosen.dimensions);
  if (benchmark) return bench(s, given);
  const auto start = std::chrono::steady_clock::now();
  const NamedValues outputs = s.run(given, options);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (!profile.empty()) s.write_trace(profile);
  std::string extra;
  const bool rank = top > 0 || !labels.empty();
  const std::string best = rank ? ranking(outputs, extra) : "";
  if (!output.empty()) write_outputs(output, outputs, s.report(), ms, extra);
  if (json && output != "-") print(outputs_json(outputs, s.report(), ms, extra));
  if (json || output == "-") return kOk;
  if (rank) {
    print(best);
  } else if (output.empty()) {
    print(outputs_text(outputs));
  }
  return kOk;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("run", "Run a model once, or many times with --benchmark");
  const auto c = std::make_shared<RunCommand>();
  c->session.add_to(*command);
  c->inputs.add_to(*command);
  command->add_option("-o,--output", c->output, "Write the outputs to a .json, .npz or .npy file; '-': JSON on standard output")
      ->type_name("FILE");
  command->add_option("--output-name", c->output_names, "Compute only these outputs, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME");
  command->add_flag("--json", c->json, "Outputs and report as JSON on standard output");
  command->add_option("--timeout", c->timeout, "Give up after this long, for example 30 (seconds) or 500ms")->type_name("TIME");
  command->add_option("--labels", c->labels, "File with one class name a line: show the best classes")->type_name("FILE");
  command->add_option("--top-k", c->top, "How many classes to show (5)")->check(CLI::Range(1, 100000))->type_name("K");
  command->add_flag("--softmax", c->softmax, "Turn the scores into probabilities first");
  command->add_flag("--benchmark", c->benchmark, "Measure: see --runs and --warmup");
  command->add_option("--runs", c->runs, "Runs that count (100)")->check(CLI::Range(1, 100000000))->type_name("N");
  command->add_option("--warmup", c->warmup, "Runs before those (10)")->check(CLI::Range(0, 100000000))->type_name("N");
  command->add_option("--profile", c->profile, "Write the time of every step as a Chrome trace")->type_name("TRACE.json");
  command->footer(kExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
