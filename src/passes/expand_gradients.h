#pragma once
// ai.onnx.preview.training Gradient nodes become the nodes that compute the gradients.

#include "graph/graph.h"

namespace sdx {

// Not an optimisation: nothing runs Gradient nodes themselves. The graph, of inferred types and nodes in order, is left so.
// Reverse accumulation over the nodes between xs and y; where an input of the node is not the value that xs or zs names, these
// nodes are repeated for it. Where y has several elements the gradient is that of their sum. Returns whether there was any.
// Throws Error(not_implemented) for a node on the way that has no gradient, Error(invalid_model) for names that the graph lacks.
bool expand_gradients(Graph& graph);

}  // namespace sdx
