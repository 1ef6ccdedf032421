#include "train/artifacts/transfer.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "ops/infer.h"
#include "train/artifacts/model_edit.h"
#include "train/artifacts/random_values.h"

namespace sdx::train {
namespace {

bool passes_on(const Node& n) {
  return n.op_type == "Softmax" || n.op_type == "LogSoftmax" || n.op_type == "Sigmoid" || n.op_type == "Identity" ||
         n.op_type == "Reshape" || n.op_type == "Squeeze" || n.op_type == "Cast";
}

struct Layer {
  NodeId product = kNoNode, sum = kNoNode;  // sum: the Add of the bias behind a MatMul
  std::size_t bias_input = 0;               // of the sum
};

Layer last_layer(const Graph& graph, ValueId scores) {
  Layer layer;
  ValueId v = scores;
  for (std::size_t steps = 0; steps < graph.nodes().size(); ++steps) {
    const NodeId id = graph.value(v).producer;
    if (id == kNoNode) break;
    const Node& n = graph.node(id);
    if (is_op(n, "Gemm") || is_op(n, "MatMul")) {
      layer.product = id;
      return layer;
    }
    if (is_op(n, "Add") && layer.sum == kNoNode) {
      const std::vector<ValueId>& in = n.inputs;
      const std::size_t bias = fixed_value(graph, in[1]) != nullptr ? 1 : 0;
      if (fixed_value(graph, in[bias]) == nullptr) break;
      layer.sum = id;
      layer.bias_input = bias;
      v = in[1 - bias];
      continue;
    }
    if (!passes_on(n) || layer.sum != kNoNode) break;
    v = n.inputs.at(0);
  }
  fail(ErrorCode::invalid_argument,
       "head_classes: '{}' does not come from a Gemm, or a MatMul with an Add, which a new head could replace",
       graph.value(scores).name);
}

ValueId replace_constant(Graph& graph, NodeId id, std::size_t input, Tensor tensor) {
  const std::string name = graph.value(graph.node(id).inputs.at(input)).name;
  const ValueId fresh = graph.add_constant(name, std::move(tensor));
  graph.node(id).inputs[input] = fresh;
  take_name(graph, fresh, name);
  return fresh;
}

Tensor new_weights(const Shape& shape, std::int64_t inputs, std::uint64_t seed, const std::string& name) {
  Tensor t(DataType::float32, shape);
  RandomValues random(seed, name);
  const double bound = inputs > 0 ? 1 / std::sqrt(static_cast<double>(inputs)) : 0;
  for (float& f : t.mutable_values<float>()) f = static_cast<float>(random.uniform(-bound, bound));
  return t;
}

Tensor zeros(std::int64_t n) {
  Tensor t(DataType::float32, {n});
  for (float& f : t.mutable_values<float>()) f = 0;
  return t;
}

}  // namespace

std::vector<std::string> replace_head(Graph& graph, ValueId scores, std::int64_t classes, std::uint64_t seed) {
  if (classes < 1) fail(ErrorCode::invalid_argument, "head_classes: {}; expected at least 1", classes);
  const Layer layer = last_layer(graph, scores);
  const Node product = graph.node(layer.product);
  const Tensor* const old = fixed_value(graph, product.inputs.at(1));
  if (old == nullptr || old->shape().size() != 2 || old->dtype() != DataType::float32) {
    fail(ErrorCode::invalid_argument, "head_classes: the weights of {} are not a constant of float32[n,m]",
         graph.describe(layer.product));
  }
  const bool transposed = product.op_type == "Gemm" && product.attributes.get_int("transB", 0) != 0;
  const std::int64_t inputs = old->shape()[transposed ? 1 : 0];
  const Shape shape = transposed ? Shape{classes, inputs} : Shape{inputs, classes};
  const std::string name = graph.value(product.inputs[1]).name;
  std::vector<std::string> names{name};
  replace_constant(graph, layer.product, 1, new_weights(shape, inputs, seed, name));
  const bool gemm_bias = product.op_type == "Gemm" && product.inputs.size() > 2 && product.inputs[2] != kNoValue;
  if (gemm_bias || layer.sum != kNoNode) {
    const NodeId id = gemm_bias ? layer.product : layer.sum;
    const ValueId bias = replace_constant(graph, id, gemm_bias ? 2 : layer.bias_input, zeros(classes));
    names.push_back(graph.value(bias).name);
  }
  graph.compact();
  ops::infer_in_place(graph);
  return names;
}

}  // namespace sdx::train
