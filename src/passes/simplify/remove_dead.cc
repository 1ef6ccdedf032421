#include <algorithm>

#include "passes/simplify/simplify.h"

namespace sdx::simplify {

bool remove_dead(Graph& graph) {
  std::vector<bool> needed(graph.values().size(), false);
  for (const ValueId v : graph.outputs()) needed[v] = true;
  bool changed = false;
  for (NodeId id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;) {
    Node& node = graph.node(id);
    if (node.removed) continue;
    const bool used =
        std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return v != kNoValue && needed[v]; });
    if (!used) {
      graph.remove_node(id);
      changed = true;
      continue;
    }
    for (const ValueId v : node.inputs) {
      if (v != kNoValue) needed[v] = true;
    }
    for (const Subgraph& s : node.subgraphs) {
      for (const ValueId v : s.captures) needed[v] = true;
    }
  }
  // Captures that the subgraph no longer reads would keep their producers alive for ever.
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    for (Subgraph& s : graph.node(id).subgraphs) {
      const auto users = s.graph->uses();
      const std::size_t formals = s.graph->inputs().size() - s.captures.size();
      for (std::size_t i = s.captures.size(); i-- > 0;) {
        const ValueId inner = s.graph->inputs()[formals + i];
        const auto& outs = s.graph->outputs();
        if (!users[inner].empty() || std::find(outs.begin(), outs.end(), inner) != outs.end()) continue;
        s.graph->remove_input(formals + i);
        s.captures.erase(s.captures.begin() + static_cast<std::ptrdiff_t>(i));
        changed = true;
      }
    }
  }
  return changed;
}

}  // namespace sdx::simplify
