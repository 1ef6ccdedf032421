#pragma once
// Weights in 8 bits, inputs quantised as they come.

#include "graph/graph.h"
#include "quantize/model/edit.h"

namespace sdx::quantize {

// Rewrites the nodes that `options` choose; the graph is as prepare_for_quantizing() leaves it. Throws Error(invalid_argument)
// for types of weights other than 8-bit integers, and for unknown names.
void make_dynamic(Model& model, const DynamicQuantOptions& options, QuantReport& report);

// The operators that make_dynamic() knows, by name.
std::vector<std::string> dynamic_operators();

// Quantises tables that Gather takes rows of, if the options name no operators and weights have 8 bits: rows are bytes, and
// become floats when they are taken. Also part of static quantisation.
void shrink_tables(Model& model, const QuantOptions& options, QuantReport& report);

}  // namespace sdx::quantize
