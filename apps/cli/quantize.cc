// sdx quantize

#include <memory>
#include <sdx/project.hpp>
#include <sdx/quantize.hpp>

#include "base/error.h"
#include "base/system/new_file.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/quantize_tools.h"
#include "cli/resolve.h"

namespace sdx::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  sdx quantize bert.onnx -o bert.int8.onnx                                   # dynamic: needs no data\n"
    "  sdx quantize resnet50.onnx -o resnet50.int8.onnx --mode static --data pictures/ --normalize imagenet\n"
    "  sdx quantize model.onnx -o small.onnx --mode static --data samples.npz --max-loss 0.01 --report report.json\n";

struct QuantizeCommand {
  std::string model, output, mode = "dynamic", weight_type = "int8", activation_type = "uint8", format = "qdq",
                             calibrate = "minmax", data, report, normalize, resize;
  std::vector<std::string> ops, nodes, exclude, custom_ops;
  bool per_tensor = false, reduce_range = false, activation_symmetric = false, no_preprocess = false, accuracy = false,
       json = false, subgraphs = false;
  double percentile = 99.999;
  std::optional<double> max_loss;
  std::int64_t batch = 0, samples = 0;

  int run() const;
  void fill(QuantOptions& o) const;
  QuantReport run_static(const std::filesystem::path& file) const;
  CalibrationFiles files() const;
};

void QuantizeCommand::fill(QuantOptions& o) const {
  o.op_types_to_quantize = ops;
  o.nodes_to_quantize = nodes;
  o.nodes_to_exclude = exclude;
  o.per_channel = !per_tensor;
  o.reduce_range = reduce_range;
  o.weight_type = quantize_tools().type(weight_type);
  o.preprocess = !no_preprocess;
  o.custom_ops.assign(custom_ops.begin(), custom_ops.end());
  o.extra.enable_subgraph = subgraphs;
}

CalibrationFiles QuantizeCommand::files() const {
  CalibrationFiles f;
  f.batch = batch;
  f.samples = samples;
  f.preprocessing.normalize = normalize;
  if (!resize.empty()) {
    const std::size_t x = resize.find('x');
    try {
      f.preprocessing.width = std::stoi(resize.substr(0, x));
      f.preprocessing.height = x == std::string::npos ? f.preprocessing.width : std::stoi(resize.substr(x + 1));
    } catch (const std::exception&) {
      throw UsageError("--resize takes WIDTHxHEIGHT, received '" + resize + "'");
    }
  }
  return f;
}

QuantReport QuantizeCommand::run_static(const std::filesystem::path& file) const {
  const quantize::Tools& tools = quantize_tools();
  StaticQuantOptions o;
  fill(o);
  o.activation_type = tools.type(activation_type);
  o.quant_format = tools.format(format);
  o.calibrate_method = tools.method(calibrate);
  o.extra.calib_percentile = percentile;
  if (activation_symmetric) o.extra.activation_symmetric = true;
  o.max_loss = max_loss;
  o.measure_accuracy = accuracy;
  const auto reader = tools.open_data(file, data, files());
  return tools.calibrated(file, output, *reader, o);
}

int QuantizeCommand::run() const {
  if (!output.ends_with(".onnx")) throw UsageError("-o " + output + ": the model's name must end in .onnx");
  const bool fixed = mode == "static";
  if (fixed && data.empty()) throw UsageError("--mode static needs --data: an .npz, an .npy, or a folder of pictures or arrays");
  if (!fixed && max_loss) throw UsageError("--max-loss is for --mode static");
  if (!fixed && accuracy && data.empty()) throw UsageError("--accuracy needs --data");
  const std::filesystem::path file = project::resolve(model).source;
  const quantize::Tools& tools = quantize_tools();
  QuantReport done;
  if (fixed) {
    done = run_static(file);
  } else {
    DynamicQuantOptions o;
    fill(o);
    done = tools.dynamic(file, output, o);
    if (accuracy) done.accuracy = tools.compare(file, output, *tools.open_data(file, data, files()), 0);
  }
  for (const std::string& w : done.warnings) note("warning: " + w);
  if (done.quantized == 0) note("note: nothing was quantised");
  const std::string all = tools.json(done);
  if (!report.empty()) {
    NewFile to(report);
    to.append(std::as_bytes(std::span(all.data(), all.size())));
    to.publish();
  }
  print(json ? all : output + ": " + tools.text(done, 10));
  return kOk;
}

void add_static_flags(const Command& command, QuantizeCommand& c) {
  command
      ->add_option("--data", c.data,
                   "Samples: an .npz with an array for each input, an .npy, or a folder of these or of pictures")
      ->type_name("PATH")
      ->group("Data");
  command->add_option("--batch", c.batch, "Samples at a time (default: 1, or as the model fixes it)")->group("Data");
  command->add_option("--samples", c.samples, "At most so many (default: all)")->group("Data");
  command->add_option("--normalize", c.normalize, "Of pictures: 0-1, -1-1, imagenet, clip, none")
      ->type_name("NAME")
      ->group("Data");
  command->add_option("--resize", c.resize, "Of pictures, where the model takes any size")->type_name("WxH")->group("Data");
  command->add_option("--format", c.format, "qdq (default) or qoperator")
      ->one_of({"qdq", "qoperator"})
      ->type_name("FORMAT")
      ->group("Static");
  command->add_option("--activation-type", c.activation_type, "uint8 (default), int8, uint16, int16, float8e4m3fn")
      ->type_name("TYPE")
      ->group("Static");
  command->add_flag("--activation-symmetric", c.activation_symmetric, "As much range below 0 as above")->group("Static");
  command->add_option("--calibrate", c.calibrate, "minmax (default), entropy, percentile, distribution or mse")
      ->one_of({"minmax", "entropy", "percentile", "distribution", "mse"})
      ->type_name("METHOD")
      ->group("Static");
  command->add_option("--percentile", c.percentile, "Of values inside the range (default: 99.999)")->group("Static");
  command
      ->add_option("--max-loss", c.max_loss,
                   "Keep layers float until 1 - cosine of outputs, and rows with another top class, are at most this")
      ->type_name("LOSS")
      ->group("Static");
}

}  // namespace

void add_quantize(const Command& app, Action& action) {
  const Command command = app.add_subcommand("quantize", "Write a model with weights, and what it computes with, in 8 bits");
  const auto c = std::make_shared<QuantizeCommand>();
  command->add_option("MODEL", c->model, "Model file (.onnx), project file (sdx.yml) or name")->required();
  command->add_option("-o,--output", c->output, "The new model")->required()->type_name("FILE.onnx");
  command->add_option("--mode", c->mode, "dynamic (default): no data needed; static: with ranges from --data")
      ->one_of({"dynamic", "static"})
      ->type_name("MODE");
  command->add_option("--weight-type", c->weight_type, "int8 (default), uint8; static also int16, int4, float8e4m3fn")
      ->type_name("TYPE");
  command->add_flag("--per-tensor", c->per_tensor, "One scale for all of a weight instead of one for each channel");
  command->add_flag("--reduce-range", c->reduce_range, "Weights of 7 bits, for processors without VNNI in other engines");
  command->add_option("--op", c->ops, "Operators to quantise, comma-separated (default: those that gain)")
      ->delimiter(',')
      ->one_word()
      ->type_name("OP");
  command->add_option("--node", c->nodes, "Quantise this node alone; may be repeated")->one_word()->type_name("NAME");
  command->add_option("--exclude", c->exclude, "Leave this node as it is; may be repeated")->one_word()->type_name("NAME");
  command->add_flag("--subgraphs", c->subgraphs, "Nodes in branches and loops too (dynamic)");
  command->add_flag("--no-preprocess", c->no_preprocess, "Fold neither constants nor BatchNormalization before");
  command->add_option("--custom-ops", c->custom_ops, "Library with custom operators; may be repeated")
      ->type_name("LIB.so")
      ->one_word();
  command->add_flag("--accuracy", c->accuracy, "Compare with the float model on the data, outputs and values inside");
  command->add_option("--report", c->report, "Write all that was done and measured as JSON")->type_name("FILE.json");
  command->add_flag("--json", c->json, "The same to standard output");
  add_static_flags(command, *c);
  command->footer(kExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
