// Sums of products of bytes that become floats, as quantising tools write them for other engines to join.

#include "passes/fuse/fuse.h"
#include "passes/fuse/match.h"

namespace sdx::fuse {
namespace {

constexpr ValueId kNone = kNoValue;

bool is_single(const Graph& g, ValueId v) {
  const SymShape* s = shape_of(g, v);
  return s != nullptr && s->size() <= 1 && (s->empty() || s->front() == Dim(1));
}

// A float32 constant with a number for each column.
bool is_row(const Graph& g, ValueId v, std::int64_t columns) {
  const Tensor* t = constant_value(g, v);
  return t != nullptr && t->dtype() == DataType::float32 && t->rank() == 1 && t->size() == columns;
}

bool is_scale(const Graph& g, ValueId v, std::int64_t columns) {
  const Tensor* t = constant_value(g, v);
  return t != nullptr && t->dtype() == DataType::float32 && t->rank() <= 1 && (t->size() == 1 || t->size() == columns);
}

// The node that alone reads the value, if it is an operator of two operands; `other` is the second one.
NodeId reader(const Graph& g, ValueId v, std::string_view op, const Uses& uses, ValueId& other) {
  const NodeId id = only_reader(g, v, uses);
  if (id == kNoNode || !is_binary(g.node(id), op) || g.node(id).inputs[0] == g.node(id).inputs[1]) return kNoNode;
  other = g.node(id).inputs[g.node(id).inputs[0] == v ? 1 : 0];
  return id;
}

bool fuse(Graph& g, NodeId id, const Uses& uses) {
  // A copy only of what it is about: other nodes may hold whole subgraphs.
  if (const Node& any = g.node(id); any.removed || !any.domain.empty() || any.op_type != "MatMulInteger") return false;
  const Node n = g.node(id);
  if (n.outputs[0] == kNone) return false;
  const auto input = [&](std::size_t i) { return i < n.inputs.size() ? n.inputs[i] : kNone; };
  const Tensor* w = constant_value(g, n.inputs[1]);
  const SymShape* a = shape_of(g, n.inputs[0]);
  if (w == nullptr || w->rank() != 2 || a == nullptr || a->size() < 2) return false;
  if (input(2) != kNone && !is_single(g, input(2))) return false;
  const std::int64_t columns = w->dim(1);
  const NodeId cast = only_reader(g, n.outputs[0], uses);
  if (cast == kNoNode || g.node(cast).op_type != "Cast" || !g.node(cast).domain.empty()) return false;
  if (!is_f32(g, g.node(cast).outputs[0])) return false;
  ValueId scales = kNone, bias = kNone;
  const NodeId mul = reader(g, g.node(cast).outputs[0], "Mul", uses, scales);
  if (mul == kNoNode) return false;
  const Node* both = made_by(g, scales, "Mul", 2);
  if (both == nullptr) return false;
  const std::size_t constant = is_scale(g, both->inputs[1], columns) ? 1 : 0;
  const ValueId left = both->inputs[1 - constant], right = both->inputs[constant];
  if (!is_scale(g, right, columns) || !is_f32(g, left) || !is_single(g, left)) return false;
  NodeId last = mul;
  const NodeId add = reader(g, g.node(mul).outputs[0], "Add", uses, bias);
  if (add != kNoNode && is_row(g, bias, columns)) {
    last = add;
  } else {
    bias = kNone;
  }
  Node fused;
  fused.name = n.name;
  fused.domain = "com.microsoft";
  fused.op_type = "MatMulIntegerToFloat";
  fused.version = 1;
  fused.inputs = {n.inputs[0], n.inputs[1], left, right, input(2), input(3), bias};
  while (fused.inputs.back() == kNone) fused.inputs.pop_back();
  fused.outputs = g.node(last).outputs;
  if (last != mul) g.remove_node(last);
  for (const NodeId gone : {mul, cast, id}) g.remove_node(gone);
  g.add_node(std::move(fused));
  return true;
}

// The bias that an Add puts on such a product.
bool take_bias(Graph& g, NodeId id, const Uses& uses) {
  const Node& any = g.node(id);
  if (any.removed || any.domain != "com.microsoft" || any.op_type != "MatMulIntegerToFloat" || any.inputs.size() < 4)
    return false;
  if (any.inputs.size() > 6 && any.inputs[6] != kNone) return false;
  const Tensor* w = constant_value(g, any.inputs[1]);
  ValueId bias = kNone;
  const NodeId add = reader(g, any.outputs[0], "Add", uses, bias);
  if (w == nullptr || w->rank() != 2 || add == kNoNode || !is_row(g, bias, w->dim(1))) return false;
  Node fused = any;
  fused.inputs.resize(7, kNone);
  fused.inputs[6] = bias;
  fused.outputs = g.node(add).outputs;
  g.remove_node(add);
  g.remove_node(id);
  g.add_node(std::move(fused));
  return true;
}

}  // namespace

bool fuse_integer_products(Graph& graph) {
  bool changed = false;
  const Uses uses = graph.uses();
  const std::size_t count = graph.nodes().size();
  for (NodeId id = 0; id < count; ++id) changed = fuse(graph, id, uses) || take_bias(graph, id, uses) || changed;
  return changed;
}

}  // namespace sdx::fuse
