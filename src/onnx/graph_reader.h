#pragma once
// GraphProto and NodeProto. Shared by the model reader and by function inlining, which reads function bodies.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "tensor/pb.h"

namespace sdx::reading {

// Deeper nesting of graphs in graphs is refused; real models have three or four levels.
inline constexpr int kMaxGraphDepth = 64;

struct Scope;

// Takes nodes that call model-local functions.
class CallExpander {
 public:
  virtual ~CallExpander() = default;
  // Expands the call in place, adding nodes to scope.graph; false: the node is not a call.
  virtual bool expand(Scope& scope, const Node& call) = 0;
};

// State that all graphs of one model share.
struct State {
  PbSource source;
  std::int64_t ir_version = 0;
  std::map<std::string, int>* opsets = nullptr;  // the model's; gains the domains that are assumed
  std::set<std::string> function_domains;
  std::vector<std::string>* warnings = nullptr;
  CallExpander* expander = nullptr;
  // A small file can ask for much: captures that pass through 64 levels, functions that call others twice, attributes that every
  // node of a function copies. What may still be made, in nodes and in bytes beyond what the file itself spells out:
  std::size_t nodes_left = SIZE_MAX;
  std::size_t copies_left = std::size_t{256} << 20;
};

// One use of a function. Everything it points to outlives the expansion.
struct Instance {
  const Function* function = nullptr;
  const Node* call = nullptr;
  std::string prefix;                                     // for the names of inner values
  std::unordered_map<std::string_view, ValueId> outputs;  // formal outputs that already have a value
};

// The names that are visible at one level. `parent` is set for subgraphs, whose captures go to `subgraph`.
struct Scope {
  explicit Scope(Graph& g) : graph(g) {}
  Graph& graph;
  Scope* parent = nullptr;
  Subgraph* subgraph = nullptr;
  Instance* instance = nullptr;  // the function whose body this is part of
  int depth = 0;
  std::unordered_map<std::string_view, ValueId> names;
  std::unordered_map<std::string_view, std::string_view> declared;  // TypeProtos
};

// Fills scope.graph, which is empty. With scope.parent set, it is a subgraph.
void read_graph(State& state, Scope& scope, std::string_view message);

// Adds nodes to scope.graph. scope.names holds the values that they may read besides one another's outputs.
void read_nodes(State& state, Scope& scope, const std::vector<std::string_view>& messages);

// The value of that name, captured from enclosing graphs as needed; nullopt: there is none. kNoValue: a function's input that
// the call leaves out.
std::optional<ValueId> resolve(State& state, Scope& scope, std::string_view name);

}  // namespace sdx::reading
