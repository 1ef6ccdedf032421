#pragma once
// OpenVINO as a provider of ours, without ONNX Runtime between.

#include "providers/interface/provider.h"

namespace sdx::openvino {

// "openvino": OpenVINO's own C library; where that is not installed, ONNX Runtime's execution provider of this name, if there is
// one. Static lifetime.
const Provider& provider();

}  // namespace sdx::openvino
