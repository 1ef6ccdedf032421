#pragma once
// Shared by gradients of operators with graphs: a copy of the body that computes forward again and leads gradients back.

#include <utility>
#include <vector>

#include "ops/backward.h"
#include "ops/gradient.h"

namespace sdx::ops::flow {

// The copy has the values of the body, by the same ids, but none of its inputs: what of these the gradient needs is provided
// after prune(). So long as a value is neither provided nor an input, nothing computes it.
class Body {
 public:
  // `index`: the number of the subgraph of the context's node.
  Body(GradientContext& c, std::size_t index);

  Graph& graph() { return graph_; }
  std::size_t formals() const { return formals_.size(); }
  ValueId formal(std::size_t i) const { return formals_.at(i); }
  ValueId output(std::size_t i) const { return outputs_.at(i); }
  const Type& type(ValueId v) const { return graph_.value(v).type; }
  std::size_t captures() const { return captured_.size(); }
  ValueId captured(std::size_t j) const { return captured_.at(j); }        // inside
  ValueId outside(std::size_t j) const { return outside_.at(j); }          // of the enclosing graph
  std::size_t operand(std::size_t j) const { return first_operand_ + j; }  // of the node
  bool wanted(std::size_t j) const { return context_.wants(operand(j)); }

  // The captures whose gradients are wanted and were found, with these. The gradients of `sources` have the same places as the
  // sources.
  struct Found {
    std::vector<ValueId> sources;                           // kNoValue: none
    std::vector<std::pair<std::size_t, ValueId>> captures;  // number of the capture, gradient
  };
  Found back(const std::vector<Seed>& seeds, const std::vector<ValueId>& sources);

  // A value of the enclosing graph, inside.
  ValueId capture(ValueId outer);

  // Drops nodes that the graph's outputs do not need. Afterwards used() says which values that nothing computes are still read.
  void prune();
  bool used(ValueId v) const { return used_.at(v); }
  // Takes the outputs of random nodes that are still needed, because they cannot be computed again. Their nodes are dropped.
  std::vector<ValueId> take_random();
  // Defines `v` as the result of the node, or as `other`.
  void provide(ValueId v, const char* op, std::vector<ValueId> inputs);
  void provide(ValueId v, ValueId other) { provide(v, "Identity", {other}); }

  // Provides the captures that are used and hands over the finished graph.
  Subgraph finish(const char* attribute);

 private:
  void note_uses();

  GradientContext& context_;
  Graph graph_;
  std::vector<ValueId> formals_, outputs_, captured_, outside_;
  std::size_t first_operand_ = 0;
  NodeId own_nodes_ = 0;  // nodes below are the body's
  std::vector<bool> used_;
  std::vector<std::pair<ValueId, ValueId>> new_captures_;  // inside, outside
};

// The body of the node in the graph itself, to which the gradient adds further outputs.
Graph& own_body(GradientContext& c, std::size_t index);
// Appends an output, which is `v` of its body, and returns the new value outside.
ValueId add_result(GradientContext& c, std::size_t index, ValueId v, Type type);

}  // namespace sdx::ops::flow
