// Gradients of operators that other operators express: GradientContext::through().

#include <fmt/format.h>

#include <algorithm>

#include "graph/edit.h"
#include "ops/gradient.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

// Reverse accumulation over the nodes from `first` on.
class Back {
 public:
  Back(Graph& graph, NodeId first, bool fused)
      : graph_(graph), first_(first), end_(static_cast<NodeId>(graph.nodes().size())), fused_(fused) {}

  void depend_on(ValueId v) { depends_.push_back(v); }
  void seed(ValueId v, ValueId gradient) { accumulate(v, gradient); }

  void run() {
    for (NodeId id = first_; id < end_; ++id) {
      const Node& n = graph_.node(id);
      if (std::none_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) { return depends(v); })) continue;
      for (const ValueId v : n.outputs) {
        if (v != kNoValue && is_float(v)) depends_.push_back(v);
      }
    }
    for (NodeId id = end_; id-- > first_;) go_back(id);
  }

  ValueId gradient_of(ValueId v) const {
    const auto it = gradients_.find(v);
    return it == gradients_.end() ? kNoValue : it->second;
  }

 private:
  bool depends(ValueId v) const { return v != kNoValue && std::find(depends_.begin(), depends_.end(), v) != depends_.end(); }
  bool is_float(ValueId v) const { return (types::floats & bit(graph_.value(v).type.elem)) != 0; }

  void accumulate(ValueId v, ValueId gradient) {
    ValueId& sum = gradients_.emplace(v, kNoValue).first->second;
    if (sum != kNoValue) {
      gradient = add_node(graph_, make_node({}, "Add", 21, {sum, gradient}), "gradient");
    }
    graph_.value(gradient).type = graph_.value(v).type;
    sum = gradient;
  }

  void go_back(NodeId id) {
    const std::vector<ValueId> inputs = graph_.node(id).inputs;
    std::vector<ValueId> of_outputs;
    for (const ValueId v : graph_.node(id).outputs) of_outputs.push_back(v == kNoValue ? kNoValue : gradient_of(v));
    std::vector<bool> wanted;
    for (const ValueId v : inputs) wanted.push_back(depends(v));
    const auto there = [](ValueId v) { return v != kNoValue; };
    if (std::none_of(of_outputs.begin(), of_outputs.end(), there)) return;
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return;
    const std::vector<ValueId> results = emit_gradient(graph_, id, std::move(of_outputs), wanted, fused_);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i] != kNoValue && wanted[i]) accumulate(inputs[i], results[i]);
    }
  }

  Graph& graph_;
  NodeId first_, end_;
  bool fused_;
  std::vector<ValueId> depends_;  // few: the formula's own
  std::map<ValueId, ValueId> gradients_;
};

}  // namespace

// The types of the values that nodes from `first` on compute, which their gradients need.
void GradientContext::infer_from(NodeId first) {
  Graph part;
  std::map<ValueId, ValueId> inner;
  const auto known = [&](ValueId v) {
    if (v == kNoValue || inner.contains(v)) return;
    const ValueInfo& info = graph_.value(v);
    const Tensor* fixed = constant_of(graph_, v);
    inner[v] = fixed != nullptr ? part.add_constant(info.name, *fixed) : part.add_input(info.name, info.type);
  };
  const auto map_all = [&](std::vector<ValueId>& list) {
    for (ValueId& v : list) v = v == kNoValue ? v : inner.at(v);
  };
  for (NodeId id = first; id < graph_.nodes().size(); ++id) {
    Node copy = graph_.node(id);
    std::for_each(copy.inputs.begin(), copy.inputs.end(), known);
    for (const ValueId v : copy.outputs) {
      if (v != kNoValue) inner[v] = part.add_value(graph_.value(v).name);
    }
    map_all(copy.inputs);
    map_all(copy.outputs);
    part.add_node(std::move(copy));
  }
  infer_in_place(part);
  for (const auto& [outer, v] : inner) {
    if (part.value(v).producer != kNoNode) graph_.value(outer).type = part.value(v).type;
  }
}

void GradientContext::replace_by(const std::vector<Expr>& outputs) {
  for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
    if (node_.outputs[i] != kNoValue && (i >= outputs.size() || !outputs[i])) return;
  }
  graph_.remove_node(id_);
  for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
    if (node_.outputs[i] == kNoValue) continue;
    add_node(graph_, make_node({}, "Identity", 21, {outputs[i].id}), node_.outputs[i]);
  }
}

void GradientContext::through(const Formula& formula) {
  const auto first = static_cast<NodeId>(graph_.nodes().size());
  const std::vector<Expr> outputs = formula(*this);
  infer_from(first);
  Back back(graph_, first, fused_);
  for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
    if (wants(i)) back.depend_on(node_.inputs[i]);
  }
  replace_by(outputs);
  for (std::size_t i = 0; i < of_outputs_.size(); ++i) {
    if (of_outputs_[i] == kNoValue) continue;
    if (i >= outputs.size() || !outputs[i]) refuse(fmt::format("its output {}", i));
    back.seed(outputs[i].id, of_outputs_[i]);
  }
  back.run();
  std::vector<ValueId> done;  // a value that is several inputs has one gradient
  for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
    const ValueId v = node_.inputs[i];
    if (!wants(i) || std::find(done.begin(), done.end(), v) != done.end()) continue;
    done.push_back(v);
    results_[i] = back.gradient_of(v);
  }
}

}  // namespace sdx::ops
