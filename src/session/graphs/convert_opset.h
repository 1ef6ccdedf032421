#pragma once
// One opset for a whole graph: what a file may import.

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx::session {

// Nodes of ai.onnx, also in subgraphs, become nodes of version `target` that compute the same: attributes that became inputs
// move, meanings that changed are written out. The graph is in order and its types are inferred; they are to be inferred again
// afterwards. Throws Error(not_implemented) naming a node that there is no rule for; the graph is then of no use.
SDX_TOOLS_API void convert_opset(Graph& graph, int target);

}  // namespace sdx::session
