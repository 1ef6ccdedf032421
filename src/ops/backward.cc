#include "ops/backward.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "graph/edit.h"
#include "ops/gradient.h"
#include "ops/op.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

constexpr int kEmitted = 21;  // opset version of the nodes

// Nested graphs multiply nodes: a small file could ask for more than any machine holds.
constexpr std::size_t kMostNodes = 200'000;

class Backward {
 public:
  Backward(Graph& graph, const std::vector<ValueId>& xs, bool fused)
      : graph_(graph), xs_(xs), fused_(fused), depends_(depend_on(graph, xs)) {}

  std::vector<ValueId> run(const std::vector<Seed>& seeds) {
    const auto last = static_cast<NodeId>(graph_.nodes().size());
    for (const Seed& s : seeds) {
      if (depends_[s.value]) accumulate(s.value, s.gradient);
    }
    for (NodeId id = last; id-- > 0;) {
      if (!graph_.node(id).removed) go_back(id);
    }
    std::vector<ValueId> out;
    for (const ValueId x : xs_) out.push_back(gradient_of(x));
    return out;
  }

 private:
  ValueId gradient_of(ValueId v) const { return v < gradients_.size() ? gradients_[v] : kNoValue; }

  void accumulate(ValueId v, ValueId gradient) {
    if (gradients_.size() <= v) gradients_.resize(v + 1, kNoValue);
    const Type type = graph_.value(v).type;
    if (gradients_[v] != kNoValue) gradient = append_sum(graph_, gradients_[v], gradient, type);
    graph_.value(gradient).type = type;
    gradients_[v] = gradient;
  }

  void go_back(NodeId id) {
    if (graph_.nodes().size() > kMostNodes) fail(ErrorCode::out_of_memory, "the gradient needs more than {} nodes", kMostNodes);
    std::vector<ValueId> of_outputs;
    for (const ValueId v : graph_.node(id).outputs) of_outputs.push_back(v == kNoValue ? kNoValue : gradient_of(v));
    const auto given = [](ValueId v) { return v != kNoValue; };
    if (std::none_of(of_outputs.begin(), of_outputs.end(), given)) return;
    const std::vector<ValueId> reads = operands(graph_.node(id));
    std::vector<bool> wanted;
    for (const ValueId v : reads) wanted.push_back(v != kNoValue && depends_[v]);
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return;
    const std::vector<ValueId> results = emit_gradient(graph_, id, std::move(of_outputs), wanted, fused_);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i] != kNoValue && wanted[i]) accumulate(reads[i], results[i]);
    }
  }

  Graph& graph_;
  const std::vector<ValueId>& xs_;
  bool fused_;
  std::vector<bool> depends_;       // by value
  std::vector<ValueId> gradients_;  // by value; kNoValue: none so far
};

ValueId item_zeros(Graph& graph, ValueId v, DataType elem) {
  Tensor zero(elem, {});
  set_element(zero, 0, 0.0);
  const ValueId shape = append_node(graph, "Shape", {v});
  return append_node(graph, "Expand", {graph.add_constant("gradient_constant", std::move(zero)), shape});
}

DataType items_of(const Type& sequence) {
  const Type item = sequence.inner ? *sequence.inner : Type{};
  if (!item.is_tensor() || item.elem == DataType::undefined) {
    fail(ErrorCode::not_implemented, "the gradient of a value whose type, {}, is not fully known", sequence.str());
  }
  return item.elem;
}

}  // namespace

ValueId append_map(Graph& graph, const std::vector<ValueId>& sequences, DataType elem,
                   const std::function<ValueId(Graph&, const std::vector<ValueId>&)>& fill) {
  Subgraph body;
  body.attribute = "body";
  body.graph = std::make_unique<Graph>();
  std::vector<ValueId> items;  // they may differ in shape
  for (std::size_t i = 0; i < sequences.size(); ++i) items.push_back(body.graph->add_input("item", Type::tensor(elem)));
  body.graph->add_output(fill(*body.graph, items));
  Node n = make_node({}, "SequenceMap", kEmitted, sequences);
  n.subgraphs.push_back(std::move(body));
  return add_node(graph, std::move(n), "gradient");
}

ValueId append_node(Graph& graph, const char* op, std::vector<ValueId> inputs) {
  return add_node(graph, make_node({}, op, kEmitted, std::move(inputs)), "gradient");
}

ValueId append_zeros(Graph& graph, ValueId v) {
  const Type type = graph.value(v).type;
  if (type.kind == Type::Kind::sequence) {
    const DataType elem = items_of(type);
    const auto zeros = [&](Graph& g, const std::vector<ValueId>& items) { return item_zeros(g, items[0], elem); };
    const ValueId out = append_map(graph, {v}, elem, zeros);
    graph.value(out).type = type;
    return out;
  }
  if (!type.is_tensor() || type.elem == DataType::undefined) {
    fail(ErrorCode::not_implemented, "the gradient of '{}', which is {}; expected a tensor or sequence of floats",
         graph.value(v).name, type.str());
  }
  const ValueId out = item_zeros(graph, v, type.elem);
  graph.value(out).type = type;
  return out;
}

ValueId append_sum(Graph& graph, ValueId a, ValueId b, const Type& type) {
  if (type.kind != Type::Kind::sequence) return append_node(graph, "Add", {a, b});
  const auto add = [](Graph& g, const std::vector<ValueId>& items) { return append_node(g, "Add", items); };
  return append_map(graph, {a, b}, items_of(type), add);
}

bool has_derivative(const Type& type) {
  if (type.kind == Type::Kind::sequence || type.kind == Type::Kind::optional) return !type.inner || has_derivative(*type.inner);
  return !type.is_tensor() || type.elem == DataType::undefined || (types::floats & bit(type.elem)) != 0;
}

std::vector<ValueId> append_backward(Graph& graph, const std::vector<Seed>& seeds, const std::vector<ValueId>& xs, bool fused) {
  return Backward(graph, xs, fused).run(seeds);
}

std::vector<bool> depend_on(const Graph& graph, const std::vector<ValueId>& xs) {
  std::vector<bool> depends(graph.values().size(), false);
  for (const ValueId x : xs) depends[x] = true;
  for (const Node& n : graph.nodes()) {
    if (n.removed) continue;
    const std::vector<ValueId> reads = operands(n);
    if (std::none_of(reads.begin(), reads.end(), [&](ValueId v) { return v != kNoValue && depends[v]; })) continue;
    for (const ValueId v : n.outputs) {
      if (v != kNoValue && has_derivative(graph.value(v).type)) depends[v] = true;
    }
  }
  return depends;
}

std::vector<bool> needed_for(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<bool> needed(graph.values().size(), false);
  for (const ValueId v : values) needed[v] = true;
  for (auto id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;) {
    const Node& n = graph.node(id);
    if (n.removed || std::none_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) { return v != kNoValue && needed[v]; })) {
      continue;
    }
    for (const ValueId v : operands(n)) {
      if (v != kNoValue) needed[v] = true;
    }
  }
  return needed;
}

}  // namespace sdx::ops
