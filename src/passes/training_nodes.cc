#include "passes/training_nodes.h"

#include <optional>
#include <string>
#include <string_view>

#include "graph/edit.h"
#include "ops/training/ort/signatures.h"

namespace sdx {
namespace {

constexpr int kAdded = 13;  // opset version of Shape, and of what replaces nodes

// Finds the value by the names that ONNX Runtime gives to gradients: "x_grad" is that of x, and so is "x_grad_0", one of several
// that are added up.
ValueId value_of_gradient(const Graph& graph, ValueId gradient) {
  const std::string& name = graph.value(gradient).name;
  const std::size_t end = name.rfind("_grad");
  if (end == std::string::npos) return kNoValue;
  const auto found = graph.find(name.substr(0, end));
  return found && *found != gradient ? *found : kNoValue;
}

// The tensor whose shape the node's result has.
ValueId pooled_value(const Graph& graph, const Node& n) {
  if (n.op_type == "MaxPoolGrad") {
    const NodeId producer = n.inputs.size() > 1 && n.inputs[1] != kNoValue ? graph.value(n.inputs[1]).producer : kNoNode;
    if (producer != kNoNode && is_op(graph.node(producer), "MaxPool")) return graph.node(producer).inputs.at(0);
  }
  return n.outputs.empty() || n.outputs[0] == kNoValue ? kNoValue : value_of_gradient(graph, n.outputs[0]);
}

// The annotated shape, whose batch ONNX Runtime replaces by the gradient's.
std::optional<std::vector<std::int64_t>> annotated(const Graph& graph, const Node& n) {
  if (n.outputs.empty() || n.outputs[0] == kNoValue) return std::nullopt;
  const ValueInfo& out = graph.value(n.outputs[0]);
  const Type& t = out.type.is_tensor() && out.type.shape ? out.type : out.declared;
  if (!t.is_tensor() || !t.shape || t.shape->size() < 3) return std::nullopt;
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < t.shape->size(); ++i) {
    const Dim& d = (*t.shape)[i];
    if (i >= 2 && !d.is_const()) return std::nullopt;
    shape.push_back(d.is_const() ? d.value() : 0);
  }
  return shape;
}

bool settle_pool(Graph& graph, NodeId id) {
  const Node n = graph.node(id);
  const bool max = n.op_type == "MaxPoolGrad";
  const std::size_t slot = max ? std::size_t{ops::MaxPoolGradIn::kShape} : std::size_t{ops::AveragePoolGradIn::kShape};
  if (n.inputs.size() != slot || n.attributes.has("input_shape")) return false;
  if (const ValueId pooled = pooled_value(graph, n); pooled != kNoValue) {
    const ValueId result = add_node(graph, make_node({}, "Shape", kAdded, {pooled}), graph.value(pooled).name + "_shape");
    graph.node(id).inputs.push_back(result);
    return true;
  }
  const auto shape = annotated(graph, n);
  if (shape) graph.node(id).attributes.set("input_shape", *shape);
  return shape.has_value();
}

// Source: ONNX Runtime's schemas of these nodes, which differ from ai.onnx in the domain alone.
bool rename(Node& n) {
  if (n.domain != "com.microsoft") return false;
  const bool concat = n.op_type == "ConcatTraining" && (n.outputs.size() < 2 || n.outputs[1] == kNoValue);
  if (!concat && n.op_type != "SplitTraining" && n.op_type != "ReduceSumTraining") return false;
  n.domain.clear();
  n.op_type.resize(n.op_type.size() - std::string_view("Training").size());
  n.version = kAdded;
  if (concat) n.outputs.resize(1);
  return true;
}

}  // namespace

bool settle_training_nodes(Graph& graph) {
  bool changed = false;
  bool added = false;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    Node& n = graph.node(id);
    if (n.removed) continue;
    for (Subgraph& s : n.subgraphs) changed = settle_training_nodes(*s.graph) || changed;
    changed = rename(n) || changed;
    if (is_op(n, "MaxPoolGrad") || is_op(n, "AveragePoolGrad")) added = settle_pool(graph, id) || added;
  }
  if (added) graph.compact();
  return changed || added;
}

}  // namespace sdx
