#pragma once
// The results of Loop and Scan if their body never ran: [0, ...] of elements whose shape is known from the model before anything
// is optimised. Passes learn more about a body and drop its declarations; the results must not depend on that.

#include <cstddef>

#include "graph/graph.h"
#include "ops/infer.h"

namespace sdx::ops {

// Notes at every Loop and Scan of the graph, at any depth, the types of the elements of its stacked outputs, as inferred with the
// help of all declarations in the bodies. True when there is such a node: inference then says less of its outputs than before.
bool note_element_types(Graph& graph, const InferOptions& options);

// The type of an element of the node's output number `output`, which is output number `formal` of its body, where the body
// never ran: the shape is the noted one, if there is any.
Type unrun_element(const Node& node, std::size_t body, std::size_t formal, std::size_t output);

// The type of an element of the node's output number `output` that holds whether the body runs or not.
Type element_of_any_run(const Node& node, std::size_t output, Type element);

}  // namespace sdx::ops
