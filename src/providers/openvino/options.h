#pragma once
// Options of the provider `openvino` and what they mean to OpenVINO.

#include <string>
#include <utility>
#include <vector>

#include "providers/interface/provider.h"

namespace sdx::openvino {

struct Settings {
  std::string device = "CPU";
  std::vector<std::pair<std::string, std::string>> properties;  // by OpenVINO's names
};

// Takes the names of ONNX Runtime's execution provider (device_type, precision, num_of_threads, num_streams, cache_dir) and, in
// capital letters, properties of OpenVINO itself, which win. Throws Error(invalid_argument) for an unknown name (with the closest
// match) or a value that cannot be.
Settings settings_of(const ProviderSettings& settings);

}  // namespace sdx::openvino
