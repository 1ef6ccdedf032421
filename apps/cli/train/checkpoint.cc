// sdx checkpoint

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "base/counted.h"
#include "base/error.h"
#include "base/system/new_file.h"
#include "base/text/json_text.h"
#include "base/text/text_table.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "tensor/element.h"
#include "tensor/npz.h"
#include "tensor/safetensors.h"
#include "train/tools.h"

namespace sdx::cli {
namespace {

using train::CheckpointState;
using train::Parameter;

constexpr const char* kShowExamples =
    "Examples:\n"
    "  sdx checkpoint show artifacts/checkpoint\n"
    "  sdx checkpoint show artifacts/checkpoint --json\n";
constexpr const char* kDiffExamples =
    "Examples:\n"
    "  sdx checkpoint diff before after\n"
    "  sdx checkpoint diff before after -o delta\n"
    "The difference is AFTER minus BEFORE. The exit code is 1 if a parameter differs by more than --atol, but 0 with -o, which\n"
    "writes the difference.\n";
constexpr const char* kApplyExamples =
    "Examples:\n"
    "  sdx checkpoint apply before delta -o after\n"
    "  sdx checkpoint apply before delta --factor 0.5 -o between\n"
    "The result has BASE's properties and optimizer state.\n";
constexpr const char* kAverageExamples =
    "Examples:\n"
    "  sdx checkpoint average client1 client2 client3 -o global\n"
    "  sdx checkpoint average client1 client2 --weights 600,200 -o global\n"
    "The result has the first checkpoint's properties and optimizer state.\n";
constexpr const char* kExportExamples =
    "Examples:\n"
    "  sdx checkpoint export checkpoint -o parameters.npz\n"
    "  sdx checkpoint export checkpoint -o parameters.safetensors --moments\n";

constexpr const char* kDryRunHelp = "Check everything, print what would be written, and write nothing";

struct CheckpointCommand {
  std::vector<std::string> files;
  std::vector<std::string> weights;
  std::string output, base, other;
  double factor = 1, atol = 0;
  bool json = false, moments = false, dry_run = false;

  int show() const;
  int diff() const;
  int apply() const;
  int average() const;
  int export_values() const;
  // A checkpoint, unless this is a dry run.
  int write(const CheckpointState& made) const;
  int would_write(std::string_view what) const;
};

// The norm and the largest magnitude of a tensor's elements. Both are 0 without elements; NaN counts as infinite.
struct Size {
  double norm = 0, largest = 0;
};

Size size_of(const Tensor& t) {
  double squares = 0, largest = 0;
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const double v =
        t.dtype() == DataType::float32 ? double{t.values<float>()[static_cast<std::size_t>(i)]} : element_as_double(t, i);
    const double magnitude = std::isnan(v) ? std::numeric_limits<double>::infinity() : std::abs(v);
    squares += magnitude * magnitude;
    largest = std::max(largest, magnitude);
  }
  return {std::sqrt(squares), largest};
}

std::string number_text(double v) { return std::isfinite(v) ? fmt::format("{:.6g}", v) : "not finite"; }

std::string property_text(const train::Property& value, bool json) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* real = std::get_if<float>(&value)) return json ? json_number(*real, 9) : fmt::format("{}", *real);
  return json ? json_string(std::get<std::string>(value)) : std::get<std::string>(value);
}

struct Elements {
  std::int64_t all = 0, trained = 0;
};

Elements elements_of(const CheckpointState& s) {
  Elements e;
  for (const Parameter& p : s.parameters) {
    e.all += p.value.size();
    if (p.requires_grad) e.trained += p.value.size();
  }
  return e;
}

std::vector<std::string> moment_names(const train::OptimizerState& group) {
  std::vector<std::string> names;
  for (const auto& [parameter, moments] : group.moments) {
    for (const auto& [name, value] : moments) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

std::string state_json(const CheckpointState& s) {
  std::string parameters, groups, properties;
  for (const Parameter& p : s.parameters) {
    const Size size = s.nominal ? Size() : size_of(p.value);
    parameters += fmt::format("{}{{\"name\":{},\"dtype\":\"{}\",\"shape\":{},\"trained\":{},\"norm\":{},\"largest\":{}}}",
                              parameters.empty() ? "" : ",", json_string(p.name), name(p.value.dtype()),
                              to_string(p.value.shape()), p.requires_grad, s.nominal ? "null" : json_number(size.norm, 9),
                              s.nominal ? "null" : json_number(size.largest, 9));
  }
  for (const auto& [called, group] : s.optimizers) {
    groups += fmt::format("{}{{\"name\":{},\"step\":{},\"initial_learning_rate\":{},\"moments\":{},\"parameters\":{}}}",
                          groups.empty() ? "" : ",", json_string(called), group.step, json_number(group.initial_learning_rate, 9),
                          json_list(moment_names(group)), group.moments.size());
  }
  for (const auto& [called, value] : s.properties) {
    properties += fmt::format("{}{}:{}", properties.empty() ? "" : ",", json_string(called), property_text(value, true));
  }
  const Elements e = elements_of(s);
  return fmt::format(
      "{{\"nominal\":{},\"elements\":{},\"trained_elements\":{},\"parameters\":[{}],\"optimizers\":[{}],\"properties\":{{{}}}}}"
      "\n",
      s.nominal, e.all, e.trained, parameters, groups, properties);
}

std::string state_text(const CheckpointState& s) {
  std::vector<std::vector<std::string>> rows{{"parameter", "type", "", "norm", "largest"}};
  for (const Parameter& p : s.parameters) {
    const Size size = s.nominal ? Size() : size_of(p.value);
    rows.push_back({p.name, p.value.type_string(), p.requires_grad ? "trained" : "frozen",
                    s.nominal ? "-" : number_text(size.norm), s.nominal ? "-" : number_text(size.largest)});
  }
  std::string out = text_table(rows);
  const Elements e = elements_of(s);
  out += fmt::format("{}, {}, {} of them trained{}\n", counted(static_cast<std::int64_t>(s.parameters.size()), "parameter"),
                     counted(e.all, "element"), e.trained, s.nominal ? " (nominal: names, types and shapes only)" : "");
  for (const auto& [called, group] : s.optimizers) {
    out += fmt::format("optimizer {}: {}, initial learning rate {}, {} of {} parameters\n", called, counted(group.step, "step"),
                       group.initial_learning_rate, fmt::join(moment_names(group), " and "), group.moments.size());
  }
  for (const auto& [called, value] : s.properties) out += fmt::format("property {} = {}\n", called, property_text(value, false));
  return out;
}

int CheckpointCommand::show() const {
  const CheckpointState s = load_module<train::Tools>().load(base);
  print(json ? state_json(s) : state_text(s));
  return kOk;
}

int CheckpointCommand::diff() const {
  if (!(atol >= 0)) throw UsageError("--atol must be a number that is not negative");
  const CheckpointState before = load_module<train::Tools>().load(base), after = load_module<train::Tools>().load(other);
  const CheckpointState delta = load_module<train::Tools>().difference(after, before);
  std::vector<std::vector<std::string>> rows{{"parameter", "type", "norm", "relative", "largest"}};
  std::string list;
  int different = 0;
  for (std::size_t i = 0; i < delta.parameters.size(); ++i) {
    const Parameter& p = delta.parameters[i];
    // Numbers that are not floating-point numbers have no difference there.
    if (!is_floating(p.value.dtype())) continue;
    const Size size = size_of(p.value);
    const auto old =
        std::find_if(before.parameters.begin(), before.parameters.end(), [&](const Parameter& q) { return q.name == p.name; });
    const double relative = size.norm == 0 ? 0 : size.norm / size_of(old->value).norm;
    different += size.largest > atol ? 1 : 0;
    rows.push_back({p.name, p.value.type_string(), number_text(size.norm), number_text(relative), number_text(size.largest)});
    list += fmt::format("{}{{\"name\":{},\"norm\":{},\"relative\":{},\"largest\":{}}}", list.empty() ? "" : ",",
                        json_string(p.name), json_number(size.norm, 9), json_number(relative, 9), json_number(size.largest, 9));
  }
  if (!output.empty()) load_module<train::Tools>().save(delta, output, false);
  print(json ? fmt::format("{{\"different\":{},\"parameters\":[{}]}}\n", different, list)
             : fmt::format("{}{} of {} parameters differ\n", text_table(rows), different, rows.size() - 1));
  return different == 0 || !output.empty() ? kOk : kFailed;
}

int CheckpointCommand::would_write(std::string_view what) const {
  NewFile::check(output);
  print(fmt::format("would write {}: {}\n", output, what));
  return kOk;
}

int CheckpointCommand::write(const CheckpointState& made) const {
  if (dry_run) return would_write(counted(static_cast<std::int64_t>(made.parameters.size()), "parameter"));
  load_module<train::Tools>().save(made, output, !made.optimizers.empty());
  return kOk;
}

int CheckpointCommand::apply() const {
  if (!std::isfinite(factor)) throw UsageError("--factor must be a finite number");
  return write(
      load_module<train::Tools>().sum(load_module<train::Tools>().load(base), load_module<train::Tools>().load(other), factor));
}

int CheckpointCommand::average() const {
  std::vector<double> numbers;
  for (const std::string& w : weights) {
    char* end = nullptr;
    const double v = std::strtod(w.c_str(), &end);
    if (w.empty() || *end != '\0' || !std::isfinite(v) || v < 0) {
      throw UsageError(fmt::format("--weights: '{}' is not a nonnegative number", w));
    }
    numbers.push_back(v);
  }
  if (!numbers.empty() && numbers.size() != files.size()) {
    throw UsageError(fmt::format("--weights has {} numbers for {} checkpoints", numbers.size(), files.size()));
  }
  std::vector<CheckpointState> states;
  for (const std::string& file : files) states.push_back(load_module<train::Tools>().load(file));
  return write(load_module<train::Tools>().average(states, numbers));
}

int CheckpointCommand::export_values() const {
  const bool npz = output.ends_with(".npz");
  if (!npz && !output.ends_with(".safetensors")) {
    throw UsageError(fmt::format("-o {}: expected a name that ends in .npz or .safetensors", output));
  }
  const CheckpointState s = load_module<train::Tools>().load(base);
  if (s.nominal) fail(ErrorCode::invalid_argument, "'{}' is a nominal checkpoint, which contains no values", base);
  NamedTensors tensors;
  for (const Parameter& p : s.parameters) tensors.emplace_back(p.name, p.value);
  for (const auto& [group, state] : s.optimizers) {
    if (!moments) break;
    for (const auto& [parameter, all] : state.moments) {
      for (const auto& [moment, value] : all) tensors.emplace_back(fmt::format("{}/{}/{}", group, parameter, moment), value);
    }
  }
  std::map<std::string, std::string> properties;
  for (const auto& [called, value] : s.properties) properties.emplace(called, property_text(value, false));
  if (dry_run) return would_write(counted(static_cast<std::int64_t>(tensors.size()), "array"));
  if (npz) {
    write_npz(output, tensors);
  } else {
    write_safetensors(output, tensors, properties);
  }
  return kOk;
}

using Chosen = std::shared_ptr<CheckpointCommand>;

void add_show(const Command& command, const Chosen& c, Action& action) {
  const Command show = command->add_subcommand("show", "Show parameters with their norms, the optimizer's state and properties");
  show->add_option("CHECKPOINT", c->base, "A training checkpoint")->required();
  show->add_flag("--json", c->json, "Print JSON");
  show->footer(kShowExamples);
  show->callback([c, &action] { action = [c] { return c->show(); }; });
}

void add_diff_of(const Command& command, const Chosen& c, Action& action) {
  const Command diff = command->add_subcommand("diff", "Show how far each parameter is from another checkpoint's");
  diff->add_option("BEFORE", c->base, "A checkpoint")->required();
  diff->add_option("AFTER", c->other, "Another checkpoint with the same parameters")->required();
  diff->add_option("-o,--output", c->output, "Write the difference as a checkpoint")->type_name("FILE");
  diff->add_option("--atol", c->atol, "Ignore differences of elements up to X (0)")->type_name("X");
  diff->add_flag("--json", c->json, "Print JSON");
  diff->footer(kDiffExamples);
  diff->callback([c, &action] { action = [c] { return c->diff(); }; });
}

void add_apply(const Command& command, const Chosen& c, Action& action) {
  const Command apply = command->add_subcommand("apply", "Add a difference to a checkpoint");
  apply->add_option("BASE", c->base, "A checkpoint")->required();
  apply->add_option("DELTA", c->other, "A difference, as `sdx checkpoint diff -o` writes it")->required();
  apply->add_option("--factor", c->factor, "Factor for the difference (1)")->type_name("X");
  apply->add_option("-o,--output", c->output, "The new checkpoint")->type_name("FILE")->required();
  apply->add_flag("--dry-run", c->dry_run, kDryRunHelp);
  apply->footer(kApplyExamples);
  apply->callback([c, &action] { action = [c] { return c->apply(); }; });
}

void add_average(const Command& command, const Chosen& c, Action& action) {
  const Command average = command->add_subcommand("average", "Average the parameters of checkpoints (federated averaging)");
  average->add_option("CHECKPOINTS", c->files, "Checkpoints with the same parameters")->required();
  average->add_option("--weights", c->weights, "One number for each, such as its number of samples (default: equal)")
      ->delimiter(',')
      ->one_word()
      ->type_name("W,…");
  average->add_option("-o,--output", c->output, "The new checkpoint")->type_name("FILE")->required();
  average->add_flag("--dry-run", c->dry_run, kDryRunHelp);
  average->footer(kAverageExamples);
  average->callback([c, &action] { action = [c] { return c->average(); }; });
}

void add_export(const Command& command, const Chosen& c, Action& action) {
  const Command values = command->add_subcommand("export", "Write parameters for other programs as .npz or .safetensors");
  values->add_option("CHECKPOINT", c->base, "A training checkpoint")->required();
  values->add_option("-o,--output", c->output, "A .npz or .safetensors file")->type_name("FILE")->required();
  values->add_flag("--moments", c->moments, "Include the optimizer's moments as GROUP/PARAMETER/MOMENT");
  values->add_flag("--dry-run", c->dry_run, kDryRunHelp);
  values->footer(kExportExamples);
  values->callback([c, &action] { action = [c] { return c->export_values(); }; });
}

}  // namespace

void add_checkpoint(const Command& app, Action& action) {
  const Command command = app.add_subcommand("checkpoint", "Show, compare, average and export training checkpoints");
  command->require_subcommand(1);
  const auto c = std::make_shared<CheckpointCommand>();
  add_show(command, c, action);
  add_diff_of(command, c, action);
  add_apply(command, c, action);
  add_average(command, c, action);
  add_export(command, c, action);
}

}  // namespace sdx::cli
