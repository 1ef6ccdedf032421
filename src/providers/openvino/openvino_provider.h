#pragma once
// OpenVINO as a provider of ours, without ONNX Runtime between.

#include <string_view>

#include "providers/interface/provider.h"

namespace sdx::openvino {

// "openvino": OpenVINO's own C library; where that is not installed, ONNX Runtime's execution provider of this name, if there is
// one. Null for other names. Static lifetime.
const Provider* find(std::string_view name);

}  // namespace sdx::openvino
