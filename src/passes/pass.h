#pragma once
// Rewriting a graph before providers see it.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx {

// Names of nodes that compute something a second time begin so, to keep less in memory meanwhile: they are not shared with the
// first ones.
inline constexpr std::string_view kAgain = "again/";

// A pass takes a graph whose nodes are in order and whose types are inferred, and leaves it so (new values may be untyped: types
// are inferred again after a pass that changed something). It is called for subgraphs separately, innermost first. Returns
// whether it changed anything.
struct Pass {
  std::string_view name;
  bool (*run)(Graph& graph);
  std::string_view what;  // one line for people
  bool late = false;      // once nothing else changes; the others then run again
};

// The passes for every provider, in the order in which they run. A provider may bring more: Provider::passes().
std::span<const Pass> passes();

// Throws Error(invalid_argument), with the closest match, where the list has none of that name.
const Pass& find_pass(std::string_view name, std::span<const Pass> list = passes());

struct PassOptions {
  std::vector<std::string> disabled;  // names of passes to leave out; unknown ones are ignored
  int max_rounds = 4;                 // the list is repeated until nothing changes, at most so often
  std::span<const Pass> last;         // run once after all others: the provider's own that will run the graph
};

// Runs the passes over the graph and its subgraphs. After each pass that changed something, the graph is sorted, cleaned of
// unused values, and its types are inferred again; debug and test builds verify it, too.
SDX_TOOLS_API void run_passes(Graph& graph, const PassOptions& options = {});

// Runs one pass once, for tests and for looking at what it does.
bool run_pass(Graph& graph, const Pass& pass);

// Not an optimisation, so always done: constants of the enclosing graph that a subgraph captures become constants of the
// subgraph.
SDX_TOOLS_API void sink_constants(Graph& graph);

}  // namespace sdx
