#include "quantize/accuracy/sensitive.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace sdx::quantize {
namespace {

// Batches on which each layer is measured for itself.
constexpr std::int64_t kSearchBatches = 16;

}  // namespace

std::vector<Layer> sensitive_layers(const Model& prepared, std::vector<Layer> layers, const MakeQuantized& make,
                                    CalibrationDataReader& data, const QuantOptions& options) {
  const double most = *options.max_loss;
  const auto whole_loss = [&](const std::vector<std::string>& without) {
    return outputs_between(prepared, make({}, without), data, options).loss;
  };
  if (whole_loss({}) <= most) return {};
  const Recorded expected = record(prepared, data, options, kSearchBatches);
  for (Layer& l : layers) l.damage = outputs_against(make({l.name}, {}), expected, options).loss;
  std::stable_sort(layers.begin(), layers.end(), [](const Layer& a, const Layer& b) { return a.damage > b.damage; });
  const auto names = [&](std::size_t count) {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(layers[i].name);
    return out;
  };
  std::size_t low = 0, high = layers.size();  // `low` too few; `high` enough, as far as the recorded batches say
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (outputs_against(make({}, names(middle)), expected, options).loss <= most ? high : low) = middle;
  }
  while (whole_loss(names(high)) > most) {
    if (high == layers.size()) {
      fail(ErrorCode::invalid_argument, "the loss stays above {} even with all {} layers with weights in float", most,
           layers.size());
    }
    high = std::min(layers.size(), high + std::max<std::size_t>(1, high / 4));
  }
  layers.resize(high);
  return layers;
}

std::string damage_text(const Layer& layer) { return fmt::format("alone it costs {:.3g}", layer.damage); }

void check_measurable(const std::optional<double>& max_loss, bool measure_accuracy, const CalibrationDataReader* data) {
  if (max_loss && !(*max_loss >= 0)) fail(ErrorCode::invalid_argument, "a loss must be 0 or more, received {}", *max_loss);
  if (data != nullptr || (!max_loss && !measure_accuracy)) return;
  fail(ErrorCode::invalid_argument, "{} needs data: inputs of the model to run it on",
       max_loss ? "max_loss" : "measure_accuracy");
}

}  // namespace sdx::quantize
