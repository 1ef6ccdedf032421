#include "train/artifacts/model_edit.h"

#include <utility>

namespace sdx::train {

void take_name(Graph& graph, ValueId value, const std::string& name) {
  if (graph.value(value).name == name) return;
  if (const auto other = graph.find(name)) {
    std::string free = name + "_other";
    while (graph.find(free)) free += "_";
    graph.rename(*other, free);
  }
  graph.rename(value, name);
}

ValueId constant_to_input(Graph& graph, ValueId constant) {
  const std::string name = graph.value(constant).name;
  const Tensor tensor = *graph.value(constant).constant;
  const ValueId input = graph.add_input(name, Type::tensor(tensor.dtype(), to_sym(tensor.shape())));
  graph.replace_uses(constant, input);
  graph.value(constant).constant.reset();
  take_name(graph, input, name);
  return input;
}

ValueId add_op(Graph& graph, const char* op, int version, std::vector<ValueId> inputs, const std::string& output,
               Attributes attributes, const std::string& domain) {
  Node n;
  n.op_type = op;
  n.domain = domain;
  n.version = version;
  n.inputs = std::move(inputs);
  n.attributes = std::move(attributes);
  const ValueId out = graph.add_value(output);
  n.outputs = {out};
  graph.add_node(std::move(n));
  return out;
}

const Tensor* constant_of(const Graph& graph, ValueId value) {
  const ValueInfo& info = graph.value(value);
  if (info.constant && !info.is_input) return &*info.constant;
  if (info.producer == kNoNode) return nullptr;
  const Node& node = graph.node(info.producer);
  if (node.op_type != "Constant" || !node.domain.empty() || !node.attributes.has("value")) return nullptr;
  return &node.attributes.get_tensor("value");
}

}  // namespace sdx::train
