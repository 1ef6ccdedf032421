#pragma once
// Operators that do one thing in training and another in inference.

#include "graph/graph.h"

namespace sdx::train {

// For the training model. With `batch_statistics`, BatchNormalization whose running statistics are constants or inputs becomes
// com.microsoft BatchNormInternal, which normalises by the batch's and updates the running ones in place; else it keeps
// normalising by the running ones. Dropout drops, unless the model says with a constant that it must not.
void to_training_form(Graph& graph, bool batch_statistics);

// One node of the above: BatchNormalization in training, with its inputs and what outputs of statistics it has.
void to_batch_norm_internal(Graph& graph, NodeId id);

// For the eval model and for inference: BatchNormalization of one output, Dropout that drops nothing.
void to_inference_form(Graph& graph);

// Values that are running statistics of BatchNormalization.
std::vector<ValueId> running_statistics(const Graph& graph);

}  // namespace sdx::train
