#pragma once
// Programs of graphs that the engine's own products make (arrays, steps of training): constant shapes, our own provider alone, no
// file behind.

#include <memory>

#include "base/tools_api.h"
#include "graph/graph.h"
#include "plan/program.h"

namespace sdx::session {

// Runs the passes, also those that join chains of elementwise operators, and lowers. The graph's types are inferred.
SDX_TOOLS_API std::unique_ptr<plan::Program> compile_for_cpu(Graph graph);

// Its two halves, for callers that add nodes in between which no pass may see.
SDX_TOOLS_API void optimize_for_cpu(Graph& graph);
SDX_TOOLS_API std::unique_ptr<plan::Program> lower_for_cpu(Graph graph);

}  // namespace sdx::session
