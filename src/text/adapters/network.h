#pragma once
// LoRA adapters on networks that come as ONNX: products are found by their names.

#include <string>

#include "graph/graph.h"
#include "text/adapters/lora.h"

namespace sdx::text {

// The facts about such a network that read_adapters() must know. `past_key`: the name of a key cache's input, "" if there is
// none.
DecoderConfig config_for_adapters(const Graph& graph, const std::string& architecture, const std::string& past_key);

// Adds the adapters' products beside the network's own. These are MatMul and MatMulNBits nodes whose name, or whose weight's
// name, says which they are: "/model/layers.0/self_attn/q_proj/MatMul", "model.layers.0.q_proj.weight". Throws
// Error(invalid_model) for a weight that an adapter names and the network lacks, or that has another size.
void add_adapters(Model& model, const std::vector<LoraWeights>& adapters);

}  // namespace sdx::text
