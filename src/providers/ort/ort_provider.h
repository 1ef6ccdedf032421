#pragma once
// Execution providers of ONNX Runtime's shared library as providers of ours.

#include <string_view>

#include "providers/interface/provider.h"

namespace sdx::ort {

// "cuda" or "ort:cuda": the same behind either name. Any name of provider_names(). Static lifetime.
const Provider* find(std::string_view name);

// The nodes that a failed session is about, with the reason: ONNX Runtime names operator or node in its message. Empty when the
// message speaks of none. Exposed for tests.
std::vector<std::pair<NodeId, std::string>> blamed_nodes(const Graph& graph, const std::string& message);

}  // namespace sdx::ort
