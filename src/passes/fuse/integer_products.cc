// Sums of products of bytes that become floats, as quantising tools write them for other engines to join.

#include "graph/edit.h"
#include "passes/fuse/fuse.h"

namespace sdx::fuse {
namespace {

bool is_single(const Graph& g, ValueId v) {
  const SymShape* s = shape_of(g, v);
  return s != nullptr && s->size() <= 1 && (s->empty() || s->front() == Dim(1));
}

// A float32 constant with a number for each column.
bool is_row(const Graph& g, ValueId v, std::int64_t columns) {
  const Tensor* t = constant_of(g, v);
  return t != nullptr && t->dtype() == DataType::float32 && t->rank() == 1 && t->size() == columns;
}

bool is_scale(const Graph& g, ValueId v, std::int64_t columns) {
  const Tensor* t = constant_of(g, v);
  return t != nullptr && t->dtype() == DataType::float32 && t->rank() <= 1 && (t->size() == 1 || t->size() == columns);
}

// The node that alone reads the value, if it is an operator of two operands; `other` is the second one.
NodeId reader(const Graph& g, ValueId v, std::string_view op, const Readers& readers, ValueId& other) {
  const NodeId id = readers.only(v);
  if (id == kNoNode || !is_binary(g.node(id), op) || g.node(id).inputs[0] == g.node(id).inputs[1]) return kNoNode;
  other = g.node(id).inputs[g.node(id).inputs[0] == v ? 1 : 0];
  return id;
}

bool fuse(Graph& g, NodeId id, const Readers& readers) {
  // Only this node is copied, because other nodes may hold whole subgraphs.
  if (!is_op(g.node(id), "MatMulInteger")) return false;
  const Node n = g.node(id);
  if (n.outputs[0] == kNoValue) return false;
  const Tensor* w = constant_of(g, n.inputs[1]);
  const SymShape* a = shape_of(g, n.inputs[0]);
  if (w == nullptr || w->rank() != 2 || a == nullptr || a->size() < 2) return false;
  if (has_input(n, 2) && !is_single(g, n.inputs[2])) return false;
  const std::int64_t columns = w->dim(1);
  const NodeId cast = readers.only(n.outputs[0]);
  if (cast == kNoNode || !is_op(g.node(cast), "Cast")) return false;
  if (!is_f32(g, g.node(cast).outputs[0])) return false;
  ValueId scales = kNoValue, bias = kNoValue;
  const NodeId mul = reader(g, g.node(cast).outputs[0], "Mul", readers, scales);
  if (mul == kNoNode) return false;
  const Node* both = made_by(g, scales, "Mul", 2);
  if (both == nullptr) return false;
  const std::size_t constant = is_scale(g, both->inputs[1], columns) ? 1 : 0;
  const ValueId left = both->inputs[1 - constant], right = both->inputs[constant];
  if (!is_scale(g, right, columns) || !is_f32(g, left) || !is_single(g, left)) return false;
  NodeId last = mul;
  const NodeId add = reader(g, g.node(mul).outputs[0], "Add", readers, bias);
  if (add != kNoNode && is_row(g, bias, columns)) {
    last = add;
  } else {
    bias = kNoValue;
  }
  Node fused = make_node(n.name, "MatMulIntegerToFloat", 1,
                         {n.inputs[0], n.inputs[1], left, right, input_of(n, 2), input_of(n, 3), bias}, {}, "com.microsoft");
  while (fused.inputs.back() == kNoValue) fused.inputs.pop_back();
  fused.outputs = g.node(last).outputs;
  if (last != mul) g.remove_node(last);
  for (const NodeId gone : {mul, cast, id}) g.remove_node(gone);
  g.add_node(std::move(fused));
  return true;
}

// The bias that an Add puts on such a product.
bool take_bias(Graph& g, NodeId id, const Readers& readers) {
  const Node& any = g.node(id);
  if (any.removed || any.domain != "com.microsoft" || any.op_type != "MatMulIntegerToFloat" || any.inputs.size() < 4)
    return false;
  if (has_input(any, 6)) return false;
  const Tensor* w = constant_of(g, any.inputs[1]);
  ValueId bias = kNoValue;
  const NodeId add = reader(g, any.outputs[0], "Add", readers, bias);
  if (w == nullptr || w->rank() != 2 || add == kNoNode || !is_row(g, bias, w->dim(1))) return false;
  Node fused = any;
  fused.inputs.resize(7, kNoValue);
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
  const Readers readers(graph);
  const std::size_t count = graph.nodes().size();
  for (NodeId id = 0; id < count; ++id) changed = fuse(graph, id, readers) || take_bias(graph, id, readers) || changed;
  return changed;
}

}  // namespace sdx::fuse
