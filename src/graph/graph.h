#pragma once
// The intermediate representation: values and nodes are indices into sequences that grow.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/stable_vector.h"
#include "base/tools_api.h"
#include "graph/attribute.h"
#include "graph/type.h"

namespace sdx {

namespace ops {
struct CustomOp;  // ops/custom.h
}

using ValueId = std::uint32_t;
using NodeId = std::uint32_t;
inline constexpr ValueId kNoValue = 0xFFFFFFFF;  // an optional input or output that is left out
inline constexpr NodeId kNoNode = 0xFFFFFFFF;

class Graph;

// A graph attribute (If's branches, Loop's and Scan's body). The graph stands alone: what it takes from the enclosing graph
// is passed in explicitly. graph->inputs() are the formal inputs followed by one input per capture.
struct SDX_TOOLS_API Subgraph {
  std::string attribute;  // "then_branch", "body", …
  std::unique_ptr<Graph> graph;
  std::vector<ValueId> captures;  // values of the enclosing graph, in the order of the last inputs of `graph`

  Subgraph() = default;
  Subgraph(const Subgraph& other);
  Subgraph& operator=(const Subgraph& other);
  Subgraph(Subgraph&&) noexcept = default;
  Subgraph& operator=(Subgraph&&) noexcept = default;
};

struct Node {
  std::string name;              // may be empty; not unique
  std::string op_type;           // "Conv"
  std::string domain;            // "" is ai.onnx
  int version = 0;               // the opset version of `domain` that the model imports
  std::string overload;          // selects among model-local functions of one name (IR version 10)
  std::vector<ValueId> inputs;   // kNoValue: left out
  std::vector<ValueId> outputs;  // kNoValue: left out
  Attributes attributes;
  std::vector<Subgraph> subgraphs;
  bool removed = false;                         // tombstone: NodeIds stay valid until Graph::compact()
  std::shared_ptr<const ops::CustomOp> custom;  // the operator of a user's library that the node calls; null: one of the build

  const Subgraph* subgraph(std::string_view attribute) const;
};

struct ValueInfo {
  std::string name;  // unique within the graph; never empty
  Type type;         // inferred; before inference what the file declares
  Type declared;     // what the file declares
  NodeId producer = kNoNode;
  std::optional<Tensor> constant;  // an initializer, or a folded value; may be an unaligned view of the model file
  bool is_input = false;
};

// One graph. Copyable (tensors are shared). Not thread-safe while being changed. References to nodes and values stay valid while
// nodes and values are added, and end with compact() and drop_unused_values().
class SDX_TOOLS_API Graph {
 public:
  std::string name;

  const StableVector<ValueInfo>& values() const { return values_; }
  const StableVector<Node>& nodes() const { return nodes_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  ValueInfo& value(ValueId id) { return values_.at(id); }
  const ValueInfo& value(ValueId id) const { return values_.at(id); }
  Node& node(NodeId id) { return nodes_.at(id); }
  const Node& node(NodeId id) const { return nodes_.at(id); }

  // Adds a value; an empty or taken name gets a suffix to become unique.
  ValueId add_value(std::string name, Type type = {});
  ValueId add_input(std::string name, Type type);
  ValueId add_constant(std::string name, Tensor tensor);
  // Appends to outputs(). The same value may be an output more than once; `name` (default: the value's own) is what users
  // see, and stays when passes replace the value.
  void add_output(ValueId id, std::string name = {});
  void remove_output(std::size_t index);
  // Drops input number `index` from inputs(); the value stays.
  void remove_input(std::size_t index);
  // Reorders the inputs: input i becomes the previous input order[i]; `order` is a permutation.
  void permute_inputs(const std::vector<std::size_t>& order);
  std::optional<ValueId> find(std::string_view name) const;
  void rename(ValueId id, std::string name);

  // Takes the node in; sets its outputs' producer. Returns its id.
  NodeId add_node(Node node);
  // Tombstones the node and clears its outputs' producer. Uses of the outputs are the caller's business.
  void remove_node(NodeId id);
  // Every use of `from`, as node input, capture or graph output, becomes a use of `to`. Graph outputs keep their names.
  void replace_uses(ValueId from, ValueId to);
  // For each value, the nodes that read it (also through captures), in order, each once.
  std::vector<std::vector<NodeId>> uses() const;

  // Sorts nodes so that producers come first (stable) and drops tombstones. Returns old NodeId -> new (kNoNode: dropped).
  // Throws Error(invalid_model), naming the nodes, when there is a cycle.
  std::vector<NodeId> compact();
  // Drops values that nothing refers to. ValueIds change.
  void drop_unused_values();

  // Checks every invariant: indices in range, single producer, order, names, outputs produced, captures matching, subgraphs
  // likewise. Throws Error(internal) saying which is broken.
  void verify() const;

  // "node 'conv1' (Conv)"; nameless nodes are described by their first output.
  std::string describe(NodeId id) const;

  // The stable text form, one line per value and node; tests diff it. Constants above 8 elements show only their type.
  std::string dump() const;

 private:
  std::string unique_name(std::string name);

  StableVector<ValueInfo> values_;
  StableVector<Node> nodes_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<std::string> output_names_;
  std::map<std::string, ValueId, std::less<>> by_name_;
  std::uint64_t next_suffix_ = 0;
};

// A model-local function (ONNX FunctionProto). Its body's `attribute references` are kept by name.
struct Function {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;                           // without default
  std::vector<std::pair<std::string, AttributeValue>> defaults;  // with default
  std::map<std::string, int> opsets;
  // The serialised FunctionProto: instances are built from it for each call (src/onnx/functions.h).
  std::string bytes;
};

// A model file's content.
struct Model {
  Graph graph;
  std::int64_t ir_version = 0;
  std::string producer_name, producer_version, domain, doc;
  std::int64_t model_version = 0;
  std::map<std::string, int> opsets;  // domain ("" is ai.onnx) -> version
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<Function> functions;
  std::string path;  // where it was read from; "" for memory
  std::vector<std::string> warnings;
};

}  // namespace sdx
