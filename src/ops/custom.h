#pragma once
// Operators of users' libraries (sdx/custom_op.h), seen from inside: definitions whose functions call the library.

#include <memory>
#include <string>
#include <vector>

#include <sdx/custom_op.h>

#include "graph/graph.h"
#include "ops/op.h"

namespace sdx::ops {

// A node of a room above whose operator brings its own runner. Thread-safe.
class CustomRunner {
 public:
  virtual ~CustomRunner() = default;
  // Throws Error.
  virtual void run(OpContext& context) const = 0;
};

// One operator of one library, or of a room above the engine (src/array), whose `def` runs it: then `functions` has no callback.
// Immutable; thread-safe.
struct CustomOp {
  OpDef def;                     // infer and run call the library
  sdx_op_definition functions;   // only the callbacks and user_data are valid: names and lists are in `def`
  std::string library;           // its path, for messages
  std::shared_ptr<void> handle;  // keeps the library loaded
  // If not null, makes the runner of a node, in place of `functions` and of `def.run`: once for each node when a graph is
  // compiled, with the types and constants that are known then. The graph outlives the runner. Throws Error.
  std::unique_ptr<CustomRunner> (*make)(const Graph& graph, const Node& node) = nullptr;
  // Input that output 0 may overwrite, or -1: for operators of rooms above that make all outputs with the inferred types, and
  // keep unchanged elements if both are one memory.
  int in_place = -1;
};

// The library's runner for one node, which is called again and again. As thread-safe as the library promises.
class CustomKernel {
 public:
  // Throws Error naming the library, with the failure or exception of its create().
  explicit CustomKernel(const Node& node);
  ~CustomKernel();
  CustomKernel(const CustomKernel&) = delete;
  CustomKernel& operator=(const CustomKernel&) = delete;

  // Throws Error for a failure or exception of run(), and for an output that it did not make.
  void run(OpContext& context) const;

 private:
  std::shared_ptr<const CustomOp> op_;
  void* kernel_ = nullptr;
};

// The gradient of a node, as nodes over names.
struct GradientNode {
  std::string domain, op_type;
  int version = 1;
  std::vector<std::string> inputs, outputs;
  Attributes attributes;
};
struct GradientNodes {
  std::vector<GradientNode> nodes;
  std::vector<std::string> of_inputs;  // by input: the name of its gradient; "" where it has none
};

// Names of the values around a node: "" where one is left out.
struct GradientNames {
  std::vector<std::string> inputs, outputs, of_outputs;
};

// The nodes that the library's gradient() emits for the node. Throws Error(not_implemented) if the operator has none; Error for
// failures that it reports, for nodes that read undefined names, and for names defined twice.
GradientNodes custom_gradient(const Node& node, const GradientNames& names);

// The operators that a registration function adds. `handle` is kept by each. Throws Error naming the library: what the function
// reports or throws, another ABI, definitions that make no sense, an operator that is built in or added twice.
std::vector<std::shared_ptr<const CustomOp>> register_custom(sdx_register_operators_fn function, const std::string& library,
                                                             const std::shared_ptr<void>& handle);

}  // namespace sdx::ops
