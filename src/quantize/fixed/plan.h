#pragma once
// Chooses the nodes that compute with quantised activations, and the values that are quantised for them.

#include <map>
#include <sdx/quantize.hpp>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace sdx::quantize {

// The treatment of an operator.
enum class StaticKind {
  none,
  weighted,   // Conv, ConvTranspose, Gemm, MatMul: weights, perhaps a bias
  mover,      // its result has the scale of its input: Reshape, MaxPool, …
  bounding,   // Relu, Clip: quantising its result does the same
  pointwise,  // all its operands and results have scales of their own: also operators that the table lacks, if the caller names
              // them
  norm,       // data and scale; the rest stays float
};
StaticKind static_kind(const Node& node);
// Operators that are quantised without being named, by name.
std::vector<std::string> static_operators();

struct StaticPlan {
  std::vector<bool> nodes;           // quantised, by NodeId
  std::vector<ValueId> activations;  // float values that become codes, in no order
  std::map<ValueId, ValueId> like;   // takes the scale of another
  bool contains(ValueId v) const { return chosen.contains(v); }
  std::set<ValueId> chosen;  // the activations
};

// Without op_types_to_quantize: products with constant weights and convolutions, and the nodes between them that gain by it. With
// them: exactly these operators, inputs and results, as ONNX Runtime's tool does it. The report notes the nodes that stay float.
StaticPlan plan_static(const Graph& graph, const StaticQuantOptions& options, QuantReport& report);

// float32 or float16.
bool has_floats(const Graph& graph, ValueId v);
// The scales of a value that DequantizeLinear gives from constant codes: it is quantised already. Empty: it is none.
std::vector<float> given_scales(const Graph& graph, ValueId v);
// The inputs of a node that are data; constants, quantised ones too, and all others (shapes, axes, bounds) are not.
std::vector<std::size_t> data_inputs(const Graph& graph, const Node& node);
// The axis along which weights of a weighted node have output channels.
std::int64_t channel_axis(const Node& node, std::size_t rank);

}  // namespace sdx::quantize
