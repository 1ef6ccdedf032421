#pragma once
// Nodes of ONNX Runtime's training graphs, made ready for inference.

#include "graph/graph.h"

namespace sdx {

// Not an optimisation. ONNX Runtime takes from a file's annotations how large the results of MaxPoolGrad and AveragePoolGrad are:
// such nodes get an input that says it, from the pooling that they are the gradient of, else from the annotation. Nodes that are
// others under another name (SplitTraining, ConcatTraining, ReduceSumTraining) become these. For graphs in order, before
// inference. Returns whether anything changed.
bool settle_training_nodes(Graph& graph);

}  // namespace sdx
