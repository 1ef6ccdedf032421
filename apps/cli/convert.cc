// sdx convert

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sdx/convert.hpp>
#include <sdx/runner.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "base/text/json_text.h"
#include "cli/command.h"
#include "cli/resolve.h"
#include "cli/values/inputs.h"
#include "cli/values/outputs.h"
#include "compare/values.h"
#include "inputs/input_plan.h"
#include "onnx/external_names.h"
#include "session/open.h"
#include "text/tools.h"

namespace sdx::cli {
namespace {

constexpr const char* kConvertExamples =
    "Examples:\n"
    "  sdx convert resnet50.onnx -o resnet50.fp16.onnx\n"
    "  sdx convert detector.onnx -o half.onnx --keep-io --keep-op Softmax,Resize --check\n"
    "  sdx bench resnet50.onnx --dtype float16        # the same for one run, kept in the cache\n"
    "  sdx convert resnet50.onnx -o resnet50.ort --optimize   # for ONNX Runtime\n"
    "  sdx convert SmolLM2.Q4_1.gguf -o smollm2/      # a language model, also for onnxruntime-genai\n";

struct ConvertCommand {
  std::string model, output, dtype;
  std::vector<std::string> keep_ops, keep_nodes, custom_ops;
  bool keep_io = false, check = false, json = false, optimize = false, dry_run = false;

  int run() const;
  int run_language_model() const;
  int run_optimize() const;
};

// One output of both models on the same made-up inputs.
struct Checked {
  std::string output;
  double max_abs = 0, max_rel = 0;
  bool finite = true;   // where the float32 model's are
  bool numbers = true;  // not indices, which a tie may change altogether
};

std::vector<Checked> check_outputs(const std::filesystem::path& before, const std::filesystem::path& after,
                                   const SessionOptions& options) {
  const Session a = Session::open(before, options);
  const Session b = Session::open(after, options);
  const inputs::InputPlan plan = inputs::plan_inputs(a.inputs(), {});
  for (const std::string& n : plan.notes) note("note: " + n);
  const inputs::IndexBounds bounds = inputs::bounds_of(before, options, a.inputs(), {}, plan.shapes);
  const NamedValues made = inputs::with_made_up(a.inputs(), {}, plan.shapes, 0, bounds);
  NamedValues wide, narrow;
  for (std::size_t i = 0; i < a.inputs().size(); ++i) {
    const ValueSpec& spec = a.inputs()[i];
    const Value* const value = made.find(spec.name);
    if (value == nullptr) continue;  // it has a default
    const Tensor converted = convert_elements(value->tensor(), b.inputs()[i].dtype, spec.name);
    wide.add(spec.name, convert_elements(converted, spec.dtype, spec.name));  // both models see the same numbers
    narrow.add(spec.name, converted);
  }
  const NamedValues expected = a.run(wide);
  const NamedValues received = b.run(narrow);
  std::vector<Checked> out;
  for (const NamedValue& e : expected) {
    const Value& r = received.at(e.name);
    if (!e.value.is_tensor() || !r.is_tensor()) continue;
    const compare::Comparison c =
        compare::compare_values(e.value, convert_elements(r.tensor(), e.value.tensor().dtype(), e.name), {});
    out.push_back({e.name, c.max_abs, c.max_rel, std::isfinite(c.max_abs), is_floating(e.value.tensor().dtype())});
  }
  return out;
}

// Rounding alone, summed up over a network, stays far below.
constexpr double kFarOff = 0.1;

int judge(const std::vector<Checked>& checked, const std::string& type) {
  int code = kOk;
  for (const Checked& c : checked) {
    if (!c.finite) {
      note(
          fmt::format("error: '{}' has NaN or infinities where the float32 model has none, or other extents; use --keep-op and "
                      "--keep-node to keep overflowing nodes in float32",
                      c.output));
      code = kFailed;
    } else if (c.max_rel > kFarOff) {
      note(
          fmt::format("{}: '{}' differs by {:.0f} % of its largest magnitude: {} is not precise enough for some nodes; "
                      "--keep-op and --keep-node keep them in float32",
                      c.numbers ? "error" : "warning", c.output, 100 * c.max_rel, type));
      if (c.numbers) code = kFailed;
    }
  }
  return code;
}

std::string report_text(const ConvertReport& r, const std::string& output, const std::string& dtype) {
  std::string out =
      fmt::format("{}: {} of {} nodes compute in {}, {} instead of {}\n", output, r.converted, r.nodes - r.casts, dtype,
                  size_text(static_cast<double>(r.bytes_after)), size_text(static_cast<double>(r.bytes_before)));
  out += fmt::format("  {} converted, {} added\n", counted(r.constants, "constant"), counted(r.casts, "cast"));
  std::map<std::string, std::pair<int, std::vector<std::string>>> reasons;
  for (const ConvertReport::Kept& k : r.kept) {
    auto& [count, ops] = reasons[k.why];
    ++count;
    if (std::find(ops.begin(), ops.end(), k.op) == ops.end()) ops.push_back(k.op);
  }
  for (const auto& [why, kept] : reasons) {
    out += fmt::format("  {} stay in float32 ({}): {}\n", kept.first, join(kept.second), why);
  }
  const auto changed = [&](std::int64_t count, const std::vector<std::string>& names, const char* what) {
    if (count == 0) return;
    const std::size_t shown = std::min<std::size_t>(3, names.size());
    out += fmt::format("  {} {}: in {}{}\n", counted(count, "value"), what,
                       join(std::vector<std::string>(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown))),
                       names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "");
  };
  changed(r.clipped, r.clipped_in, "beyond the type's range became its largest");
  changed(r.raised, r.raised_in, "too small for the type became its smallest");
  return out;
}

std::string report_json(const ConvertReport& r, const ConvertCommand& c, const std::vector<Checked>& checked) {
  std::string kept, outputs;
  for (const ConvertReport::Kept& k : r.kept) {
    kept += fmt::format("{}{{\"node\":{},\"op\":{},\"why\":{}}}", kept.empty() ? "" : ",", json_string(k.node), json_string(k.op),
                        json_string(k.why));
  }
  for (const Checked& o : checked) {
    outputs += fmt::format("{}{{\"output\":{},\"max_abs\":{},\"max_rel\":{}}}", outputs.empty() ? "" : ",", json_string(o.output),
                           json_number(o.max_abs), json_number(o.max_rel));
  }
  return fmt::format(
      "{{\"model\":{},\"output\":{},\"dtype\":{},\"nodes\":{},\"converted\":{},\"kept\":[{}],\"casts\":{},\"constants\":{},"
      "\"clipped\":{},\"clipped_in\":{},\"raised\":{},\"raised_in\":{},\"bytes_before\":{},\"bytes_after\":{},\"warnings\":{},"
      "\"check\":{}}}\n",
      json_string(c.model), json_string(c.output), json_string(c.dtype.empty() ? "float16" : c.dtype), r.nodes, r.converted, kept,
      r.casts, r.constants, r.clipped, json_list(r.clipped_in), r.raised, json_list(r.raised_in), r.bytes_before, r.bytes_after,
      json_list(r.warnings), c.check ? "[" + outputs + "]" : "null");
}

// A .gguf file, or a folder with .safetensors files, into a folder with genai_config.json.
int ConvertCommand::run_language_model() const {
  for (const auto& [name, given] :
       {std::pair("--keep-io", keep_io), std::pair("--keep-op", !keep_ops.empty()), std::pair("--keep-node", !keep_nodes.empty()),
        std::pair("--custom-ops", !custom_ops.empty()), std::pair("--check", check)}) {
    if (given) throw UsageError(fmt::format("{} is for .onnx models", name));
  }
  if (dtype == "bfloat16") {
    throw UsageError(
        "--dtype bfloat16: a language model can be written as float32, float16, int8 or int4, or as it is (without --dtype)");
  }
  if (output.ends_with(".onnx")) throw UsageError(fmt::format("-o {}: a language model becomes a folder", output));
  std::error_code none;
  if (std::filesystem::equivalent(model, output, none))
    throw UsageError("-o: the output folder must differ from the model's folder");
  const LanguageConversion done = load_module<text::Tools>().convert(model, output, {dtype, 0, dry_run});
  if (!done.without_tokenizer.empty())
    note(fmt::format("note: no tokenizer {} written: ", dry_run ? "would be" : "was") + done.without_tokenizer);
  if (json) {
    print(
        fmt::format("{{\"model\":{},\"output\":{},\"dtype\":{},\"architecture\":{},\"context\":{},\"bytes\":{},"
                    "\"files\":{}}}\n",
                    json_string(model), json_string(output), json_or_null(dtype), json_string(done.architecture), done.context,
                    done.bytes, json_list(done.files)));
  } else {
    print(fmt::format("{}{}: {} with a context of {} tokens, weights {}, {:.1f} MB\n", dry_run ? "would write " : "", output,
                      done.architecture, done.context, dtype.empty() ? "as they were" : "in " + dtype,
                      static_cast<double>(done.bytes) * 1e-6));
    if (dry_run) print(fmt::format("  {}\n", join(done.files)));
  }
  return kOk;
}

std::uint64_t bytes_of(const std::filesystem::path& file) {
  return file.extension() == ".onnx" ? model_file_bytes(file) : std::filesystem::file_size(file);
}

// Optimises the model with operators that other engines know.
int ConvertCommand::run_optimize() const {
  for (const auto& [name, given] :
       {std::pair("--dtype", !dtype.empty()), std::pair("--keep-io", keep_io), std::pair("--keep-op", !keep_ops.empty()),
        std::pair("--keep-node", !keep_nodes.empty()), std::pair("--check", check)}) {
    if (given) throw UsageError(fmt::format("{} is not for --optimize, which changes no types", name));
  }
  if (!output.ends_with(".onnx") && !output.ends_with(".ort"))
    throw UsageError(fmt::format("-o {}: the model's name must end in .onnx or .ort", output));
  const std::filesystem::path file = project::resolve(model).source;
  std::error_code error;
  if (std::filesystem::equivalent(file, output, error))
    throw UsageError("-o names the model itself; choose another name for the new one");
  SessionOptions session;
  session.providers = {"cpu"};
  session.cache = false;
  session.custom_ops.assign(custom_ops.begin(), custom_ops.end());
  session.optimized_model = output;
  std::uint64_t after = 0;
  session::InternalOptions internal;
  if (dry_run) internal.optimized_bytes = &after;
  for (const std::string& w : session::open(file, session, internal).report().warnings) note("warning: " + w);
  const std::uint64_t before = bytes_of(file);
  if (!dry_run) after = bytes_of(output);
  if (json) {
    print(fmt::format("{{\"model\":{},\"output\":{},\"bytes_before\":{},\"bytes_after\":{}}}\n", json_string(model),
                      json_string(output), before, after));
  } else {
    print(fmt::format("{}{}: optimised, {} instead of {}\n", dry_run ? "would write " : "", output,
                      size_text(static_cast<double>(after)), size_text(static_cast<double>(before))));
  }
  return kOk;
}

int ConvertCommand::run() const {
  if (dry_run && check) throw UsageError("--check needs the written model; it cannot be combined with --dry-run");
  if (optimize) return run_optimize();
  std::error_code none;
  if (model.ends_with(".gguf") || std::filesystem::is_directory(model, none)) return run_language_model();
  if (dtype == "float32" || dtype == "int8" || dtype == "int4")
    throw UsageError(fmt::format("--dtype {} is for language models", dtype));
  const std::string type = dtype.empty() ? "float16" : dtype;
  ConvertOptions o;
  o.dtype = parse_precision(type);
  o.dry_run = dry_run;
  o.keep_io = keep_io;
  o.keep_ops = keep_ops;
  o.keep_nodes = keep_nodes;
  o.custom_ops.assign(custom_ops.begin(), custom_ops.end());
  if (!output.ends_with(".onnx")) throw UsageError(fmt::format("-o {}: the model's name must end in .onnx", output));
  const std::filesystem::path file = project::resolve(model).source;
  std::error_code error;
  if (std::filesystem::equivalent(file, output, error))
    throw UsageError("-o names the model itself; choose another name for the new one");
  const ConvertReport report = convert_model(file, output, o);
  for (const std::string& w : report.warnings) note("warning: " + w);
  if (report.converted == 0) note("note: the model computes nothing in float32, so it is unchanged");
  std::vector<Checked> checked;
  if (check) {
    SessionOptions session;
    session.providers = {"cpu"};
    session.custom_ops = o.custom_ops;
    checked = check_outputs(file, output, session);
  }
  if (json) {
    print(report_json(report, *this, checked));
  } else {
    print((dry_run ? "would write " : "") + report_text(report, output, type));
    for (const Checked& c : checked) {
      print(fmt::format("  {}: differs by at most {:.3g}, {:.3g} of the largest magnitude\n", c.output, c.max_abs, c.max_rel));
    }
  }
  return judge(checked, type);
}

}  // namespace

void add_convert(const Command& app, Action& action) {
  const Command command =
      app.add_subcommand("convert", "Convert a model to float16 or bfloat16, or a language model to an ONNX folder");
  const auto c = std::make_shared<ConvertCommand>();
  command
      ->add_option("MODEL", c->model, "Model file (.onnx, .gguf), folder with .safetensors files, project file (sdx.yml) or name")
      ->required();
  command->add_option("-o,--output", c->output, "New model; for a language model, a folder")
      ->required()
      ->type_name("FILE.onnx|FOLDER");
  command
      ->add_option("--dtype", c->dtype,
                   "float16 (default) or bfloat16; for a language model float32, float16, int8 or int4 (default: unchanged)")
      ->one_of({"float16", "bfloat16", "float32", "int8", "int4"})
      ->type_name("TYPE");
  command->add_flag("--keep-io", c->keep_io, "Keep inputs and outputs in float32");
  command->add_option("--keep-op", c->keep_ops, "Operators to keep in float32, comma-separated")
      ->delimiter(',')
      ->one_word()
      ->type_name("OP");
  command->add_option("--keep-node", c->keep_nodes, "Nodes to keep in float32, by name; may be repeated")
      ->one_word()
      ->type_name("NAME");
  command->add_option("--custom-ops", c->custom_ops, "Library with custom operators; may be repeated")
      ->type_name("LIB.so")
      ->one_word();
  command->add_flag(
      "--optimize", c->optimize,
      "Write the model after graph passes, with unchanged types, also for other engines; FILE.ort: in ONNX Runtime's format");
  command->add_flag("--check", c->check, "Run both models on random inputs and show the differences");
  command->add_flag("--dry-run", c->dry_run, "Convert in memory, print what would be written, and write nothing");
  command->add_flag("--json", c->json, "Print JSON");
  command->footer(kConvertExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
