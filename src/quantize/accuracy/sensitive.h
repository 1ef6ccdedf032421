#pragma once
// Layers that lose too much when they are quantised.

#include <functional>
#include <string>
#include <vector>

#include "quantize/accuracy/measure.h"

namespace sdx::quantize {

// A node that may stay float.
struct Layer {
  std::string name, op;
  double damage = 0;
};

// The quantised model, ready to run: of `only` these nodes (empty: all), and never of `without`.
using MakeQuantized = std::function<Model(const std::vector<std::string>& only, const std::vector<std::string>& without)>;

// Chooses those of `layers` that stay float, so that the loss on all data is at most `options.max_loss`. A search by halves keeps
// their number small; it begins with the layers that do the most damage, each measured by quantising it alone. Throws
// Error(invalid_argument) if the layers are not to blame.
std::vector<Layer> sensitive_layers(const Model& prepared, std::vector<Layer> layers, const MakeQuantized& make,
                                    CalibrationDataReader& data, const QuantOptions& options);

// For the report: "alone it costs 0.01".
std::string damage_text(const Layer& layer);

// Throws Error(invalid_argument) where `max_loss` or `measure_accuracy` are asked for and `data` is null, or the loss is none.
void check_measurable(const std::optional<double>& max_loss, bool measure_accuracy, const CalibrationDataReader* data);

}  // namespace sdx::quantize
