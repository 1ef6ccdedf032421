#pragma once
// Rewriting a graph for other engines: with nothing but operators that they know.

#include <map>
#include <string>
#include <vector>

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx {

struct PortableOptions {
  bool basic = false;                                  // only ai.onnx, and what the graph has already
  std::vector<std::string> disabled;                   // names of passes to leave out; unknown ones are ignored
  const std::map<std::string, int>* opsets = nullptr;  // what the model imports, for which the nodes are written
};

// Runs the passes whose results ONNX can say, and those whose results com.microsoft can (not with `basic`). Fused operators that
// only this engine knows become ones that ONNX Runtime knows as well; where a pass leaves one that cannot, or a version of an
// operator that the model does not import, the graph stays as it was before this pass. Weights that the model keeps in integers
// stay in integers. Adds com.microsoft to `opsets`' domains by its nodes alone: write_model() imports it.
SDX_TOOLS_API void optimize_portably(Graph& graph, const PortableOptions& options);

}  // namespace sdx
