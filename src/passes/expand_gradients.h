#pragma once
// Reverse accumulation: the nodes that compute gradients, in place of ai.onnx.preview.training Gradient nodes or beside a loss.

#include <span>
#include <utility>
#include <vector>

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx {

// Not an optimisation: nothing runs Gradient nodes themselves. The graph, of inferred types and nodes in order, is left so.
// Reverse accumulation over the nodes between xs and y; where an input of the node is not the value that xs or zs names, these
// nodes are repeated for it. Where y has several elements the gradient is that of their sum. Returns whether there was any.
// Throws Error(not_implemented) for a node on the way that has no gradient, Error(invalid_model) for names that the graph lacks.
bool expand_gradients(Graph& graph);

struct GradientOptions {
  // Operators of com.microsoft that do a gradient in one node (ConvGrad, LayerNormalizationGrad, …) where there is one. They have
  // no gradients themselves.
  bool fused = false;
  // The gradient of y, shaped like it; none: ones.
  ValueId seed = kNoValue;
  // Further values that count, each with its gradient.
  std::vector<std::pair<ValueId, ValueId>> also;
};

// Adds the nodes that compute the gradients of y (where it has several elements: of their sum, or of what `seed` weighs them
// with) by the values xs, and returns the gradients; kNoValue for an x on which y does not depend. What lies behind an x does not
// matter. Forward nodes may gain outputs. The graph, of inferred types and nodes in order and without Gradient nodes, is left so;
// ValueIds stay, NodeIds change. Throws as above.
SDX_TOOLS_API std::vector<ValueId> append_gradients(Graph& graph, ValueId y, std::span<const ValueId> xs,
                                                    const GradientOptions& options = {});

}  // namespace sdx
