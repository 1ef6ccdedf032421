#pragma once
// Models on their way to a quantised one.

#include <filesystem>
#include <sdx/quantize.hpp>
#include <string>

#include "graph/graph.h"
#include "session/open.h"

namespace sdx::quantize {

// Reads a model, inlines its functions, infers types; with options.preprocess folds what depends on constants alone and
// BatchNormalization, and writes Sum as Add. Constants of branches and loops are in these; inputs whose defaults are
// arrays become constants. All nodes of ai.onnx have one opset, at least `opset` where that can be done. Fills in the report's
// nodes, bytes_before and warnings.
Model read_for_quantizing(const std::filesystem::path& path, const QuantOptions& options, int opset, QuantReport& report);
// Exporters used to declare all weights as inputs with a default value: these become constants. Numbers alone stay inputs, which
// callers may set.
void keep_weights(Graph& graph);
// The same of a model that was read.
void prepare_for_quantizing(Model& model, const QuantOptions& options, int opset, QuantReport& report,
                            const session::InternalOptions& internal = {});

// All nodes of ai.onnx at this opset at least, where that can be done; a warning in the report says where it cannot.
void raise_opset(Model& model, int least, QuantReport& report);

// Drops dead nodes and constants, infers types again, writes the model and fills in the report's bytes_after. Throws
// Error(invalid_argument) where the output is the model itself.
void write_quantized(Model& model, const std::filesystem::path& output, const QuantOptions& options, QuantReport& report);
// The last steps of write_quantized() before it writes.
void finish_quantized(Model& model);

// The name by which options and reports know a node: its own, else that of its first output.
std::string node_name(const Graph& graph, const Node& node);

}  // namespace sdx::quantize
