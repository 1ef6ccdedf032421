#pragma once
// Operators of users' libraries, for one session.

#include <filesystem>
#include <memory>
#include <vector>

#include "graph/graph.h"
#include "ops/custom.h"

namespace sdx::session {

using CustomOps = std::vector<std::shared_ptr<const ops::CustomOp>>;

// Loads the libraries, ours and those made for ONNX Runtime, and collects their operators. Throws Error naming the library: io
// (missing, no library), not_implemented (made for another version of the interface), what its registration reports, operators
// that two libraries add.
CustomOps load_custom_ops(const std::vector<std::filesystem::path>& libraries);

// Lets the nodes of the graph and its subgraphs that name one of the operators call it: of each operator the newest version that
// the opset of the node permits. Functions are inlined before, so that a model's own functions win. Throws Error(invalid_model)
// for an opset older than every version of the operator.
void bind_custom_ops(Graph& graph, const CustomOps& custom);

}  // namespace sdx::session
