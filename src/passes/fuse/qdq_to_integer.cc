// DequantizeLinear -> Conv -> QuantizeLinear, the way quantisers write a model down, becomes QLinearConv (ai.onnx 10): the sums
// are exact integers, one rounding happens instead of several, and 8-bit kernels serve it. ONNX Runtime does the same, so
// recordings made there agree more closely. Products of matrices, additions, pools, concatenations and tables likewise become
// com.microsoft QLinear operators; what only moves elements moves bytes.

#include <algorithm>
#include <cmath>

#include "graph/edit.h"
#include "ops/conv/signatures.h"
#include "ops/math/signatures.h"
#include "ops/matrix/signatures.h"
#include "ops/quant/signatures.h"
#include "ops/tensor/signatures.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/qdq_parts.h"
#include "tensor/element.h"

namespace sdx::fuse {
namespace {

bool all_zero(const Tensor& t) {
  for (std::int64_t i = 0; i < t.size(); ++i) {
    if (element_as_int(t, i) != 0) return false;
  }
  return true;
}

// Whether the bias is int32 in steps of x_scale * w_scale, which are the steps of the sums. Quantisers store that product rounded
// to float32; 1e-5 leaves room for some roundings and is far below one step of an 8-bit result.
bool bias_fits(const Graph& g, const Node& d, const Tensor& x_scale, const Tensor& w_scale, std::int64_t channels) {
  const Tensor* b = constant_of(g, input_of(d, 0));
  const Tensor* scale = scale_of(g, d, channels);
  if (b == nullptr || scale == nullptr || b->dtype() != DataType::int32 || b->rank() != 1 || b->size() != channels) return false;
  if (ops::parse<ops::QuantizeAttrs>(d).axis != 0 && scale->size() != 1) return false;
  const ValueId zero = input_of(d, 2);
  if (zero != kNoValue && (constant_of(g, zero) == nullptr || !all_zero(*constant_of(g, zero)))) return false;
  const double x = element_as_double(x_scale, 0);
  for (std::int64_t i = 0; i < channels; ++i) {
    const double expected = x * element_as_double(w_scale, w_scale.size() == 1 ? 0 : i);
    const double actual = element_as_double(*scale, scale->size() == 1 ? 0 : i);
    if (std::fabs(actual - expected) > 1e-5 * expected) return false;
  }
  return true;
}

// Replaces the node, its quantizer and the node between them by `fused`.
void replace(Graph& g, NodeId id, const Quantizer& quantizer, Node fused) {
  fused.outputs = g.node(quantizer.node).outputs;
  g.remove_node(quantizer.node);
  if (quantizer.between != kNoNode) g.remove_node(quantizer.between);
  g.remove_node(id);
  g.add_node(std::move(fused));
}

// Replaces the node alone by `fused`.
void replace(Graph& g, NodeId id, Node fused) {
  fused.outputs = g.node(id).outputs;
  g.remove_node(id);
  g.add_node(std::move(fused));
}

bool fuse_conv(Graph& g, NodeId id, const Readers& readers) {
  const Node& conv = g.node(id);
  if (conv.removed || conv.op_type != "Conv" || !conv.domain.empty() || conv.version < 10) return false;
  const NodeId dx = dequantizer(g, conv, 0);
  const NodeId dw = dequantizer(g, conv, 1);
  const bool has_bias = input_of(conv, 2) != kNoValue;
  const NodeId db = dequantizer(g, conv, 2);
  if (dx == kNoNode || dw == kNoNode || (has_bias && db == kNoNode)) return false;
  const ValueId x = g.node(dx).inputs[0];
  const ValueId w = g.node(dw).inputs[0];
  const Tensor* weights = constant_of(g, w);
  if (!is_byte(g.value(x).type.elem) || weights == nullptr || !is_byte(weights->dtype()) || weights->rank() < 3) return false;
  const std::int64_t channels = weights->shape()[0];
  const Tensor* x_scale = scale_of(g, g.node(dx), 1);
  const Tensor* w_scale = scale_of(g, g.node(dw), channels);
  if (x_scale == nullptr || w_scale == nullptr || !zero_fits(g, g.node(dx), 1) || !zero_fits(g, g.node(dw), channels))
    return false;
  if (w_scale->size() != 1 && ops::parse<ops::QuantizeAttrs>(g.node(dw)).axis != 0) return false;
  if (has_bias && !bias_fits(g, g.node(db), *x_scale, *w_scale, channels)) return false;
  const Quantizer quantizer = clamping_quantizer(g, conv.outputs[0], readers);
  if (quantizer.node == kNoNode) return false;

  const DataType x_type = g.value(x).type.elem;
  const DataType w_type = weights->dtype();
  Node fused = make_node(
      conv.name, "QLinearConv", conv.version,
      {x, g.node(dx).inputs[1], zero_point(g, g.node(dx), x_type), w, g.node(dw).inputs[1], zero_point(g, g.node(dw), w_type)},
      conv.attributes);
  const Node& q = g.node(quantizer.node);
  fused.inputs.push_back(q.inputs[1]);
  fused.inputs.push_back(q.inputs[2]);
  if (has_bias) fused.inputs.push_back(g.node(db).inputs[0]);
  replace(g, id, quantizer, std::move(fused));
  return true;
}

// --- operators between quantised tensors ---

// bytes, scale and zero point of a dequantised operand.
void push_operand(Graph& g, NodeId dequantizer, std::vector<ValueId>& inputs) {
  const Node d = g.node(dequantizer);
  inputs.insert(inputs.end(), {d.inputs[0], d.inputs[1], zero_point(g, d, g.value(d.inputs[0]).type.elem)});
}

bool same_params(const Graph& g, const Node& a, const Node& b) {
  return element_as_double(*constant_of(g, a.inputs[1]), 0) == element_as_double(*constant_of(g, b.inputs[1]), 0) &&
         zero_value(g, a) == zero_value(g, b);
}

DataType byte_type(const Graph& g, const Quantizer& q) { return g.value(g.node(q.node).inputs[2]).type.elem; }

Node microsoft(const Node& from, const char* op) { return make_node(from.name, op, 1, {}, {}, "com.microsoft"); }

bool fuse_add(Graph& g, NodeId id, const Readers& readers) {
  const Node add = g.node(id);
  if (add.inputs.size() != 2 || (add.op_type == "Add" && add.version < 7)) return false;
  const NodeId da = byte_dequantizer(g, add, 0), db = byte_dequantizer(g, add, 1);
  if (da == kNoNode || db == kNoNode) return false;
  const ValueId a = g.node(da).inputs[0], b = g.node(db).inputs[0];
  const Quantizer q = clamping_quantizer(g, add.outputs[0], readers);
  const DataType type = g.value(a).type.elem;
  // A constant operand would have to be packed anew for each of its uses; broadcasting has no fast kernel.
  if (q.node == kNoNode || g.value(b).type.elem != type || byte_type(g, q) != type || !same_shape(g, a, b)) return false;
  Node fused = microsoft(add, "QLinearAdd");
  push_operand(g, da, fused.inputs);
  push_operand(g, db, fused.inputs);
  fused.inputs.push_back(g.node(q.node).inputs[1]);
  fused.inputs.push_back(g.node(q.node).inputs[2]);
  replace(g, id, q, std::move(fused));
  return true;
}

// Whether b has one number for each channel of the images a.
bool by_channel(const Graph& g, ValueId a, ValueId b) {
  const Type &ta = g.value(a).type, &tb = g.value(b).type;
  if (!ta.shape || !tb.shape || ta.shape->size() != 4 || tb.shape->size() != 4) return false;
  return std::equal(ta.shape->begin(), ta.shape->begin() + 2, tb.shape->begin()) && (*tb.shape)[2] == Dim(1) &&
         (*tb.shape)[3] == Dim(1);
}

bool fuse_mul(Graph& g, NodeId id, const Readers& readers) {
  const Node mul = g.node(id);
  if (mul.inputs.size() != 2 || mul.version < 7) return false;
  NodeId da = byte_dequantizer(g, mul, 0), db = byte_dequantizer(g, mul, 1);
  if (da == kNoNode || db == kNoNode) return false;
  if (by_channel(g, g.node(db).inputs[0], g.node(da).inputs[0])) std::swap(da, db);
  const ValueId a = g.node(da).inputs[0], b = g.node(db).inputs[0];
  const Quantizer q = clamping_quantizer(g, mul.outputs[0], readers);
  const DataType type = g.value(a).type.elem;
  if (q.node == kNoNode || g.value(b).type.elem != type || byte_type(g, q) != type) return false;
  if (!same_shape(g, a, b) && !by_channel(g, a, b)) return false;
  Node fused = microsoft(mul, "QLinearMul");
  push_operand(g, da, fused.inputs);
  push_operand(g, db, fused.inputs);
  fused.inputs.push_back(g.node(q.node).inputs[1]);
  fused.inputs.push_back(g.node(q.node).inputs[2]);
  replace(g, id, q, std::move(fused));
  return true;
}

// One operand, one result: AveragePool, GlobalAveragePool, Sigmoid, LeakyRelu, and Relu as LeakyRelu with alpha 0.
bool fuse_unary(Graph& g, NodeId id, const char* op, const Readers& readers) {
  const Node n = g.node(id);
  const NodeId d = byte_dequantizer(g, n, 0);
  const Quantizer q = clamping_quantizer(g, n.outputs[0], readers);
  if (d == kNoNode || q.node == kNoNode || byte_type(g, q) != g.value(g.node(d).inputs[0]).type.elem) return false;
  Node fused = microsoft(n, op);
  if (n.op_type == "LeakyRelu") fused.attributes.set("alpha", ops::parse<ops::ActivationAttrs>(n).alpha);
  if (n.op_type == "Relu") fused.attributes.set("alpha", 0.0F);
  if (n.op_type == "AveragePool") {
    fused.attributes = n.attributes;
    fused.attributes.erase("dilations");
  }
  push_operand(g, d, fused.inputs);
  fused.inputs.push_back(g.node(q.node).inputs[1]);
  fused.inputs.push_back(g.node(q.node).inputs[2]);
  replace(g, id, q, std::move(fused));
  return true;
}

// Average pools of images; bytes-channels-last turns these. Windows that reach beyond the padding (ceil_mode) count fewer taps
// than QLinearAveragePool does.
bool fuse_average_pool(Graph& g, NodeId id, const Readers& readers) {
  const Node& n = g.node(id);
  const auto attrs = ops::parse<ops::PoolAttrs>(n);
  const Type& type = g.value(n.inputs[0]).type;
  const bool dilated = std::ranges::any_of(attrs.window.dilations, [](std::int64_t d) { return d != 1; });
  if (!type.shape || type.shape->size() != 4 || dilated) return false;
  if (attrs.count_include_pad && attrs.window.ceil_mode) return false;
  return fuse_unary(g, id, "QLinearAveragePool", readers);
}

// Bytes quantised anew, as between operators that were quantised apart: LeakyRelu with alpha 1, a table like the others.
bool fuse_requantize(Graph& g, NodeId id) {
  const Node q = g.node(id);
  const Tensor* zero = constant_of(g, input_of(q, 2));
  const NodeId d = byte_dequantizer(g, q, 0);
  if (d == kNoNode || zero == nullptr || ops::parse<ops::QuantizeAttrs>(q).block_size != 0) return false;
  const ValueId bytes = g.node(d).inputs[0];
  if (g.value(bytes).constant || zero->dtype() != g.value(bytes).type.elem) return false;
  if (scale_of(g, q, 1) == nullptr || !zero_fits(g, q, 1)) return false;
  Node fused = microsoft(q, "QLinearLeakyRelu");
  fused.attributes.set("alpha", 1.0F);
  push_operand(g, d, fused.inputs);
  fused.inputs.insert(fused.inputs.end(), {q.inputs[1], q.inputs[2]});
  fused.outputs = q.outputs;
  g.remove_node(id);
  g.add_node(std::move(fused));
  return true;
}

// Operators that select or move elements work on bytes if both sides are quantised alike: quantising is monotonic, so the largest
// value is the largest byte.
bool move_to_bytes(Graph& g, NodeId id, const Readers& readers) {
  const Node n = g.node(id);
  if (n.outputs.size() != 1 || (n.op_type == "MaxPool" && n.version < 12)) return false;
  const NodeId d = byte_dequantizer(g, n, 0);
  const Quantizer q = clamping_quantizer(g, n.outputs[0], readers);
  if (d == kNoNode || q.node == kNoNode || byte_type(g, q) != g.value(g.node(d).inputs[0]).type.elem) return false;
  if (!same_params(g, g.node(d), g.node(q.node))) return false;
  Node moved = n;
  moved.inputs[0] = g.node(d).inputs[0];
  replace(g, id, q, std::move(moved));
  return true;
}

// A pool of dequantised bytes, of other steps than its result has or of a result that stays float: the largest byte first, and
// then what stood before it (DequantizeLinear, with or without Relu), which is monotonic. A quarter of the bytes to convert, and
// a quantizer that follows becomes a table.
bool pool_first(Graph& g, NodeId id, const Readers& readers) {
  const Node pool = g.node(id);
  if (pool.op_type != "MaxPool" || pool.version < 12 || pool.outputs.size() != 1) return false;
  const auto alone = [&](ValueId v) { return readers.of(v).size() == 1 && !is_output(g, v); };
  const NodeId before = g.value(pool.inputs[0]).producer;
  const bool relu = before != kNoNode && g.node(before).op_type == "Relu" && g.node(before).domain.empty();
  if (relu && !alone(pool.inputs[0])) return false;
  const NodeId d = byte_dequantizer(g, relu ? g.node(before) : pool, 0);
  if (d == kNoNode || g.value(g.node(d).inputs[0]).constant || scale_of(g, g.node(d), 1) == nullptr) return false;
  const auto value = [&](const char* end, DataType type) {
    const ValueId v = g.add_value(pool.name + end);
    g.value(v).type = Type::tensor(type);
    return v;
  };
  Node moved = pool;
  moved.inputs[0] = g.node(d).inputs[0];
  moved.outputs[0] = value("_bytes", g.value(moved.inputs[0]).type.elem);
  Node floats = g.node(d);
  floats.name = pool.name + "_dequantized";
  floats.inputs[0] = moved.outputs[0];
  floats.outputs = relu ? std::vector<ValueId>{value("_floats", DataType::float32)} : pool.outputs;
  Node bounded;
  if (relu) {
    bounded = g.node(before);
    bounded.inputs[0] = floats.outputs[0];
    bounded.outputs = pool.outputs;
    g.remove_node(before);
  }
  g.remove_node(id);
  g.add_node(std::move(moved));
  g.add_node(std::move(floats));
  if (relu) g.add_node(std::move(bounded));
  return true;
}

// Parts that are all quantised as the whole is are split as bytes.
bool split_bytes(Graph& g, NodeId id, const Readers& readers) {
  const Node n = g.node(id);
  const NodeId d = byte_dequantizer(g, n, 0);
  if (d == kNoNode || g.value(g.node(d).inputs[0]).constant) return false;
  Node moved = n;
  moved.inputs[0] = g.node(d).inputs[0];
  std::vector<NodeId> quantizers;
  for (ValueId& part : moved.outputs) {
    const NodeId q = part == kNoValue ? kNoNode : only_quantizer(g, part, readers);
    if (q == kNoNode || byte_type(g, {q, kNoNode}) != g.value(moved.inputs[0]).type.elem || !same_params(g, g.node(d), g.node(q)))
      return false;
    quantizers.push_back(q);
    part = g.node(q).outputs[0];
  }
  for (const NodeId q : quantizers) g.remove_node(q);
  g.remove_node(id);
  g.add_node(std::move(moved));
  return true;
}

bool fuse_concat(Graph& g, NodeId id, const Readers& readers) {
  const Node n = g.node(id);
  const Quantizer q = clamping_quantizer(g, n.outputs[0], readers);
  if (q.node == kNoNode || n.inputs.empty() || !ops::parse<ops::ConcatAttrs>(n).axis) return false;
  Node fused = microsoft(n, "QLinearConcat");
  fused.attributes = n.attributes;
  fused.inputs = {g.node(q.node).inputs[1], g.node(q.node).inputs[2]};
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const NodeId d = byte_dequantizer(g, n, i);
    if (d == kNoNode || g.value(g.node(d).inputs[0]).type.elem != byte_type(g, q)) return false;
  }
  for (std::size_t i = 0; i < n.inputs.size(); ++i) push_operand(g, byte_dequantizer(g, n, i), fused.inputs);
  replace(g, id, q, std::move(fused));
  return true;
}

// The DequantizeLinear of a constant matrix of bytes that is operand 1, with one scale or one for each column; else kNoNode.
NodeId weights_dequantizer(const Graph& g, const Node& n, bool trans) {
  const NodeId id = dequantizer(g, n, 1);
  if (id == kNoNode) return kNoNode;
  const Node& d = g.node(id);
  const Tensor* w = constant_of(g, d.inputs[0]);
  if (w == nullptr || !is_byte(w->dtype()) || w->rank() != 2) return kNoNode;
  const std::int64_t columns = w->shape()[trans ? 0 : 1];
  const Tensor* scale = scale_of(g, d, columns);
  if (scale == nullptr || !zero_fits(g, d, columns)) return kNoNode;
  const std::int64_t axis = ops::parse<ops::QuantizeAttrs>(d).axis;
  const bool by_column = axis == (trans ? 0 : 1) || axis == (trans ? -2 : -1);
  return scale->size() == 1 || by_column ? id : kNoNode;
}

bool fuse_gemm(Graph& g, NodeId id, const Readers& readers) {
  const Node n = g.node(id);
  const auto attr = ops::parse<ops::GemmAttrs>(n);
  if (n.version < 7 || !attr.plain()) return false;
  const bool trans = attr.trans_b;
  const NodeId da = byte_dequantizer(g, n, 0), db = weights_dequantizer(g, n, trans);
  if (da == kNoNode || db == kNoNode || g.value(g.node(da).inputs[0]).constant) return false;
  const Node weights = g.node(db);
  const Tensor* w = constant_of(g, weights.inputs[0]);
  const std::int64_t columns = w->shape()[trans ? 0 : 1];
  const bool has_bias = input_of(n, 2) != kNoValue;
  const NodeId dc = dequantizer(g, n, 2);
  if (has_bias &&
      (dc == kNoNode || !bias_fits(g, g.node(dc), *scale_of(g, g.node(da), 1), *scale_of(g, weights, columns), columns)))
    return false;
  Node fused = microsoft(n, "QGemm");
  fused.attributes.set("transB", std::int64_t{trans ? 1 : 0});
  push_operand(g, da, fused.inputs);
  fused.inputs.insert(fused.inputs.end(), {weights.inputs[0], weights.inputs[1], zero_point(g, weights, w->dtype())});
  if (has_bias) fused.inputs.push_back(g.node(dc).inputs[0]);
  const Quantizer q = clamping_quantizer(g, n.outputs[0], readers);
  if (q.node == kNoNode) {
    replace(g, id, std::move(fused));
    return true;
  }
  if (!has_bias) fused.inputs.push_back(kNoValue);
  fused.inputs.push_back(g.node(q.node).inputs[1]);
  fused.inputs.push_back(g.node(q.node).inputs[2]);
  replace(g, id, q, std::move(fused));
  return true;
}

// Products with constant weights become QLinearMatMul, or MatMulIntegerToFloat if the result stays float.
bool fuse_matmul(Graph& g, NodeId id, const Readers& readers) {
  const Node n = g.node(id);
  const NodeId da = byte_dequantizer(g, n, 0), db = weights_dequantizer(g, n, false);
  if (da == kNoNode || db == kNoNode || n.version < 10) return false;
  const Node left = g.node(da), weights = g.node(db);
  const Type& a = g.value(left.inputs[0]).type;
  if (g.value(left.inputs[0]).constant || !a.shape || a.shape->size() < 2) return false;
  const ValueId b = weights.inputs[0], a_zero = zero_point(g, left, a.elem),
                b_zero = zero_point(g, weights, g.value(b).type.elem);
  const Quantizer q = clamping_quantizer(g, n.outputs[0], readers);
  if (q.node == kNoNode) {
    Node fused = microsoft(n, "MatMulIntegerToFloat");
    fused.inputs = {left.inputs[0], b, left.inputs[1], weights.inputs[1], a_zero, b_zero};
    replace(g, id, std::move(fused));
    return true;
  }
  Node fused = make_node(
      n.name, "QLinearMatMul", n.version,
      {left.inputs[0], left.inputs[1], a_zero, b, weights.inputs[1], b_zero, g.node(q.node).inputs[1], g.node(q.node).inputs[2]});
  replace(g, id, q, std::move(fused));
  return true;
}

// Rows of a table of bytes are picked before they become floats.
bool gather_bytes(Graph& g, NodeId id) {
  const Node n = g.node(id);
  const NodeId d = byte_dequantizer(g, n, 0);
  if (d == kNoNode || !g.value(g.node(d).inputs[0]).constant) return false;
  Node picked = n, floats = g.node(d);
  picked.inputs[0] = floats.inputs[0];
  picked.outputs[0] = g.add_value(n.name + "_bytes");
  g.value(picked.outputs[0]).type = Type::tensor(g.value(picked.inputs[0]).type.elem);
  floats.name = n.name + "_dequantized";
  floats.inputs[0] = picked.outputs[0];
  floats.outputs = n.outputs;
  g.remove_node(id);
  g.add_node(std::move(picked));
  g.add_node(std::move(floats));
  return true;
}

bool fuse_other(Graph& g, NodeId id, const Readers& readers) {
  const Node& n = g.node(id);
  if (n.removed || !n.domain.empty() || n.outputs.empty() || n.outputs[0] == kNoValue) return false;
  const std::string& op = n.op_type;
  if (op == "Add" || op == "Sum") return fuse_add(g, id, readers);
  if (op == "Mul") return fuse_mul(g, id, readers);
  if (op == "Gemm") return fuse_gemm(g, id, readers);
  if (op == "MatMul") return fuse_matmul(g, id, readers);
  if (op == "Gather") return gather_bytes(g, id);
  if (op == "GlobalAveragePool") return fuse_unary(g, id, "QLinearGlobalAveragePool", readers);
  if (op == "AveragePool") return fuse_average_pool(g, id, readers);
  if (op == "Sigmoid") return fuse_unary(g, id, "QLinearSigmoid", readers);
  if (op == "LeakyRelu" || op == "Relu") return fuse_unary(g, id, "QLinearLeakyRelu", readers);
  if (op == "QuantizeLinear") return fuse_requantize(g, id);
  if (op == "Concat") return fuse_concat(g, id, readers);
  if (op == "Split") return split_bytes(g, id, readers);
  for (const char* moves : {"MaxPool", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze"}) {
    if (op == moves) return move_to_bytes(g, id, readers) || pool_first(g, id, readers);
  }
  return false;
}

}  // namespace

bool qdq_to_integer(Graph& graph) {
  const Readers readers(graph);
  const std::size_t count = graph.nodes().size();
  bool changed = false;
  for (NodeId id = 0; id < count; ++id) changed = fuse_conv(graph, id, readers) || fuse_other(graph, id, readers) || changed;
  return changed;
}

}  // namespace sdx::fuse
