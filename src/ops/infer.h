#pragma once
// Type and shape inference over a whole graph.

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/tools_api.h"
#include "graph/graph.h"
#include "ops/op.h"

namespace sdx::ops {

struct InferOptions {
  // Run the reference kernels of deterministic operators whose inputs are all known, when their outputs have at most this many
  // elements in all: this is what resolves shape computations. 0 switches it off.
  std::int64_t fold_elements = 1024;
  // Nodes whose operator this build does not know get the element types that the file declares, instead of an error: a provider
  // may know the operator.
  bool allow_unknown = false;
  // Declarations in subgraphs and of inner values count where inference finds less, also their shapes.
  bool trust_declarations = false;
};

// Nodes of this domain stand for parts of the graph that a provider compiled: their outputs have the types declared for them.
inline constexpr const char* kRegionDomain = "sdx.region";

// Throws the Error(not_implemented | invalid_model) for a node whose operator this build does not know.
[[noreturn]] void unknown_operator(const Node& node);

// The knowledge of inference beyond the types stored in the graph.
struct InferResult {
  std::vector<Type> types;                     // by ValueId
  std::unordered_map<ValueId, Tensor> values;  // known values that are not constants of the graph, aligned
  std::vector<std::string> warnings;           // declared shapes that inference contradicts
};

// A file's declarations for inner values, for outputs and for the inputs of subgraphs may be stale: only their element type is
// used, and only if inference does not find it.

// Types of all values, from the types of graph.inputs() given here (in that order; merged with the declared ones). The graph's
// nodes must be in order. Does not change the graph. Throws Error(invalid_model | not_implemented) naming the node.
// `input_values` (optional; parallel to the inputs, null where unknown) lets a caller bind known input values.
InferResult infer(const Graph& graph, const std::vector<Type>& input_types, const InferOptions& options = {},
                  const std::vector<const Tensor*>& input_values = {});

class InferEngine;

// Inference that is repeated for other input types, such as each new length of a text: nodes are inferred again only where the
// type or the known elements of an input have changed since the last call. The graph must outlive it and stay as it is. Not
// thread-safe.
class Inference {
 public:
  explicit Inference(const Graph& graph, const InferOptions& options = {});
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;
  ~Inference();

  // Infers like infer(); the reference is valid until the next call. After an Error, everything is inferred again.
  const InferResult& update(const std::vector<Type>& input_types);
  // For each ValueId, whether its type or known elements differ from the result of the call before the last. All true after the
  // first call.
  const std::vector<char>& changed() const;

 private:
  std::unique_ptr<InferEngine> engine_;
};

// infer() with the declared input types; stores the types in the graph and in its subgraphs, and returns the warnings.
SDX_TOOLS_API std::vector<std::string> infer_in_place(Graph& graph, const InferOptions& options = {});

}  // namespace sdx::ops
