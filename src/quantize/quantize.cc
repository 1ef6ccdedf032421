#include <algorithm>
#include <cmath>
#include <sdx/quantize.hpp>
#include <set>

#include "base/error.h"
#include "onnx/reader.h"
#include "quantize/accuracy/measure.h"
#include "quantize/dynamic/dynamic.h"
#include "quantize/fixed/qdq.h"
#include "quantize/fixed/sensitive.h"
#include "quantize/model/edit.h"
#include "quantize/model/model_file.h"

namespace sdx {

using namespace quantize;

namespace {

// Batches on which each layer is measured for itself.
constexpr std::int64_t kSearchBatches = 16;

void leave_sensitive(const Model& model, StaticPlan& plan, const Calibration& calibration, CalibrationDataReader& data,
                     StaticQuantOptions& options, QuantReport& report) {
  if (!(*options.max_loss >= 0)) fail(ErrorCode::invalid_argument, "a loss is 0 or more, received {}", *options.max_loss);
  const Recorded expected = record(model, data, options, kSearchBatches);
  const auto kept = sensitive_nodes(model, plan, calibration, expected, data, options, *options.max_loss, report);
  if (kept.empty()) return;
  options.nodes_to_exclude.insert(options.nodes_to_exclude.end(), kept.begin(), kept.end());
  QuantReport ignored;
  plan = plan_static(model.graph, options, ignored);
}

// Float values that nodes of the chosen operators read or give, constants aside.
std::vector<std::string> float_values(const Graph& graph, const QuantOptions& options) {
  const auto& ops = options.op_types_to_quantize;
  std::set<std::string> names;
  for (const Node& n : graph.nodes()) {
    if (n.removed || (!ops.empty() && std::find(ops.begin(), ops.end(), n.op_type) == ops.end())) continue;
    for (const auto* list : {&n.inputs, &n.outputs}) {
      for (const ValueId v : *list) {
        if (v == kNoValue || constant_of(graph, v) != nullptr || !is_float(graph.value(v).type.elem)) continue;
        names.insert(graph.value(v).name);
      }
    }
  }
  return {names.begin(), names.end()};
}

// With what was calibrated. `data`: null where nothing needs them.
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
                             const DynamicQuantOptions& options) {
  QuantReport report;
  report.mode = "dynamic";
  constexpr int kOpset = 13;  // scales along an axis; DynamicQuantizeLinear is of 11
  Model model = read_for_quantizing(path, options, kOpset, report);
  make_dynamic(model, options, report);
  write_quantized(model, output, options, report);
  return report;
}

QuantReport quantize_static(const std::filesystem::path& path, const std::filesystem::path& output, CalibrationDataReader& data,
                            const StaticQuantOptions& asked) {
  StaticQuantOptions options = asked;
  check_static(options);
  QuantReport report;
  report.mode = "static";
  Model model = read_for_quantizing(path, options, opset_for(options), report);
  StaticPlan plan = plan_static(model.graph, options, report);
  const Calibration calibration = calibrate(model, observed_names(model.graph, plan), data, options);
  return write_static(model, output, plan, calibration, &data, options, report);
}

QuantReport quantize_calibrated(const std::filesystem::path& path, const std::filesystem::path& output,
                                const CalibratedRanges& ranges, const StaticQuantOptions& asked) {
  StaticQuantOptions options = asked;
  check_static(options);
  if (options.max_loss || options.measure_accuracy || options.extra.smooth_quant) {
    fail(ErrorCode::invalid_argument, "ranges alone do for quantising, but {} needs calibration data",
         options.max_loss           ? "max_loss"
         : options.measure_accuracy ? "measure_accuracy"
                                    : "SmoothQuant");
  }
  QuantReport report;
  report.mode = "static";
  Model model = read_for_quantizing(path, options, opset_for(options), report);
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
  const Model model = read_for_quantizing(path, options, opset_for(options), ignored);
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
