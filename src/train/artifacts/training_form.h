#pragma once
// Operators that do one thing in training and another in inference.

#include "graph/graph.h"

namespace sdx::train {

// Rewrites the graph for the training model. With `batch_statistics`, BatchNormalization whose running statistics are constants
// or inputs becomes com.microsoft BatchNormInternal, which normalises by the batch's statistics and updates the running ones in
// place; otherwise it still normalises by the running ones. Dropout drops, unless a constant of the model forbids it.
void to_training_form(Graph& graph, bool batch_statistics);

// One node of the above: BatchNormalization in training, with its inputs and what outputs of statistics it has.
void to_batch_norm_internal(Graph& graph, NodeId id);

// Rewrites the graph for the eval model and for inference: BatchNormalization has one output, and Dropout drops nothing.
void to_inference_form(Graph& graph);

// Values that are running statistics of BatchNormalization.
std::vector<ValueId> running_statistics(const Graph& graph);

}  // namespace sdx::train
