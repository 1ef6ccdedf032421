// DequantizeLinear -> Conv -> QuantizeLinear, the way quantisers write a model down, becomes QLinearConv (ai.onnx 10): the sums
// are exact integers, one rounding happens instead of several, and 8-bit kernels serve it. ONNX Runtime does the same, so
// recordings made there agree more closely.

#include <cmath>

#include "passes/fuse/fuse.h"
#include "tensor/element.h"

namespace sdx::fuse {
namespace {

bool is_byte(DataType t) { return t == DataType::int8 || t == DataType::uint8; }

const Tensor* constant(const Graph& g, ValueId v) {
  if (v == kNoValue) return nullptr;
  const ValueInfo& info = g.value(v);
  return info.constant && !info.is_input ? &*info.constant : nullptr;
}

ValueId input(const Node& n, std::size_t i) { return i < n.inputs.size() ? n.inputs[i] : kNoValue; }

bool all_zero(const Tensor& t) {
  for (std::int64_t i = 0; i < t.size(); ++i) {
    if (element_as_int(t, i) != 0) return false;
  }
  return true;
}

// The scale of a quantising node: constant float32, positive and finite, one element or `channels` of them.
const Tensor* scale_of(const Graph& g, const Node& n, std::int64_t channels) {
  const Tensor* t = constant(g, input(n, 1));
  if (t == nullptr || t->dtype() != DataType::float32 || (t->size() != 1 && t->size() != channels) || t->rank() > 1)
    return nullptr;
  for (std::int64_t i = 0; i < t->size(); ++i) {
    const double s = element_as_double(*t, i);
    if (!std::isfinite(s) || s <= 0) return nullptr;
  }
  return t;
}

bool zero_fits(const Graph& g, const Node& n, std::int64_t channels) {
  const ValueId v = input(n, 2);
  if (v == kNoValue) return true;
  const Tensor* t = constant(g, v);
  return t != nullptr && t->rank() <= 1 && (t->size() == 1 || t->size() == channels);
}

// The DequantizeLinear that gives input i of the node, with float32 as its result; kNoNode: something else gives it.
NodeId dequantizer(const Graph& g, const Node& n, std::size_t i) {
  const ValueId v = input(n, i);
  if (v == kNoValue) return kNoNode;
  const NodeId id = g.value(v).producer;
  if (id == kNoNode) return kNoNode;
  const Node& d = g.node(id);
  const bool plain = d.op_type == "DequantizeLinear" && d.domain.empty() && d.attributes.get_int("block_size", 0) == 0;
  const std::int64_t to = d.attributes.get_int("output_dtype", 0);
  return plain && (to == 0 || to == static_cast<std::int64_t>(DataType::float32)) ? id : kNoNode;
}

// Whether the bias is int32 in steps of x_scale * w_scale, which are the steps of the sums. Quantisers store that product rounded
// to float32; 1e-5 leaves room for some roundings and is far below one step of an 8-bit result.
bool bias_fits(const Graph& g, const Node& d, const Tensor& x_scale, const Tensor& w_scale, std::int64_t channels) {
  const Tensor* b = constant(g, input(d, 0));
  const Tensor* scale = scale_of(g, d, channels);
  if (b == nullptr || scale == nullptr || b->dtype() != DataType::int32 || b->rank() != 1 || b->size() != channels) return false;
  if (d.attributes.get_int("axis", 1) != 0 && scale->size() != 1) return false;
  const ValueId zero = input(d, 2);
  if (zero != kNoValue && (constant(g, zero) == nullptr || !all_zero(*constant(g, zero)))) return false;
  const double x = element_as_double(x_scale, 0);
  for (std::int64_t i = 0; i < channels; ++i) {
    const double expected = x * element_as_double(w_scale, w_scale.size() == 1 ? 0 : i);
    const double actual = element_as_double(*scale, scale->size() == 1 ? 0 : i);
    if (std::fabs(actual - expected) > 1e-5 * expected) return false;
  }
  return true;
}

// The node's zero point, or a new constant 0 where it has none.
ValueId zero_point(Graph& g, const Node& n, DataType type) {
  const ValueId v = input(n, 2);
  if (v != kNoValue) return v;
  Tensor zero(type, {});
  set_element(zero, 0, 0.0);
  return g.add_constant(n.name + "_zero", std::move(zero));
}

// The QuantizeLinear that alone reads the value; kNoNode: there is none.
NodeId only_quantizer(const Graph& g, ValueId v, const std::vector<std::vector<NodeId>>& uses) {
  for (const ValueId out : g.outputs()) {
    if (out == v) return kNoNode;
  }
  if (uses[v].size() != 1) return kNoNode;
  const Node& q = g.node(uses[v][0]);
  const Tensor* zero = constant(g, input(q, 2));
  if (q.removed || q.op_type != "QuantizeLinear" || !q.domain.empty() || q.inputs[0] != v) return kNoNode;
  if (zero == nullptr || !is_byte(zero->dtype()) || scale_of(g, q, 1) == nullptr || !zero_fits(g, q, 1)) return kNoNode;
  return q.attributes.get_int("block_size", 0) == 0 ? uses[v][0] : kNoNode;
}

bool fuse_conv(Graph& g, NodeId id, const std::vector<std::vector<NodeId>>& uses) {
  const Node& conv = g.node(id);
  if (conv.removed || conv.op_type != "Conv" || !conv.domain.empty() || conv.version < 10) return false;
  const NodeId dx = dequantizer(g, conv, 0);
  const NodeId dw = dequantizer(g, conv, 1);
  const bool has_bias = input(conv, 2) != kNoValue;
  const NodeId db = dequantizer(g, conv, 2);
  if (dx == kNoNode || dw == kNoNode || (has_bias && db == kNoNode)) return false;
  const ValueId x = g.node(dx).inputs[0];
  const ValueId w = g.node(dw).inputs[0];
  const Tensor* weights = constant(g, w);
  if (!is_byte(g.value(x).type.elem) || weights == nullptr || !is_byte(weights->dtype()) || weights->rank() < 3) return false;
  const std::int64_t channels = weights->shape()[0];
  const Tensor* x_scale = scale_of(g, g.node(dx), 1);
  const Tensor* w_scale = scale_of(g, g.node(dw), channels);
  if (x_scale == nullptr || w_scale == nullptr || !zero_fits(g, g.node(dx), 1) || !zero_fits(g, g.node(dw), channels))
    return false;
  if (w_scale->size() != 1 && g.node(dw).attributes.get_int("axis", 1) != 0) return false;
  if (has_bias && !bias_fits(g, g.node(db), *x_scale, *w_scale, channels)) return false;
  const NodeId quantizer = only_quantizer(g, conv.outputs[0], uses);
  if (quantizer == kNoNode) return false;

  const DataType x_type = g.value(x).type.elem;
  const DataType w_type = weights->dtype();
  Node fused;
  fused.name = conv.name;
  fused.op_type = "QLinearConv";
  fused.version = conv.version;
  fused.attributes = conv.attributes;
  fused.inputs = {x, g.node(dx).inputs[1], zero_point(g, g.node(dx), x_type),
                  w, g.node(dw).inputs[1], zero_point(g, g.node(dw), w_type)};
  const Node& q = g.node(quantizer);
  fused.inputs.push_back(q.inputs[1]);
  fused.inputs.push_back(q.inputs[2]);
  if (has_bias) fused.inputs.push_back(g.node(db).inputs[0]);
  fused.outputs = q.outputs;
  g.remove_node(quantizer);
  g.remove_node(id);
  g.add_node(std::move(fused));
  return true;
}

}  // namespace

bool qdq_to_integer(Graph& graph) {
  const std::vector<std::vector<NodeId>> uses = graph.uses();
  const std::size_t count = graph.nodes().size();
  bool changed = false;
  for (NodeId id = 0; id < count; ++id) changed = fuse_conv(graph, id, uses) || changed;
  return changed;
}

}  // namespace sdx::fuse
