// sdx verify

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <sdx/sdx.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/system/printable.h"
#include "base/text/json_text.h"
#include "cli/command.h"
#include "cli/resolve.h"
#include "cli/values/cases.h"
#include "cli/values/inputs.h"
#include "compare/values.h"
#include "onnx/reader.h"

namespace sdx::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVerifyExamples =
    "Examples:\n"
    "  sdx verify resnet50.case.json\n"
    "  sdx verify model.onnx test_data_set_0\n"
    "  sdx verify model_folder                 (model.onnx and test_data_set_* inside)\n"
    "  sdx verify model.onnx answers.npz --rtol 1e-3 --atol 1e-5\n"
    "Without --rtol and --atol, the tolerance of each output depends on its element type (docs/cli.md).\n";

void print_verdict(std::string_view text) { print_coloured(text, {{"PASS", Colour::green}, {"FAIL", Colour::red}}); }

struct VerifyCommand {
  SessionFlags session;
  std::vector<std::string> targets;
  std::string model, timeout;
  std::optional<double> atol, rtol;
  bool json = false, quiet = false;

  int run();

 private:
  bool verify_one(const fs::path& model_file, const fs::path& data);
  bool verify_set(const Session& s, const CaseSet& set, const compare::Precision& precision);
  void show(const std::string& set, const std::string& output, const compare::Comparison& c, const compare::Tolerance& t);

  int passed_ = 0, failed_ = 0;
  std::string results_;  // JSON
};

const ValueSpec* find_spec(const std::vector<ValueSpec>& specs, const std::string& name) {
  for (const ValueSpec& s : specs) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

// The file's value as it is: an expected value of another type than the model's is a finding, not to be converted away.
Value read_expected(const std::string& file, const ValueSpec* spec) {
  ValueSpec plain;
  if (spec != nullptr) plain = *spec;
  if (file.ends_with(".npy") || file.ends_with(".npz")) {
    // The type is a hint for bytes without a name ('V2') alone, so nothing is converted where it is only of another kind.
    Value v = read_value_file(file, nullptr, InputFlags());
    const bool opaque =
        spec != nullptr && v.is_tensor() && v.tensor().dtype() != spec->dtype && bit_width(spec->dtype) <= 16 &&
        (v.tensor().dtype() == DataType::uint8 || v.tensor().dtype() == DataType::bfloat16 || is_sub_byte(spec->dtype));
    if (!opaque) return v;
    try {
      return read_value_file(file, spec, InputFlags());
    } catch (const Error&) {
      return v;
    }
  }
  return read_value_file(file, spec != nullptr ? &plain : nullptr, InputFlags());
}

void VerifyCommand::show(const std::string& set, const std::string& output, const compare::Comparison& c,
                         const compare::Tolerance& t) {
  ++(c.pass ? passed_ : failed_);
  if (!results_.empty()) results_ += ',';
  results_ += fmt::format(
      "{{\"model\":{},\"set\":{},\"output\":{},\"type\":{},\"pass\":{},\"max_abs\":{},\"max_rel\":{},\"differing\":{},"
      "\"tolerance\":{},\"why\":{}}}",
      json_string(session.model), json_string(set), json_string(output), json_string(c.type), c.pass, json_number(c.max_abs),
      json_number(c.max_rel), c.differing, json_string(t.reason), json_string(c.why));
  if (json || (quiet && c.pass)) return;
  print_verdict(fmt::format("{} {}{}{}: {}  max abs {:.3g}, max rel {:.3g}  ({})\n", c.pass ? "PASS" : "FAIL", set,
                            set.empty() ? "" : " ", one_line(output), c.type, c.max_abs, c.max_rel, t.reason));
  if (!c.pass) print(fmt::format("     {}\n", c.why));
}

bool VerifyCommand::verify_set(const Session& s, const CaseSet& set, const compare::Precision& precision) {
  NamedValues given;
  for (const auto& [name, file] : set.inputs) {
    const ValueSpec* spec = find_spec(s.inputs(), name);
    // Before IR version 4 initializers were listed among the inputs; recorded values for them are theirs already.
    if (spec == nullptr) {
      note(fmt::format("note: '{}' is not an input of the model; '{}' is ignored", name, file));
      continue;
    }
    given.add(name, read_value_file(file, spec, InputFlags()));
  }
  RunOptions options;
  if (!timeout.empty()) options.timeout = parse_duration(timeout, "--timeout");
  for (const auto& [name, file] : set.outputs) options.outputs.push_back(name);
  const NamedValues outputs = s.run(given, options);
  bool all = true;
  for (const auto& [name, file] : set.outputs) {
    const Value expected = read_expected(file, find_spec(s.outputs(), name));
    std::size_t index = 0;
    while (index < s.outputs().size() && s.outputs()[index].name != name) ++index;
    const DataType dtype = expected.is_tensor() ? expected.tensor().dtype()
                           : expected.is_map()  ? expected.map().values.dtype()
                           : expected.is_sequence() && expected.sequence().element_type != DataType::undefined
                               ? expected.sequence().element_type
                               : DataType::float32;
    compare::Tolerance t = compare::default_tolerance(precision, index, dtype);
    if (atol || rtol) t = {0, atol.value_or(0), rtol.value_or(0), 0, 0, "--atol, --rtol"};
    const compare::Comparison c = compare::compare_values(expected, outputs.at(name), t);
    show(set.name, name, c, t);
    all = all && c.pass;
  }
  return all;
}

bool VerifyCommand::verify_one(const fs::path& model_file, const fs::path& data) {
  const bool is_case = data.extension() == ".json";
  Case c;
  if (is_case) c = read_case_file(data);
  if (!model.empty()) {
    c.model = model;
  } else if (!model_file.empty()) {
    c.model = model_file;
  }
  if (c.model.empty()) fail(ErrorCode::invalid_argument, "'{}' names no model; name it with --model", data.string());
  session.model = c.model.string();
  session.given.keep_io = true;  // recorded values have the model's own types
  const project::ResolvedModel resolved = resolve(session);
  const Session s = open(resolved);
  if (!is_case) c.sets = read_case_folder(data, s.inputs(), s.outputs()).sets;
  const compare::Precision precision = compare::precision_of(read_model(resolved.model).graph);
  bool all = true;
  for (const CaseSet& set : c.sets) all = verify_set(s, set, precision) && all;
  return all;
}

int VerifyCommand::run() {
  for (const auto& t : {atol, rtol}) {
    if (t && !(*t >= 0 && std::isfinite(*t))) throw UsageError("--atol and --rtol must be numbers that are not negative");
  }
  bool all = true;
  const auto guarded = [&](const fs::path& model_file, const fs::path& data) {
    try {
      all = verify_one(model_file, data) && all;
    } catch (const Error& e) {
      if (targets.size() < 2) throw;
      note(fmt::format("error: {}: {}", data.string(), e.what()));
      ++failed_;
      all = false;
    }
  };
  std::error_code ignored;
  const auto is_case = [](const std::string& t) { return fs::path(t).extension() == ".json"; };
  if (targets.size() == 2 && !is_case(targets[0]) && !is_case(targets[1])) {
    all = verify_one(project::resolve(targets[0]).source, targets[1]);
  } else {
    for (const std::string& t : targets) {
      if (!is_case(t) && !fs::is_directory(t, ignored) && model.empty()) {
        throw UsageError(
            fmt::format("'{}': expected MODEL DATA, a folder with model.onnx and test_data_set_*, or .case.json files", t));
      }
      guarded(is_case(t)                                      ? fs::path()
              : fs::is_directory(t, ignored) && model.empty() ? project::resolve(t).source
                                                              : fs::path(),
              t);
    }
  }
  if (json) {
    print(fmt::format("{{\"pass\":{},\"passed\":{},\"failed\":{},\"results\":[{}]}}\n", all, passed_, failed_, results_));
  } else {
    print_verdict(fmt::format("{}: {} agree{}, {} do{} not\n", all ? "PASS" : "FAIL", counted(passed_, "output"),
                              passed_ == 1 ? "s" : "", failed_, failed_ == 1 ? "es" : ""));
  }
  return all ? kOk : kFailed;
}

}  // namespace

void add_verify(const Command& app, Action& action) {
  const Command command = app.add_subcommand("verify", "Compare a model's results with recorded ones");
  const auto c = std::make_shared<VerifyCommand>();
  command
      ->add_option("TARGET", c->targets, "MODEL and a folder or .npz with its recorded values; or .case.json files; or folders")
      ->required();
  command->add_option("--model", c->model, "Model, if the case file names none or another one")->type_name("FILE");
  c->session.add_to(command, false);
  command->add_option("--atol", c->atol, "Allowed absolute difference, instead of the automatic tolerance")->type_name("X");
  command
      ->add_option("--rtol", c->rtol, "Allowed difference relative to the expected element, instead of the automatic tolerance")
      ->type_name("X");
  command->add_option("--timeout", c->timeout, "Time limit for each run, for example 30 (seconds) or 500ms")->type_name("TIME");
  command->add_flag("--json", c->json, "Print results as JSON");
  command->add_flag("-q,--quiet", c->quiet, "Show only failures and the summary");
  command->footer(kVerifyExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
