#pragma once
// The stages between a model file and a program.

#include <memory>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "graph/graph.h"
#include "plan/program.h"
#include "session/selection.h"

namespace sdx {

// Checks every node against its operator's definition and infers types. Throws Error naming node and operator.
// Returns warnings about the model.
std::vector<std::string> check_and_infer(Graph& graph);

// Values for symbolic dimensions of the graph's inputs. Throws Error(invalid_argument) for a symbol that the model does not have.
void bind_dimensions(Graph& graph, const std::vector<std::pair<std::string, std::int64_t>>& dimensions);

// Inlines functions, checks, infers; model.graph is then ready for passes. Appends to model.warnings.
void prepare(Model& model, const SessionOptions& options);

// Optimises a prepared graph and compiles it.
std::unique_ptr<Program> compile(Graph graph, const Selection& selection, const SessionOptions& options);

// The text of a stage: nodes with the provider that claims them.
std::string dump_claims(const Graph& graph, const Selection& selection);

}  // namespace sdx
