// sdx/quantize_weights.hpp

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/system/new_file.h"
#include "graph/sizes.h"
#include "onnx/external_names.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "ops/infer.h"
#include "quantize/accuracy/measure.h"
#include "quantize/accuracy/sensitive.h"
#include "quantize/model/edit.h"
#include "quantize/weights/weight_only.h"
#include "session/pipeline.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kMethods{"rtn", "search", "hqq", "gptq"};
constexpr std::size_t kExternalTensor = 4096;  // smaller constants stay in the model file

}  // namespace

std::string_view name(WeightMethod method) noexcept { return kMethods[static_cast<std::size_t>(method)]; }

WeightMethod weight_method_named(std::string_view text) {
  for (std::size_t i = 0; i < kMethods.size(); ++i) {
    if (kMethods[i] == text) return static_cast<WeightMethod>(i);
  }
  fail(ErrorCode::invalid_argument, "unknown method '{}' of quantizing weights; expected rtn, search, hqq or gptq", text);
}

namespace {

// The options in the form that sensitive_layers() takes.
QuantOptions measuring(const WeightOnlyOptions& options) {
  QuantOptions o;
  o.custom_ops = options.custom_ops;
  o.max_loss = options.max_loss;
  return o;
}

void leave_sensitive(const Model& model, CalibrationDataReader& data, WeightOnlyOptions& options, WeightOnlyReport& report) {
  WeightOnlyReport all;
  const auto make = [&](const std::vector<std::string>& only, const std::vector<std::string>& without) {
    WeightOnlyOptions o = options;
    if (!only.empty()) o.nodes = only;
    o.exclude.insert(o.exclude.end(), without.begin(), without.end());
    Model made = model;
    WeightOnlyReport own;
    data.rewind();
    quantize::to_weight_only(made, o, &data, own);
    static_cast<void>(ops::infer_in_place(made.graph, {.allow_unknown = true}));
    if (only.empty() && without.empty()) all = std::move(own);
    return made;
  };
  make({}, {});  // tells what can be quantised
  std::vector<quantize::Layer> layers;
  for (const WeightOnlyReport::Node& n : all.quantized) layers.push_back({n.name, n.op, 0});
  for (const quantize::Layer& l : quantize::sensitive_layers(model, std::move(layers), make, data, measuring(options))) {
    options.exclude.push_back(l.name);
    report.kept.push_back({l.name, l.op, quantize::damage_text(l)});
  }
}

}  // namespace

WeightOnlyReport quantize_weights(const fs::path& path, const fs::path& output, const WeightOnlyOptions& asked,
                                  CalibrationDataReader* data) {
  WeightOnlyOptions options = asked;
  quantize::check(options);
  if (options.method == WeightMethod::gptq && data == nullptr) {
    fail(ErrorCode::invalid_argument, "gptq needs calibration data: inputs of the model to run it on");
  }
  quantize::check_measurable(options.max_loss, options.measure_accuracy, data);
  WeightOnlyReport report;
  Model model = read_model(path);
  report.bytes_before = model_file_bytes(path);
  SessionOptions session;
  session.custom_ops = options.custom_ops;
  session::prepare(model, session, true);
  report.nodes = count_nodes(model.graph);
  report.warnings = model.warnings;
  const bool measured = options.measure_accuracy || options.max_loss;
  const std::optional<Model> before = measured ? std::optional(model) : std::nullopt;
  if (options.max_loss) leave_sensitive(model, *data, options, report);
  if (data != nullptr) data->rewind();
  WeightOnlyReport done;
  quantize::to_weight_only(model, options, data, done);
  // Layers that stay float because of their damage are in the report already.
  std::erase_if(done.kept, [&](const WeightOnlyReport::Kept& k) {
    return std::any_of(report.kept.begin(), report.kept.end(), [&](const auto& said) { return said.node == k.node; });
  });
  report.quantized = std::move(done.quantized);
  report.kept.insert(report.kept.end(), done.kept.begin(), done.kept.end());
  report.warnings.insert(report.warnings.end(), done.warnings.begin(), done.warnings.end());
  static_cast<void>(ops::infer_in_place(model.graph, {.allow_unknown = true}));
  std::error_code none;
  if (fs::equivalent(path, output, none)) {
    fail(ErrorCode::invalid_argument, "'{}' is the model itself; the quantised one needs another name", output.string());
  }
  WriteOptions write;
  if (constant_bytes(model.graph) > options.external_above) write.external_above = kExternalTensor;
  write.dry_run = options.dry_run;
  if (write.dry_run) NewFile::check(output);
  report.bytes_after = write_model(model, output, write);
  if (before) report.accuracy = quantize::measure(*before, model, *data, measuring(options), 0);
  return report;
}

QuantReport WeightOnlyReport::summary() const {
  QuantReport out;
  out.mode = "weight-only";
  out.nodes = nodes;
  for (const Node& n : quantized) quantize::note_quantized(out, n.op);
  for (const Kept& k : kept) out.kept.push_back({k.node, k.op, k.why});
  out.bytes_before = bytes_before;
  out.bytes_after = bytes_after;
  out.accuracy = accuracy;
  out.warnings = warnings;
  return out;
}

}  // namespace sdx
