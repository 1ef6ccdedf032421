#pragma once
// Computing values of the forward part again in the backward part instead of keeping them.

#include <vector>

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx::session {

// Nodes that make values below `forward` are the forward part, all others the backward part. What the backward part reads of
// values that are `wanted` (by value; may be shorter), and with `automatic` of those that are cheap to compute from what is kept
// anyway, it computes again; random and stateful operators never are. Such nodes
// have names that begin with kAgain (passes/pass.h). The graph is in order and left so; new values have the
// types of the old ones.
SDX_TOOLS_API void recompute(Graph& graph, ValueId forward, const std::vector<bool>& wanted, bool automatic);

}  // namespace sdx::session
