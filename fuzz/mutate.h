#pragma once
// Models that look valid: cases of ONNX's test data, changed node by node.

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <sdx/tensor.hpp>

#include "graph/graph.h"

namespace sdx::fuzz {

// Functions expanded, types inferred. `inputs` goes with graph.inputs(); an empty value stands for an input that is left out.
struct Example {
  Model model;
  std::vector<Value> inputs;
};

// The same numbers on every machine: distributions of the standard library differ.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(engine_() % n); }
  bool chance(int percent) { return below(100) < static_cast<std::size_t>(percent); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::size_t>(high - low + 1)));
  }
  template <class List>
  const auto& pick(const List& list) {
    return list[below(list.size())];
  }

 private:
  std::mt19937_64 engine_;
};

// Small numbers, now and then a wild one.
Tensor random_tensor(Random& random, DataType type, Shape shape);
// An integer at the edge of something.
std::int64_t edge(Random& random);

// Values that node `id` may read without a cycle, in order.
std::vector<ValueId> readable(const Graph& graph, NodeId id);
// Nodes that are not removed.
std::vector<NodeId> alive(const Graph& graph);

// Changes an example a few times. `others` gives another example for parts of it. What comes out may be wrong in any way, but can
// be walked: indices are in range and nodes in order.
class Mutator {
 public:
  Mutator(Random& random, std::function<const Example&()> others) : random_(random), others_(std::move(others)) {}

  // Returns the names of the changes.
  std::string mutate(Example& example, int changes);

  // lies.cc: makes declarations false, as the last change: inference would correct most of them.
  void lie(Example& example);

 private:
  bool step(Example& e, std::string& what);
  // The main graph, or now and then one inside it.
  Graph& some_graph(Graph& graph);

  // mutate.cc: single nodes and values.
  bool attribute(Graph& g);
  bool drop_attribute(Graph& g);
  bool swap_inputs(Graph& g);
  bool rewire(Graph& g);
  bool leave_out_input(Graph& g);
  bool leave_out_output(Graph& g);
  bool duplicate(Graph& g);
  bool operators(Graph& g);
  bool opset(Model& model);
  bool add_output(Graph& g);
  bool drop_output(Graph& g);
  bool constant_values(Graph& g);
  bool constant_type(Graph& g);
  bool input_type(Example& e);
  bool input_values(Example& e);
  bool unknown_extents(Example& e);
  bool freeze(Example& e);
  bool thaw(Example& e);

  // shape.cc: what passes and plans look for.
  bool view(Graph& g);
  bool follow(Graph& g);
  bool quantise(Graph& g);
  bool quantised_weights(Graph& g);
  bool through_half(Graph& g);
  bool narrow_all(Example& e);
  bool splice(Example& e);
  bool branch(Example& e);
  bool loop(Example& e);

  ValueId floats(Graph& g);  // a float32 value that a node makes; kNoValue: none
  // Whoever reads `v`, and the caller, read `instead` from now on; nodes that are added later may still read v.
  ValueId insert(Graph& g, ValueId v, const char* domain, const char* op, std::vector<ValueId> more, Attributes attributes,
                 Type type);

  Random& random_;
  std::function<const Example&()> others_;
  std::uint64_t counter_ = 0;
};

}  // namespace sdx::fuzz
