#pragma once
// The stages between a model file and a program.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "base/tools_api.h"
#include "cache/compiled_model.h"
#include "graph/graph.h"
#include "plan/program.h"
#include "session/open.h"
#include "session/selection.h"

namespace sdx::session {

// Numbers of arguments, attributes and declared types of every node, before anything is made of a graph that was only read.
// Throws Error naming the node, also for operators that this build does not know.
SDX_TOOLS_API void check_known(const Graph& graph);

// Checks every node against its operator's definition and infers types. Throws Error naming node and operator.
// Returns warnings about the model.
// `allow_unknown`: operators that this build does not know are let through, because a provider may know them.
std::vector<std::string> check_and_infer(Graph& graph, bool allow_unknown = false);

// Values for symbolic dimensions of the graph's inputs. Throws Error(invalid_argument) for a symbol that the model does not have.
SDX_TOOLS_API void bind_dimensions(Graph& graph, const std::vector<std::pair<std::string, std::int64_t>>& dimensions);

// Quantises where the options say so, inlines functions, settles nodes of training graphs, checks, infers, expands gradients;
// model.graph is then ready for passes. Appends to model.warnings. Returns whether the graph still computes with the file's
// operators alone.
SDX_TOOLS_API bool prepare(Model& model, const SessionOptions& options, bool allow_unknown = false,
                           const InternalOptions& internal = {});

// Facts about a graph's model that providers which compile regions need.
struct Origin {
  const Model* model = nullptr;
  const ModelSource* source = nullptr;                  // null: the graph differs from its file
  std::shared_ptr<const std::atomic<bool>> reject_nan;  // see ProviderSettings
  std::function<void(int)> compiling;                   // see form_regions(); may be empty
};

// Optimises a prepared graph and compiles it. Appends to `fallbacks` what a provider of the chain could not do. `recording`,
// where not null, receives the graph as it was lowered, and all packed weights.
SDX_TOOLS_API std::unique_ptr<plan::Program> compile(Graph graph, const Selection& selection, const SessionOptions& options,
                                                     const Origin& origin, std::vector<std::string>& fallbacks,
                                                     cache::Recording* recording = nullptr);

// Reads a program that an earlier compilation wrote. Null if it turns out to lack something that this build needs.
std::unique_ptr<plan::Program> load_compiled(const cache::CompiledModel& compiled, const Selection& selection,
                                             const SessionOptions& options);

// True when a provider of the chain compiles regions.
bool compiles_regions(const Selection& selection);

// The text of a stage: nodes with the provider that claims them.
std::string dump_claims(const Graph& graph, const Selection& selection);

}  // namespace sdx::session
