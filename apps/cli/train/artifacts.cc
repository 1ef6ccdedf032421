// sdx artifacts

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/text/json_text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/values/outputs.h"
#include "train/tools.h"

namespace sdx::cli {
namespace {

using train::ArtifactFiles;
using train::ArtifactOptions;

constexpr const char* kArtifactsExamples =
    "Examples:\n"
    "  sdx artifacts classifier.onnx -o artifacts\n"
    "  sdx artifacts net.onnx -o out --loss mse --optimizer sgd,momentum=0.9 --frozen 'encoder.*'\n"
    "  sdx artifacts mobilenet.onnx -o out --head classes=5            # trains only a new last layer\n"
    "  sdx artifacts encoder.onnx -o out --lora rank=8,alpha=16,target='*query*,*value*' --recompute auto\n"
    "The files have the formats of ONNX Runtime 1.19's training; both it and `sdx train` can use them.\n";

// "rank=8,alpha=16": in the order given; a word without '=' belongs to the value before it.
using Settings = std::vector<std::pair<std::string, std::string>>;

Settings settings(const std::string& text) {
  Settings out;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      out.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    } else if (!out.empty() && out.back().first == "target") {
      out.emplace_back("target", word);
    } else {
      fail(ErrorCode::invalid_argument, "expected NAME=VALUE, received '{}'", word);
    }
    at = end + 1;
  }
  return out;
}

double number(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(v)) {
    fail(ErrorCode::invalid_argument, "{}={} is not a number", name, text);
  }
  return v;
}

std::int64_t whole(const std::string& name, const std::string& text) {
  const double v = number(name, text);
  if (v != std::floor(v) || v < 1 || v > 1e9)
    fail(ErrorCode::invalid_argument, "{}={}; expected a whole number from 1", name, text);
  return static_cast<std::int64_t>(v);
}

[[noreturn]] void unknown_setting(const std::string& name, const std::vector<std::string>& known) {
  fail(ErrorCode::invalid_argument, "there is no '{}'; permitted: {}", name, join(known));
}

struct ArtifactsCommand {
  std::string model, output, loss = "cross-entropy";
  bool fixed_statistics = false, json = false;
  ArtifactOptions options;

  int run();
  void read_optimizer(const std::string& text);
  void read_head(const std::string& text);
  void read_lora(const std::string& text);
};

void ArtifactsCommand::read_optimizer(const std::string& text) {
  const std::size_t comma = text.find(',');
  const std::string name = text.substr(0, comma);
  if (name == "none") {
    options.optimizer.reset();
    if (comma != std::string::npos) fail(ErrorCode::invalid_argument, "none has no settings");
    return;
  }
  train::OptimizerOptions& o = *options.optimizer;
  o.kind = load_module<train::Tools>().optimizer_named(name);
  if (comma == std::string::npos) return;
  const std::map<std::string, float*> floats{{"beta1", &o.beta1},       {"beta2", &o.beta2},
                                             {"epsilon", &o.epsilon},   {"weight_decay", &o.weight_decay},
                                             {"momentum", &o.momentum}, {"dampening", &o.dampening},
                                             {"alpha", &o.alpha},       {"initial_accumulator", &o.initial_accumulator},
                                             {"clip", &o.clip_norm}};
  for (const auto& [key, value] : settings(text.substr(comma + 1))) {
    const double v = number(key, value);
    if (const auto found = floats.find(key); found != floats.end()) {
      *found->second = static_cast<float>(v);
    } else if (key == "nesterov") {
      o.nesterov = v != 0;
    } else if (key == "correct_bias") {
      o.correct_bias = v != 0;
    } else if (key == "adam_mode") {
      o.adam_mode = v != 0 ? 1 : 0;
    } else {
      std::vector<std::string> known{"nesterov", "correct_bias", "adam_mode"};
      for (const auto& [word, place] : floats) known.push_back(word);
      unknown_setting(key, known);
    }
  }
}

void ArtifactsCommand::read_head(const std::string& text) {
  for (const auto& [key, value] : settings(text)) {
    if (key != "classes") unknown_setting(key, {"classes"});
    options.head_classes = whole(key, value);
  }
}

void ArtifactsCommand::read_lora(const std::string& text) {
  train::LoraOptions l;
  std::vector<std::string> targets;
  for (const auto& [key, value] : settings(text)) {
    if (key == "rank") {
      l.rank = whole(key, value);
    } else if (key == "alpha") {
      l.alpha = static_cast<float>(number(key, value));
    } else if (key == "target") {
      targets.push_back(value);
    } else {
      unknown_setting(key, {"rank", "alpha", "target"});
    }
  }
  if (!targets.empty()) l.targets = targets;
  options.lora = l;
}

std::string report_json(const ArtifactFiles& f) {
  std::string out = "{";
  for (const auto& [key, path] : {std::pair("training_model", &f.training_model), std::pair("eval_model", &f.eval_model),
                                  std::pair("optimizer_model", &f.optimizer_model), std::pair("checkpoint", &f.checkpoint),
                                  std::pair("nominal_checkpoint", &f.nominal_checkpoint)}) {
    out += fmt::format("\"{}\":{},", key, json_or_null(path->string()));
  }
  return out + fmt::format("\"trained\":{},\"trained_elements\":{},\"frozen\":{},\"frozen_elements\":{}}}\n", f.trained,
                           f.trained_elements, f.frozen, f.frozen_elements);
}

// "1 parameter is", "2 parameters are"
std::string are(std::int64_t n, std::string_view what) { return counted(n, what) + (n == 1 ? " is" : " are"); }

int ArtifactsCommand::run() {
  options.train_batch_norm = !fixed_statistics;
  options.loss = load_module<train::Tools>().loss_named(loss);
  const ArtifactFiles files = load_module<train::Tools>().generate_artifacts(model, output, options);
  if (json) {
    print(report_json(files));
    return kOk;
  }
  print(fmt::format("{}{}: {} trained ({}), {} frozen ({})\n", options.dry_run ? "would write " : "", output,
                    are(files.trained, "parameter"), counted(files.trained_elements, "number"), files.frozen,
                    files.frozen_elements));
  for (const std::filesystem::path& file :
       {files.training_model, files.eval_model, files.optimizer_model, files.checkpoint, files.nominal_checkpoint}) {
    if (!file.empty()) print(fmt::format("  {}\n", file.string()));
  }
  return kOk;
}

void add_what_is_trained(const Command& command, ArtifactsCommand& c) {
  const auto names = [&](const char* flag, std::vector<std::string>& to, const char* help) {
    command->add_option(flag, to, help)->type_name("NAME|GLOB")->one_word();
  };
  names("--requires-grad", c.options.requires_grad, "Initializers to train; may be repeated (default: all)");
  names("--frozen", c.options.frozen, "Initializers not to train; may be repeated");
  const auto reads = [&](const char* flag, void (ArtifactsCommand::*read)(const std::string&), const char* help) {
    command
        ->add_option_function(
            flag, [&c, read](const std::vector<std::string>& words) { (c.*read)(words.back()); }, help)
        ->type_name("SETTINGS");
  };
  reads("--head", &ArtifactsCommand::read_head, "classes=N: replace the last layer by one with N classes, and train only that");
  reads("--lora", &ArtifactsCommand::read_lora,
        "rank=N,alpha=X,target=GLOB: train low-rank products beside frozen linear layers");
  command->add_option("--seed", c.options.seed, "Seed for new weights (0)")->type_name("N");
  command->add_flag("--fixed-statistics", c.fixed_statistics, "Keep the running statistics of BatchNormalization unchanged");
  names("--recompute", c.options.recompute, "Values that the backward pass recomputes; auto: cheap ones");
}

}  // namespace

void add_artifacts(const Command& app, Action& action) {
  const Command command = app.add_subcommand("artifacts", "Create the models and the checkpoint for training");
  const auto c = std::make_shared<ArtifactsCommand>();
  command->add_option("MODEL", c->model, "An inference model (.onnx)")->required();
  command->add_option("-o,--output", c->output, "Output folder")->type_name("DIR")->required();
  command->add_option("--loss", c->loss, "Loss (cross-entropy); none: the model's first output is the loss")
      ->one_of({"cross-entropy", "mse", "bce-with-logits", "l1", "none"});
  command->add_option("--loss-input", c->options.loss_input, "Value from which the loss is computed (the first output)")
      ->type_name("NAME");
  command->add_option("--target", c->options.target_name, "Name of the input for labels or target (labels, target)")
      ->type_name("NAME");
  command
      ->add_option_function(
          "--optimizer", [c](const std::vector<std::string>& words) { c->read_optimizer(words.back()); },
          "adamw (default), adam, sgd, rmsprop, adagrad, lion or none, with settings: sgd,momentum=0.9")
      ->type_name("NAME[,SETTINGS]");
  add_what_is_trained(command, *c);
  command->add_option("--additional-output", c->options.additional_outputs, "Outputs in addition to the loss; may be repeated")
      ->type_name("NAME")
      ->one_word();
  command->add_option("--prefix", c->options.prefix, "Prefix of the file names")->type_name("TEXT");
  command->add_flag("--nominal", c->options.nominal_checkpoint, "Also write a nominal checkpoint: names, types and shapes");
  command->add_flag("--dry-run", c->options.dry_run,
                    "Make everything in memory, print which files would be written, and write none");
  command->add_flag("--json", c->json, "Print JSON");
  command->footer(kArtifactsExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
