#pragma once
// Computing values of the forward part again in the backward part instead of keeping them.

#include <vector>

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx::session {

// Nodes that make values below `forward` are the forward part, all others the backward part. The backward part computes again the
// values that it reads and that are `wanted` (by value; may be shorter), and with `automatic` also those that are cheap to
// compute from values that are kept anyway. Random and stateful operators are never computed again. The new nodes have names that
// begin with kAgain (passes/pass.h). The graph is in order and left so; new values have the types of the old ones.
SDX_TOOLS_API void recompute(Graph& graph, ValueId forward, const std::vector<bool>& wanted, bool automatic);

}  // namespace sdx::session
