#include <algorithm>

#include "ops/infer.h"
#include "passes/pass.h"
#include "passes/simplify/simplify.h"

namespace sdx::simplify {

bool fold_shapes(Graph& graph) {
  std::vector<Type> inputs;
  for (const ValueId v : graph.inputs()) inputs.push_back(graph.value(v).type);
  const ops::InferResult known = ops::infer(graph, inputs);
  if (known.values.empty()) return false;
  bool changed = false;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.node(id);
    if (node.removed || node.outputs.empty()) continue;
    const bool all = std::all_of(node.outputs.begin(), node.outputs.end(),
                                 [&](ValueId v) { return v == kNoValue || known.values.contains(v); });
    if (!all) continue;
    const std::vector<ValueId> results = node.outputs;
    graph.remove_node(id);
    for (const ValueId v : results) {
      if (v != kNoValue) graph.value(v).constant = known.values.at(v);
    }
    changed = true;
  }
  if (changed) sink_constants(graph);
  return changed;
}

}  // namespace sdx::simplify
