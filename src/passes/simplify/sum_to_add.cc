#include "graph/edit.h"
#include "passes/simplify/simplify.h"

namespace sdx::simplify {
namespace {

bool splittable(const Graph& graph, const Node& n) {
  if (!is_op(n, "Sum") || n.inputs.size() < 2) return false;
  const DataType type = graph.value(n.outputs[0]).type.elem;
  // Sums of three and more halves would round more often than the operator does.
  return type == DataType::float32 || type == DataType::float64 || (n.inputs.size() == 2 && type != DataType::undefined);
}

}  // namespace

bool sum_to_add(Graph& graph) {
  bool changed = false;
  const std::size_t count = graph.nodes().size();
  for (NodeId id = 0; id < count; ++id) {
    if (!splittable(graph, graph.node(id))) continue;
    const Node sum = graph.node(id);
    graph.remove_node(id);
    ValueId left = sum.inputs[0];
    for (std::size_t i = 1; i < sum.inputs.size(); ++i) {
      const bool last = i + 1 == sum.inputs.size();
      left = add_node(graph, make_node(sum.name, "Add", sum.version, {left, sum.inputs[i]}),
                      last ? sum.outputs[0] : graph.add_value(graph.value(sum.outputs[0]).name + "_" + std::to_string(i)));
    }
    changed = true;
  }
  return changed;
}

}  // namespace sdx::simplify
