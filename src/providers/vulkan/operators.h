#pragma once
// The operators that the provider has: whether a node can be run, and its dispatches.

#include <string>
#include <string_view>
#include <vector>

#include "providers/vulkan/emitter.h"

namespace sdx::vulkan {

// What is known of a node before shapes are.
class NodeFacts {
 public:
  NodeFacts(const Graph& graph, const Node& node, const std::vector<bool>& on_host)
      : graph_(graph), node_(node), on_host_(on_host) {}

  const Node& node() const { return node_; }
  std::size_t inputs() const { return node_.inputs.size(); }
  bool has(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNoValue; }
  bool wants(std::size_t output) const { return output < node_.outputs.size() && node_.outputs[output] != kNoValue; }
  const Type& type(std::size_t i) const { return graph_.value(node_.inputs[i]).type; }
  DataType elem(std::size_t i) const { return type(i).elem; }
  bool is_float(std::size_t i) const { return type(i).is_tensor() && elem(i) == DataType::float32; }
  // -1: unknown.
  int rank(std::size_t i) const { return type(i).shape ? static_cast<int>(type(i).shape->size()) : -1; }
  // The host will know the elements once it knows the shapes.
  bool on_host(std::size_t i) const { return has(i) && on_host_[node_.inputs[i]]; }
  // "not float32" where an input is of another type; else empty.
  std::string all_floats() const;
  // The same, and ranks that are known and at most kMostAxes.
  std::string all_floats_of_rank() const;

 private:
  const Graph& graph_;
  const Node& node_;
  const std::vector<bool>& on_host_;
};

struct Operator {
  std::string_view domain, name;
  std::string (*refusal)(const NodeFacts& node);  // why it cannot be run; empty: it can
  void (*emit)(Emitter& e, const Node& node);
};

using Operators = std::vector<Operator>;
void add_activations(Operators& all);
void add_attention(Operators& all);
void add_resize(Operators& all);
void add_arithmetic(Operators& all);
void add_convolutions(Operators& all);
void add_logic(Operators& all);
void add_movement(Operators& all);
void add_padding(Operators& all);
void add_pools(Operators& all);
void add_products(Operators& all);
void add_rows(Operators& all);
void add_views(Operators& all);

// Null: there is none.
const Operator* find_operator(const Node& node);

// For each value, whether the host knows its elements once it knows the shapes of the graph's inputs: constants, and what nodes
// compute from extents.
std::vector<bool> values_on_host(const Graph& graph);

// For each node, why it cannot be run; empty: it can.
std::vector<std::string> refusals(const Graph& graph);

// Whether all of the node's results are computed on the host, while a plan is made.
bool runs_on_host(const Node& node, const std::vector<bool>& on_host);

}  // namespace sdx::vulkan
