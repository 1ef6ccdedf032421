#pragma once
// Models with scales that are known beforehand.

#include "graph/graph.h"
#include "quantize/calibration/observe.h"
#include "quantize/fixed/plan.h"

namespace sdx::quantize {

// The opset that QuantizeLinear needs for the options' types.
int opset_for(const StaticQuantOptions& options);

// Raises the model's opset where the values to be quantised need it: QuantizeLinear takes float16 from 19 on.
void settle_for(Model& model, const StaticQuantOptions& options, QuantReport& report);

// Names of the values whose ranges are to be found.
std::vector<std::string> observed_names(const Graph& graph, const StaticPlan& plan);

// Puts QuantizeLinear and DequantizeLinear around the planned nodes, quantises weights and biases, and drops activations that
// quantising does anyway. Values without a range stay float.
void make_qdq(Model& model, const StaticPlan& plan, const Calibration& calibration, const StaticQuantOptions& options,
              QuantReport& report);

// Turns nodes between DequantizeLinear and QuantizeLinear into QLinear operators. 8-bit types only.
void make_qoperator(Model& model);

// All of these in turn, and tables (see shrink_tables()), in the options' format.
void make_static(Model& model, const StaticPlan& plan, const Calibration& calibration, const StaticQuantOptions& options,
                 QuantReport& report);

// Throws Error(invalid_argument) for combinations that no operator has.
void check_static(const StaticQuantOptions& options);

}  // namespace sdx::quantize
