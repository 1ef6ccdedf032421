// sdx quantize

#include <memory>
#include <sdx/project.hpp>
#include <sdx/quantize_weights.hpp>
#include <tuple>

#include "base/error.h"
#include "base/system/new_file.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/resolve.h"
#include "cli/values/media_input.h"
#include "quantize/tools.h"

namespace sdx::cli {
namespace {

constexpr const char* kQuantizeExamples =
    "Examples:\n"
    "  sdx quantize bert.onnx -o bert.int8.onnx                                   # dynamic: needs no data\n"
    "  sdx quantize resnet50.onnx -o resnet50.int8.onnx --mode static --data pictures/ --normalize imagenet\n"
    "  sdx quantize model.onnx -o small.onnx --mode static --data samples.npz --max-loss 0.01 --report report.json\n"
    "  sdx quantize decoder.onnx -o decoder.int4.onnx --mode weight-only --bits 4 --method hqq\n"
    "  sdx quantize model.onnx -o half.onnx --mode float16 --keep-io --data samples.npz --accuracy\n";

// Flags that only some modes have.
struct ModeFlag {
  const char* flag;
  std::string_view modes;
};
constexpr ModeFlag kModeFlags[] = {
    {"--weight-type", "dynamic, static"},
    {"--per-tensor", "dynamic, static"},
    {"--reduce-range", "dynamic, static"},
    {"--no-preprocess", "dynamic, static"},
    {"--subgraphs", "dynamic"},
    {"--op", "dynamic, static, weight-only"},
    {"--node", "dynamic, static, weight-only"},
    {"--max-loss", "dynamic, static, weight-only"},
    {"--format", "static, weight-only"},
    {"--activation-type", "static"},
    {"--activation-symmetric", "static"},
    {"--calibrate", "static"},
    {"--percentile", "static"},
    {"--smooth-quant", "static"},
    {"--method", "weight-only"},
    {"--bits", "weight-only"},
    {"--block-size", "weight-only"},
    {"--symmetric", "weight-only"},
    {"--accuracy-level", "weight-only"},
    {"--act-order", "weight-only"},
    {"--keep-io", "float16, bfloat16"},
    {"--keep-op", "float16, bfloat16"},
};

struct QuantizeCommand {
  std::string model, output, mode = "dynamic", weight_type = "int8", activation_type = "uint8", format, calibrate = "minmax",
                             data, report, normalize, resize, method = "rtn";
  std::vector<std::string> ops, nodes, exclude, custom_ops, keep_ops;
  bool per_tensor = false, reduce_range = false, activation_symmetric = false, no_preprocess = false, accuracy = false,
       json = false, dry_run = false, subgraphs = false, symmetric = false, act_order = false, keep_io = false;
  double percentile = 99.999;
  std::optional<double> max_loss, smooth_quant;
  std::int64_t batch = 0, samples = 0, bits = 4, block_size = 32, accuracy_level = 0;
  Command command;

  int run() const;

 private:
  void check() const;
  void fill(QuantOptions& o) const;
  QuantReport quantized(const std::filesystem::path& file, CalibrationDataReader* reader) const;
  QuantReport run_static(const std::filesystem::path& file, CalibrationDataReader& reader) const;
  QuantReport run_weight_only(const std::filesystem::path& file, CalibrationDataReader* reader) const;
  QuantReport run_half(const std::filesystem::path& file, CalibrationDataReader* reader) const;
  CalibrationFiles files() const;
};

void QuantizeCommand::check() const {
  if (!output.ends_with(".onnx")) throw UsageError("-o " + output + ": the model's name must end in .onnx");
  for (const ModeFlag& f : kModeFlags) {
    if (command.count(f.flag) == 0 || (", " + std::string(f.modes) + ",").find(", " + mode + ",") != std::string::npos) continue;
    throw UsageError(std::string(f.flag) + " is for --mode " + std::string(f.modes));
  }
  if (!data.empty()) return;
  const bool gptq = mode == "weight-only" && method == "gptq";
  if (mode == "static" || gptq) {
    throw UsageError((gptq ? "--method gptq" : "--mode static") +
                     std::string(" needs --data: an .npz, an .npy, or a folder of pictures or arrays"));
  }
  if (max_loss || accuracy) throw UsageError(std::string(max_loss ? "--max-loss" : "--accuracy") + " needs --data");
}

void QuantizeCommand::fill(QuantOptions& o) const {
  o.op_types_to_quantize = ops;
  o.nodes_to_quantize = nodes;
  o.nodes_to_exclude = exclude;
  o.per_channel = !per_tensor;
  o.reduce_range = reduce_range;
  o.weight_type = load_module<quantize::Tools>().type(weight_type);
  o.preprocess = !no_preprocess;
  o.max_loss = max_loss;
  o.measure_accuracy = accuracy;
  o.dry_run = dry_run;
  o.custom_ops.assign(custom_ops.begin(), custom_ops.end());
  o.extra.enable_subgraph = subgraphs;
}

CalibrationFiles QuantizeCommand::files() const {
  CalibrationFiles f;
  f.batch = batch;
  f.samples = samples;
  f.preprocessing.normalize = normalize;
  if (!resize.empty()) std::tie(f.preprocessing.width, f.preprocessing.height) = parse_sides(resize, "--resize");
  return f;
}

QuantReport QuantizeCommand::run_static(const std::filesystem::path& file, CalibrationDataReader& reader) const {
  const quantize::Tools& tools = load_module<quantize::Tools>();
  StaticQuantOptions o;
  fill(o);
  o.activation_type = tools.type(activation_type);
  if (!format.empty()) o.quant_format = tools.format(format);
  o.calibrate_method = tools.method(calibrate);
  o.extra.calib_percentile = percentile;
  if (activation_symmetric) o.extra.activation_symmetric = true;
  if (smooth_quant) {
    o.extra.smooth_quant = true;
    o.extra.smooth_quant_alpha = *smooth_quant;
  }
  return tools.calibrated(file, output, reader, o);
}

QuantReport QuantizeCommand::run_weight_only(const std::filesystem::path& file, CalibrationDataReader* reader) const {
  const quantize::Tools& tools = load_module<quantize::Tools>();
  WeightOnlyOptions o;
  o.method = tools.weight_method(method);
  if (format == "qdq") o.form = WeightForm::qdq;
  o.format.bits = static_cast<int>(bits);
  o.format.block_size = block_size;
  o.format.symmetric = symmetric;
  o.accuracy_level = static_cast<int>(accuracy_level);
  if (!ops.empty()) o.ops = ops;
  o.nodes = nodes;
  o.exclude = exclude;
  o.act_order = act_order;
  o.max_loss = max_loss;
  o.measure_accuracy = accuracy;
  o.dry_run = dry_run;
  o.custom_ops.assign(custom_ops.begin(), custom_ops.end());
  return tools.weight_only(file, output, o, reader);
}

QuantReport QuantizeCommand::run_half(const std::filesystem::path& file, CalibrationDataReader* reader) const {
  HalfOptions o;
  o.dtype = parse_data_type(mode);
  o.keep_io = keep_io;
  o.keep_ops = keep_ops;
  o.keep_nodes = exclude;
  o.measure_accuracy = accuracy;
  o.dry_run = dry_run;
  o.custom_ops.assign(custom_ops.begin(), custom_ops.end());
  return load_module<quantize::Tools>().half(file, output, o, reader);
}

QuantReport QuantizeCommand::quantized(const std::filesystem::path& file, CalibrationDataReader* reader) const {
  if (mode == "static") return run_static(file, *reader);
  if (mode == "weight-only") return run_weight_only(file, reader);
  if (mode != "dynamic") return run_half(file, reader);
  DynamicQuantOptions o;
  fill(o);
  return load_module<quantize::Tools>().dynamic(file, output, o, reader);
}

int QuantizeCommand::run() const {
  check();
  const CalibrationFiles settings = files();
  if (dry_run && !report.empty()) NewFile::check(report);
  const std::filesystem::path file = project::resolve(model).source;
  const quantize::Tools& tools = load_module<quantize::Tools>();
  const std::unique_ptr<CalibrationDataReader> reader = data.empty() ? nullptr : tools.open_data(file, data, settings);
  const QuantReport done = quantized(file, reader.get());
  for (const std::string& w : done.warnings) note("warning: " + w);
  if (done.quantized == 0) note("note: nothing was quantised");
  const std::string all = tools.json(done);
  if (!report.empty() && !dry_run) {
    NewFile to(report);
    to.append(std::as_bytes(std::span(all.data(), all.size())));
    to.publish();
  }
  if (json) {
    print(all);
  } else {
    print((dry_run ? "would write " : "") + output + ": " + tools.text(done, 10));
    if (dry_run && !report.empty()) print("would write " + report + "\n");
  }
  return kOk;
}

void add_data_flags(const Command& command, QuantizeCommand& c) {
  command
      ->add_option("--data", c.data,
                   "Samples: an .npz with an array for each input, an .npy, or a folder of these or of pictures")
      ->type_name("PATH")
      ->group("Data");
  command->add_option("--batch", c.batch, "Samples per batch (default: 1, or as fixed by the model)")->group("Data");
  command->add_option("--samples", c.samples, "Maximum number of samples (default: all)")->group("Data");
  command->add_option("--normalize", c.normalize, "Value range of pictures: 0-1, -1-1, imagenet, clip, none")
      ->type_name("NAME")
      ->completed_by({"0-1", "-1-1", "imagenet", "clip", "none"})
      ->group("Data");
  command->add_option("--resize", c.resize, "Size of pictures, if the model takes any size")->type_name("WxH")->group("Data");
}

void add_static_flags(const Command& command, QuantizeCommand& c) {
  command
      ->add_option("--format", c.format,
                   "qdq or qoperator (default: qdq for static; qoperator, which is MatMulNBits, for weight-only)")
      ->one_of({"qdq", "qoperator"})
      ->type_name("FORMAT")
      ->group("Static");
  command->add_option("--activation-type", c.activation_type, "uint8 (default), int8, uint16, int16, float8e4m3fn")
      ->type_name("TYPE")
      ->group("Static");
  command->add_flag("--activation-symmetric", c.activation_symmetric, "Use ranges that are symmetric around 0")->group("Static");
  command->add_option("--calibrate", c.calibrate, "minmax (default), entropy, percentile, distribution or mse")
      ->one_of({"minmax", "entropy", "percentile", "distribution", "mse"})
      ->type_name("METHOD")
      ->group("Static");
  command->add_option("--percentile", c.percentile, "Percentage of values inside the range (default: 99.999)")->group("Static");
  command
      ->add_option("--smooth-quant", c.smooth_quant,
                   "Move this share of activation outliers into the weights (SmoothQuant), 0 to 1; usually 0.5")
      ->type_name("ALPHA")
      ->group("Static");
}

void add_weight_only_flags(const Command& command, QuantizeCommand& c) {
  const auto option = [&](const char* flag, auto& to, const char* help) {
    return command.add_option(flag, to, help)->group("Weight-only");
  };
  option("--method", c.method, "rtn (default), search, hqq or gptq, which needs --data")
      ->one_of({"rtn", "search", "hqq", "gptq"})
      ->type_name("METHOD");
  option("--bits", c.bits, "Of each weight: 2, 4 (default) or 8")->type_name("N");
  option("--block-size", c.block_size, "Weights that share a scale: a power of two from 16 (default: 32)")->type_name("N");
  command->add_flag("--symmetric", c.symmetric, "Use no zero points")->group("Weight-only");
  option("--accuracy-level", c.accuracy_level,
         "Type to which activations may be rounded: 1 float32, 2 float16, 3 bfloat16, 4 int8")
      ->type_name("N")
      ->range(0, 4);
  command->add_flag("--act-order", c.act_order, "gptq: process columns with large inputs first")->group("Weight-only");
}

void add_float_flags(const Command& command, QuantizeCommand& c) {
  command->add_flag("--keep-io", c.keep_io, "Keep inputs and outputs in float32")->group("float16, bfloat16");
  command->add_option("--keep-op", c.keep_ops, "Operators to keep in float32, comma-separated")
      ->delimiter(',')
      ->one_word()
      ->type_name("OP")
      ->group("float16, bfloat16");
}

}  // namespace

void add_quantize(const Command& app, Action& action) {
  const Command command = app.add_subcommand("quantize", "Convert a model to fewer bits: 8, 4, 2, float16 or bfloat16");
  const auto c = std::make_shared<QuantizeCommand>();
  command->add_option("MODEL", c->model, "Model file (.onnx), project file (sdx.yml) or name")->required();
  command->add_option("-o,--output", c->output, "New model")->required()->type_name("FILE.onnx");
  command
      ->add_option("--mode", c->mode,
                   "dynamic (default): needs no data; static: ranges from --data; weight-only: weights in 2, 4 or 8 bits; "
                   "float16, bfloat16")
      ->one_of({"dynamic", "static", "weight-only", "float16", "bfloat16"})
      ->type_name("MODE");
  command->add_option("--weight-type", c->weight_type, "int8 (default), uint8; static also int16, int4, float8e4m3fn")
      ->type_name("TYPE");
  command->add_flag("--per-tensor", c->per_tensor, "Use one scale for a whole weight instead of one per channel");
  command->add_flag("--reduce-range", c->reduce_range, "Use 7-bit weights, for other engines on processors without VNNI");
  command->add_option("--op", c->ops, "Operators to quantise, comma-separated (default: those that gain from it)")
      ->delimiter(',')
      ->one_word()
      ->type_name("OP");
  command->add_option("--node", c->nodes, "Quantise only this node; may be repeated")->one_word()->type_name("NAME");
  command->add_option("--exclude", c->exclude, "Do not quantise this node; may be repeated")->one_word()->type_name("NAME");
  command->add_flag("--subgraphs", c->subgraphs, "Also quantise nodes in branches and loops (dynamic)");
  command->add_flag("--no-preprocess", c->no_preprocess, "Do not fold constants and BatchNormalization first");
  command->add_option("--custom-ops", c->custom_ops, "Library with custom operators; may be repeated")
      ->type_name("LIB.so")
      ->one_word();
  command
      ->add_option("--max-loss", c->max_loss,
                   "Keep sensitive layers in float until 1 - cosine of outputs, and the share of rows with another top class, "
                   "are at most LOSS")
      ->type_name("LOSS");
  command->add_flag("--accuracy", c->accuracy, "Compare outputs and inner values with the float model on the data");
  command->add_option("--report", c->report, "Write a report as JSON")->type_name("FILE.json");
  command->add_flag("--dry-run", c->dry_run, "Quantise in memory, print what would be written, and write nothing");
  command->add_flag("--json", c->json, "Print the report as JSON");
  add_data_flags(command, *c);
  add_static_flags(command, *c);
  add_weight_only_flags(command, *c);
  add_float_flags(command, *c);
  c->command = command;
  command->footer(kQuantizeExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
