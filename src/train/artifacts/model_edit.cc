#include "train/artifacts/model_edit.h"

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

}  // namespace sdx::train
