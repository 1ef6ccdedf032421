// Normalisation over the last axis as exporters write it before operators for it exist: x - mean over the root of the variance
// (PyTorch, and TensorFlow's form with the scale taken into the factor), and x over the root of the mean square (Llama's
// RMSNorm).

#include <algorithm>

#include "graph/edit.h"
#include "ops/reduce/signatures.h"
#include "passes/fuse/fuse.h"

namespace sdx::fuse {
namespace {

// Returns the value whose mean over the last axis `v` is, if that axis is kept; otherwise kNoValue.
ValueId mean_of(const Graph& g, ValueId v) {
  if (v == kNoValue || g.value(v).producer == kNoNode) return kNoValue;
  const Node& n = g.node(g.value(v).producer);
  if (n.removed || !n.domain.empty() || n.op_type != "ReduceMean" || n.inputs.empty() || n.inputs[0] == kNoValue) return kNoValue;
  const SymShape* x = shape_of(g, n.inputs[0]);
  if (x == nullptr || x->empty() || !ops::parse<ops::ReduceAttrs>(n).keepdims) return kNoValue;
  std::int64_t axis = 0;
  if (n.inputs.size() > 1) {
    const Tensor* axes = constant_input(g, n, 1);
    if (axes == nullptr || axes->dtype() != DataType::int64 || axes->size() != 1) return kNoValue;
    axis = axes->values<std::int64_t>()[0];
  } else {
    const ops::IntList axes = ops::parse<ops::ReduceAttrs>(n).axes;
    if (axes.size() != 1) return kNoValue;
    axis = axes[0];
  }
  const auto rank = static_cast<std::int64_t>(x->size());
  return axis == -1 || axis == rank - 1 ? n.inputs[0] : kNoValue;
}

// The operand of a square: Pow(d, 2) or Mul(d, d).
ValueId square_of(const Graph& g, ValueId v) {
  if (const Node* pow = made_by(g, v, "Pow", 2); pow != nullptr && is_binary(*pow, "Pow")) {
    return scalar_value(g, pow->inputs[1]) == 2.0 ? pow->inputs[0] : kNoValue;
  }
  const Node* mul = made_by(g, v, "Mul", 2);
  return mul != nullptr && is_binary(*mul, "Mul") && mul->inputs[0] == mul->inputs[1] ? mul->inputs[0] : kNoValue;
}

// Returns the value x for which `v` is x - mean(x).
ValueId centred(const Graph& g, ValueId v) {
  const Node* sub = made_by(g, v, "Sub", 2);
  return sub != nullptr && is_binary(*sub, "Sub") && mean_of(g, sub->inputs[1]) == sub->inputs[0] ? sub->inputs[0] : kNoValue;
}

struct Pattern {
  ValueId x = kNoValue;
  bool rms = false;
  float epsilon = 0;
  ValueId scale = kNoValue, bias = kNoValue;
  NodeId last = kNoNode;
};

// The value itself, or (for exporters that subtract twice) an equal one.
bool is_deviation(const Graph& g, ValueId v, const Pattern& p) { return p.rms ? v == p.x : centred(g, v) == p.x; }

// Returns the other operand of `n`; `v` is one of the two.
ValueId other(const Node& n, ValueId v) { return n.inputs[0] == v ? n.inputs[1] : n.inputs[0]; }

// float32, of one axis, as long as x's last.
bool fits(const Graph& g, ValueId v, ValueId x) {
  const SymShape *s = shape_of(g, v), *of = shape_of(g, x);
  return s != nullptr && s->size() == 1 && is_f32(g, v) && (*s)[0] == of->back();
}

// The only reader of `v`, where it is `op` with numpy's broadcasting.
NodeId binary_reader(const Graph& g, ValueId v, std::string_view op, const Readers& readers) {
  const NodeId id = readers.only(v);
  return id != kNoNode && is_binary(g.node(id), op) ? id : kNoNode;
}

// n scale + bias, from the node that makes the normalised n on; n alone where no such scale follows: parameters that training
// never changed, or that a model does without.
void match_affine(const Graph& g, ValueId n, const Readers& readers, Pattern& p) {
  p.last = g.value(n).producer;
  const NodeId mul = binary_reader(g, n, "Mul", readers);
  if (mul == kNoNode || !fits(g, other(g.node(mul), n), p.x)) return;
  p.scale = other(g.node(mul), n);
  p.last = mul;
  if (p.rms) return;
  const ValueId scaled = g.node(mul).outputs.at(0);
  const NodeId add = binary_reader(g, scaled, "Add", readers);
  if (add == kNoNode || !fits(g, other(g.node(add), scaled), p.x)) return;
  p.bias = other(g.node(add), scaled);
  p.last = add;
}

// TensorFlow: with k = scale / root, x k + (bias - mean k).
bool match_folded(const Graph& g, ValueId k, const Readers& readers, Pattern& p) {
  if (p.rms || is_output(g, k) || readers.of(k).size() != 2) return false;
  for (const std::size_t first : {0U, 1U}) {
    const Node &a = g.node(readers.of(k)[first]), &b = g.node(readers.of(k)[1 - first]);
    if (!is_binary(a, "Mul") || !is_binary(b, "Mul") || other(a, k) != p.x || mean_of(g, other(b, k)) != p.x) continue;
    const NodeId sub = binary_reader(g, b.outputs.at(0), "Sub", readers), add = binary_reader(g, a.outputs.at(0), "Add", readers);
    if (sub == kNoNode || add == kNoNode || g.node(sub).inputs[1] != b.outputs[0] || !fits(g, g.node(sub).inputs[0], p.x))
      continue;
    if (other(g.node(add), a.outputs[0]) != g.node(sub).outputs.at(0)) continue;
    p.bias = g.node(sub).inputs[0];
    p.last = add;
    return true;
  }
  return false;
}

// The nodes after the root: a division by it, or its reciprocal and a product.
bool match_quotient(const Graph& g, ValueId root, const Readers& readers, Pattern& p) {
  const NodeId id = readers.only(root);
  if (id == kNoNode) return false;
  const Node& n = g.node(id);
  if (is_binary(n, "Div") && n.inputs[1] == root && is_deviation(g, n.inputs[0], p)) {
    match_affine(g, n.outputs.at(0), readers, p);
    return true;
  }
  const bool inverse = (n.op_type == "Reciprocal" && n.domain.empty()) ||
                       (is_binary(n, "Div") && n.inputs[1] == root && scalar_value(g, n.inputs[0]) == 1.0);
  if (!inverse) return false;
  const ValueId factor = n.outputs.at(0);
  const NodeId mul = binary_reader(g, factor, "Mul", readers);
  if (mul == kNoNode) return false;
  const ValueId by = other(g.node(mul), factor);
  if (is_deviation(g, by, p)) {
    match_affine(g, g.node(mul).outputs.at(0), readers, p);
    return true;
  }
  p.scale = by;
  return fits(g, by, p.x) && match_folded(g, g.node(mul).outputs.at(0), readers, p);
}

// Factors of 1, as many as x's last axis is long; kNoValue where that is not known.
ValueId ones_for(Graph& g, ValueId x) {
  const Dim last = shape_of(g, x)->back();
  if (!last.is_const()) return kNoValue;
  Tensor ones(DataType::float32, {last.value()});
  std::fill_n(static_cast<float*>(ones.mutable_data()), last.value(), 1.0F);
  return g.add_constant(g.value(x).name + "_ones", std::move(ones));
}

bool fuse_root(Graph& g, NodeId id, const Readers& readers) {
  const Node& root = g.node(id);
  if (root.removed || !root.domain.empty() || root.op_type != "Sqrt" || root.inputs.at(0) == kNoValue) return false;
  const Node* add = made_by(g, root.inputs[0], "Add", 2);
  if (add == nullptr || !is_binary(*add, "Add")) return false;
  for (const std::size_t first : {0U, 1U}) {
    const auto epsilon = scalar_value(g, add->inputs[1 - first]);
    if (!epsilon || !(*epsilon >= 0)) continue;
    const ValueId squares = mean_of(g, add->inputs[first]);
    const ValueId deviation = squares == kNoValue ? kNoValue : square_of(g, squares);
    if (deviation == kNoValue) continue;
    Pattern p;
    p.epsilon = static_cast<float>(*epsilon);
    p.x = centred(g, deviation);
    p.rms = p.x == kNoValue;
    if (p.rms) p.x = deviation;
    const SymShape* shape = shape_of(g, p.x);
    if (shape == nullptr || shape->empty() || !is_f32(g, p.x) || !match_quotient(g, root.outputs.at(0), readers, p)) continue;
    const ValueId y = g.node(p.last).outputs.at(0);
    if (y == kNoValue || (readers.of(y).empty() && !is_output(g, y))) continue;  // fused already
    if (!same_shape(g, p.x, y)) continue;                                        // an epsilon of more axes than x
    if (p.scale == kNoValue) p.scale = ones_for(g, p.x);
    if (p.scale == kNoValue) continue;
    Node& last = g.node(p.last);
    last.domain = "com.microsoft";
    last.op_type = p.rms ? "SimplifiedLayerNormalization" : "LayerNormalization";
    last.version = 1;
    last.inputs = {p.x, p.scale};
    if (p.bias != kNoValue) last.inputs.push_back(p.bias);
    last.attributes = {};
    last.attributes.set("axis", std::int64_t{-1});
    last.attributes.set("epsilon", p.epsilon);
    return true;
  }
  return false;
}

}  // namespace

bool fuse_layer_norm(Graph& graph) {
  bool changed = false;
  const Readers readers(graph);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) changed = fuse_root(graph, id, readers) || changed;
  return changed;
}

}  // namespace sdx::fuse
