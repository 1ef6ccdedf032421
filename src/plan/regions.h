#pragma once
// Parts of a graph that a provider compiles as one.

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "providers/interface/provider.h"

namespace sdx::plan {

// A provider with the session's settings for it.
struct ChosenProvider {
  const Provider* provider = nullptr;
  ProviderSettings settings;
};

struct CompiledRegion {
  std::unique_ptr<Kernel> kernel;
  std::string provider;
};

struct Regions {
  // The nodes that stand for them have domain ops::kRegionDomain and the index as attribute "region".
  std::vector<CompiledRegion> compiled;
  // "ort:cuda cannot compile 12 nodes: …": for the report.
  std::vector<std::string> failures;
  // Why nodes that stay in the graph are in no region, by the name of their first output.
  std::map<std::string, std::vector<Refusal>> refused;
};

// Gives each provider of the chain that compiles regions the nodes that it claims and that no earlier provider claims, in groups
// as large as the order of execution allows: a group may not need a result that in turn needs a result of the group. Each group
// that was compiled is replaced in `graph` by one node. Only the main graph is cut; a node with subgraphs belongs to a region
// with all that is in it, or not at all. `graph` has inferred types (where operators are known) and no tombstones. `model`: where
// it comes from. `source`: the file it was read from, or null when the graph differs from it. With `strict`, what a provider
// throws passes through; otherwise it becomes a failure and the nodes stay for the next provider. `compiling` is called with the
// place in the chain of the provider that compiles now, and with -1 when all are done.
Regions form_regions(Graph& graph, const Model& model, const ModelSource* source, std::span<const ChosenProvider> chain,
                     bool strict, const std::function<void(int)>& compiling = nullptr);

}  // namespace sdx::plan
