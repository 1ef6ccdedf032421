#pragma once
// Rewriting a graph before providers see it.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace sdx {

// A pass takes a graph whose nodes are in order and whose types are inferred, and leaves it so (new values may be untyped: types
// are inferred again after a pass that changed something). It is called for subgraphs separately, innermost first. Returns
// whether it changed anything.
struct Pass {
  std::string_view name;
  bool (*run)(Graph& graph);
  std::string_view what;  // one line for people
  bool layout = false;    // for the `cpu` provider's kernels alone; once, after all others
  bool late = false;      // once nothing else changes; the others then run again
};

// All passes, in the order in which they run.
std::span<const Pass> passes();

struct PassOptions {
  std::vector<std::string> disabled;  // names of passes to leave out; Error(invalid_argument) for an unknown name
  int max_rounds = 4;                 // the list is repeated until nothing changes, at most so often
  bool layout = false;                // run the layout passes too: the `cpu` provider will run the graph
};

// Runs the passes over the graph and its subgraphs. After each pass that changed something the graph is sorted, cleaned of unused
// values and its types are inferred again; debug and test builds verify it too.
void run_passes(Graph& graph, const PassOptions& options = {});

// Runs one pass by name, once; for tests and for looking at what a pass does.
bool run_pass(Graph& graph, std::string_view name);

// Not an optimisation, so always done: constants of the enclosing graph that a subgraph captures become constants of the
// subgraph.
void sink_constants(Graph& graph);

}  // namespace sdx
