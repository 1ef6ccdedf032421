#include <algorithm>
#include <cmath>
#include <sdx/quantize.hpp>
#include <set>

#include "base/error.h"
#include "onnx/reader.h"
#include "quantize/accuracy/measure.h"
#include "quantize/accuracy/sensitive.h"
#include "quantize/dynamic/dynamic.h"
#include "quantize/fixed/qdq.h"
#include "quantize/fixed/smooth.h"
#include "quantize/model/edit.h"
#include "quantize/model/model_file.h"

namespace sdx {

using namespace quantize;

namespace {

StaticQuantOptions narrowed(const StaticQuantOptions& options, const std::vector<std::string>& only,
                            const std::vector<std::string>& without) {
  StaticQuantOptions o = options;
  if (!only.empty()) o.nodes_to_quantize = only;
  o.nodes_to_exclude.insert(o.nodes_to_exclude.end(), without.begin(), without.end());
  return o;
}

// Plans anew, without the layers that lose too much.
void leave_sensitive(const Model& model, StaticPlan& plan, const Calibration& calibration, CalibrationDataReader& data,
                     StaticQuantOptions& options, QuantReport& report) {
  const auto make = [&](const std::vector<std::string>& only, const std::vector<std::string>& without) {
    const StaticQuantOptions o = narrowed(options, only, without);
    Model made = model;
    QuantReport ignored;
    const StaticPlan own = plan_static(made.graph, o, ignored);
    make_static(made, own, calibration, o, ignored);
    finish_quantized(made);
    return made;
  };
  std::vector<Layer> layers;
  for (NodeId id = 0; id < plan.nodes.size(); ++id) {
    const Node& n = model.graph.node(id);
    if (plan.nodes[id] && static_kind(n) == StaticKind::weighted) layers.push_back({node_name(model.graph, n), n.op_type, 0});
  }
  const std::vector<Layer> kept = sensitive_layers(model, std::move(layers), make, data, options);
  if (kept.empty()) return;
  for (const Layer& l : kept) {
    options.nodes_to_exclude.push_back(l.name);
    report.kept.push_back({l.name, l.op, damage_text(l)});
  }
  QuantReport ignored;
  plan = plan_static(model.graph, options, ignored);
}

void leave_sensitive(const Model& model, CalibrationDataReader& data, DynamicQuantOptions& options, QuantReport& report) {
  std::set<std::string> left;
  const auto make = [&](const std::vector<std::string>& only, const std::vector<std::string>& without) {
    DynamicQuantOptions o = options;
    if (!only.empty()) o.nodes_to_quantize = only;
    o.nodes_to_exclude.insert(o.nodes_to_exclude.end(), without.begin(), without.end());
    Model made = model;
    QuantReport own;
    make_dynamic(made, o, own);
    finish_quantized(made);
    for (const QuantReport::Kept& k : own.kept) left.insert(k.node);
    return made;
  };
  make({}, {});  // tells what cannot be quantised
  std::vector<Layer> layers;
  const Choice choice(model.graph, options, dynamic_operators(), options.extra.enable_subgraph);
  for (const Node& n : model.graph.nodes()) {
    const std::string name = node_name(model.graph, n);
    if (choice.wants(model.graph, n) && !left.contains(name)) layers.push_back({name, n.op_type, 0});
  }
  for (const Layer& l : sensitive_layers(model, std::move(layers), make, data, options)) {
    options.nodes_to_exclude.push_back(l.name);
    report.kept.push_back({l.name, l.op, damage_text(l)});
  }
}

// Float values that nodes of the chosen operators read or give, constants aside.
std::vector<std::string> float_values(const Graph& graph, const QuantOptions& options) {
  const auto& ops = options.op_types_to_quantize;
  std::set<std::string> names;
  for (const Node& n : graph.nodes()) {
    if (n.removed || (!ops.empty() && std::find(ops.begin(), ops.end(), n.op_type) == ops.end())) continue;
    for (const auto* list : {&n.inputs, &n.outputs}) {
      for (const ValueId v : *list) {
        if (v == kNoValue || fixed_value(graph, v) != nullptr || !is_float(graph.value(v).type.elem)) continue;
        names.insert(graph.value(v).name);
      }
    }
  }
  return {names.begin(), names.end()};
}

// Quantises with the calibrated ranges. `data`: null if nothing needs them.
QuantReport write_static(Model& model, const std::filesystem::path& output, StaticPlan& plan, const Calibration& calibration,
                         CalibrationDataReader* data, StaticQuantOptions& options, QuantReport& report) {
  if (options.max_loss && data != nullptr) leave_sensitive(model, plan, calibration, *data, options, report);
  const bool measured = data != nullptr && (options.measure_accuracy || options.max_loss);
  const std::optional<Model> before = measured ? std::optional(model) : std::nullopt;
  make_static(model, plan, calibration, options, report);
  write_quantized(model, output, options, report);
  if (before) report.accuracy = measure(*before, model, *data, options, 0);
  return report;
}

}  // namespace

QuantReport quantize_dynamic(const std::filesystem::path& path, const std::filesystem::path& output,
                             const DynamicQuantOptions& asked, CalibrationDataReader* data) {
  DynamicQuantOptions options = asked;
  check_measurable(options.max_loss, options.measure_accuracy, data);
  QuantReport report;
  report.mode = "dynamic";
  constexpr int kOpset = 13;  // scales along an axis; DynamicQuantizeLinear is of 11
  Model model = read_for_quantizing(path, options, kOpset, report);
  const bool measured = options.measure_accuracy || options.max_loss;
  const std::optional<Model> before = measured ? std::optional(model) : std::nullopt;
  if (options.max_loss) leave_sensitive(model, *data, options, report);
  make_dynamic(model, options, report);
  write_quantized(model, output, options, report);
  if (before) report.accuracy = measure(*before, model, *data, options, 0);
  return report;
}

QuantReport quantize_static(const std::filesystem::path& path, const std::filesystem::path& output, CalibrationDataReader& data,
                            const StaticQuantOptions& asked) {
  StaticQuantOptions options = asked;
  check_static(options);
  QuantReport report;
  report.mode = "static";
  check_measurable(options.max_loss, options.measure_accuracy, &data);
  Model model = read_for_quantizing(path, options, opset_for(options), report);
  settle_for(model, options, report);
  if (options.extra.smooth_quant) smooth(model, data, options);
  StaticPlan plan = plan_static(model.graph, options, report);
  const Calibration calibration = calibrate(model, observed_names(model.graph, plan), data, options);
  return write_static(model, output, plan, calibration, &data, options, report);
}

QuantReport quantize_calibrated(const std::filesystem::path& path, const std::filesystem::path& output,
                                const CalibratedRanges& ranges, const StaticQuantOptions& asked) {
  StaticQuantOptions options = asked;
  check_static(options);
  if (options.max_loss || options.measure_accuracy || options.extra.smooth_quant) {
    fail(ErrorCode::invalid_argument, "{} needs calibration data; ranges are not enough",
         options.max_loss           ? "max_loss"
         : options.measure_accuracy ? "measure_accuracy"
                                    : "SmoothQuant");
  }
  QuantReport report;
  report.mode = "static";
  Model model = read_for_quantizing(path, options, opset_for(options), report);
  settle_for(model, options, report);
  StaticPlan plan = plan_static(model.graph, options, report);
  Calibration calibration;
  for (const auto& [name, r] : ranges) {
    if (!(std::isfinite(r.low) && std::isfinite(r.high) && r.low <= r.high)) {
      fail(ErrorCode::invalid_argument, "the range of '{}' is {} to {}; expected two numbers, the smaller first", name, r.low,
           r.high);
    }
    calibration.ranges[name] = {r.low, r.high};
    if (r.deviation) calibration.deviations[name] = *r.deviation;
  }
  return write_static(model, output, plan, calibration, nullptr, options, report);
}

CalibratedRanges calibrate_static(const std::filesystem::path& path, CalibrationDataReader& data,
                                  const StaticQuantOptions& options, bool all) {
  check_static(options);
  QuantReport ignored;
  Model model = read_for_quantizing(path, options, opset_for(options), ignored);
  settle_for(model, options, ignored);
  if (options.extra.smooth_quant) smooth(model, data, options);
  const auto names =
      all ? float_values(model.graph, options) : observed_names(model.graph, plan_static(model.graph, options, ignored));
  const Calibration found = calibrate(model, names, data, options);
  CalibratedRanges out;
  for (const auto& [name, r] : found.ranges) {
    const auto deviation = found.deviations.find(name);
    out[name] = {r.low, r.high, deviation == found.deviations.end() ? std::nullopt : std::optional(deviation->second)};
  }
  return out;
}

void preprocess_for_quantizing(const std::filesystem::path& path, const std::filesystem::path& output,
                               const QuantOptions& options) {
  QuantReport ignored;
  Model model = read_for_quantizing(path, options, 1, ignored);
  write_quantized(model, output, options, ignored);
}

QuantAccuracy compare_quantized(const std::filesystem::path& path, const std::filesystem::path& quantized,
                                CalibrationDataReader& data, std::int64_t samples) {
  const QuantOptions options;  // folds, as quantising does: then values have the same names and meanings
  QuantReport ignored;
  const Model a = read_for_quantizing(path, options, 1, ignored), b = read_for_quantizing(quantized, options, 1, ignored);
  return measure(a, b, data, options, samples);
}

}  // namespace sdx
