#include "quantize/calibration/observe.h"

#include <algorithm>
#include <set>
#include <span>

#include "base/error.h"
#include "onnx/writer.h"
#include "tensor/element.h"

namespace sdx::quantize {
namespace {

std::string with_outputs(const Model& model, const std::vector<std::string>& names) {
  Model copy = model;
  const std::set<std::string> there(copy.graph.output_names().begin(), copy.graph.output_names().end());
  for (const std::string& name : names) {
    if (there.contains(name)) continue;
    const auto v = copy.graph.find(name);
    if (v) copy.graph.add_output(*v);
  }
  return write_model(copy);
}

Session opened(const Model& model, const std::vector<std::string>& names, const QuantOptions& options) {
  SessionOptions session;
  session.providers = {"cpu"};
  session.custom_ops = options.custom_ops;
  const std::string bytes = with_outputs(model, names);
  return Session::from_bytes(std::as_bytes(std::span(bytes.data(), bytes.size())), session);
}

// Calls use(index, floats) for each float tensor among `names`.
template <class F>
std::int64_t for_each_value(const Observed& model, const std::vector<std::string>& names, CalibrationDataReader& data,
                            const F& use) {
  std::int64_t batches = 0;
  data.rewind();
  while (const auto inputs = data.get_next()) {
    const NamedValues outputs = model.run(*inputs);
    ++batches;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Value* v = outputs.find(names[i]);
      if (v == nullptr) v = inputs->find(names[i]);
      if (v == nullptr || !v->is_tensor()) continue;
      const Tensor floats = to_float32(v->tensor()).aligned();
      use(i, floats.values<float>());
    }
  }
  return batches;
}

Range narrowed(const Histogram& h, const StaticQuantOptions& o) {
  const QuantExtraOptions& e = o.extra;
  const bool symmetric = e.activation_symmetric.value_or(false) || e.calib_tensor_range_symmetric;
  const CodeRange codes = code_range(o.activation_type, symmetric, false);
  switch (o.calibrate_method) {
    case CalibrationMethod::entropy: return entropy_range(h, e.calib_num_quantized_bins, codes.high - codes.low, symmetric);
    case CalibrationMethod::percentile: return percentile_range(h, e.calib_percentile);
    case CalibrationMethod::distribution: return distribution_range(h);
    case CalibrationMethod::mse: return mse_range(h, codes.high - codes.low, symmetric);
    case CalibrationMethod::minmax: break;
  }
  return h.range();
}

void check_settings(const QuantExtraOptions& e) {
  if (!(e.calib_percentile > 0 && e.calib_percentile <= 100)) {
    fail(ErrorCode::invalid_argument, "CalibPercentile is {}; expected more than 0 and at most 100", e.calib_percentile);
  }
  if (e.calib_num_bins < 16 || e.calib_num_bins > 1 << 20) {
    fail(ErrorCode::invalid_argument, "histograms must have 16 to 1048576 bins, received {}", e.calib_num_bins);
  }
  if (e.calib_num_quantized_bins < 2 || e.calib_num_quantized_bins > e.calib_num_bins) {
    fail(ErrorCode::invalid_argument, "CalibNumQuantizedBins is {}; expected 2 to {}", e.calib_num_quantized_bins,
         e.calib_num_bins);
  }
}

}  // namespace

Observed::Observed(const Model& model, const std::vector<std::string>& names, const QuantOptions& options)
    : session_(opened(model, names, options)) {}

Calibration calibrate(const Model& model, const std::vector<std::string>& names, CalibrationDataReader& data,
                      const StaticQuantOptions& options) {
  check_settings(options.extra);
  const Observed observed(model, names, options);
  Calibration out;
  std::vector<Extremes> extremes(names.size());
  const bool histograms = options.calibrate_method != CalibrationMethod::minmax;
  const auto smoothing = options.extra.calib_moving_average && !histograms
                             ? std::optional<double>(options.extra.calib_moving_average_constant)
                             : std::nullopt;
  out.batches = for_each_value(observed, names, data,
                               [&](std::size_t i, std::span<const float> values) { extremes[i].add(values, smoothing); });
  if (out.batches == 0) fail(ErrorCode::invalid_argument, "there is no calibration data: the reader returned no batch");
  std::vector<Histogram> counted;
  if (histograms) {
    for (const Extremes& e : extremes) counted.emplace_back(e.range(), options.extra.calib_num_bins);
    for_each_value(observed, names, data, [&](std::size_t i, std::span<const float> values) { counted[i].add(values); });
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!extremes[i].seen()) continue;
    Range r = histograms ? narrowed(counted[i], options) : extremes[i].range();
    if (options.extra.calib_tensor_range_symmetric) {
      r.high = std::max(-r.low, r.high);
      r.low = -r.high;
    }
    out.ranges[names[i]] = r;
    if (options.calibrate_method == CalibrationMethod::distribution) out.deviations[names[i]] = standard_deviation(counted[i]);
  }
  return out;
}

}  // namespace sdx::quantize
