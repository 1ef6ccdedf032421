#pragma once
// Converts a whole graph to one opset, as a file may import only one.

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx::session {

// Turns nodes of ai.onnx, also in subgraphs, into equivalent nodes of version `target`: attributes that became inputs move, and
// changed meanings are written out. The graph must be in order, with inferred types; they must be inferred again afterwards.
// Throws Error(not_implemented) naming a node without a rule; the graph is then unusable.
SDX_TOOLS_API void convert_opset(Graph& graph, int target);

}  // namespace sdx::session
