// Products with weights, and the nodes after them: bias, residual, activation.

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "graph/edit.h"
#include "ops/math/fused_activation.h"
#include "ops/math/signatures.h"
#include "ops/matrix/signatures.h"
#include "ops/tensor/signatures.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/match.h"

namespace sdx::fuse {
namespace {

bool is_linear(const Node& n) { return !n.removed && n.domain == "sdx" && n.op_type == "Linear"; }

bool has_rank(const Graph& g, ValueId v) { return shape_of(g, v) != nullptr && !shape_of(g, v)->empty(); }

void make_linear(Node& n, ValueId weights, bool trans) {
  n.domain = "sdx";
  n.op_type = "Linear";
  n.version = 1;
  n.inputs[1] = weights;
  n.attributes = {};
  if (trans) n.attributes.set("transB", std::int64_t{1});
}

bool is_weight(const Graph& g, ValueId v) {
  const Tensor* w = constant_of(g, v);
  return w != nullptr && w->dtype() == DataType::float32 && w->rank() == 2 && w->size() > 0;
}

// MatMul(x, w), and MatMul(x, Transpose(w)), whose weights are read in their own order instead of being stored twice: a model
// whose last layer shares the embedding's table would hold three copies while it loads.
bool start(Graph& g, NodeId id, const Readers& readers) {
  Node& n = g.node(id);
  if (!is_binary(n, "MatMul") && !(n.op_type == "MatMul" && n.domain.empty() && !n.removed)) return false;
  if (n.inputs.size() != 2 || n.outputs.size() != 1 || n.outputs[0] == kNoValue) return false;
  if (!is_f32(g, n.inputs[0]) || !has_rank(g, n.inputs[0]) || constant_of(g, n.inputs[0]) != nullptr) return false;
  if (is_weight(g, n.inputs[1])) {
    make_linear(n, n.inputs[1], false);
    return true;
  }
  const Node* t = made_by(g, n.inputs[1], "Transpose", 1);
  if (t == nullptr || !is_weight(g, t->inputs[0])) return false;
  if (ops::parse<ops::TransposeAttrs>(*t).perm && !has_perm(*t, {1, 0})) return false;
  const ValueId turned = n.inputs[1];
  const NodeId transpose = g.value(turned).producer;
  make_linear(n, t->inputs[0], true);
  // The product itself may also read it as its left operand.
  if (readers.of(turned).size() == 1 && n.inputs[0] != turned && !is_output(g, turned)) g.remove_node(transpose);
  return true;
}

// The reader goes; its result is the fused node's.
void absorb(Graph& g, NodeId id, NodeId reader, Readers& readers) {
  const ValueId out = g.node(id).outputs[0], result = g.node(reader).outputs[0];
  g.remove_node(reader);
  readers.clear(out);
  readers.replace(g, result, out);
}

// Constants [N], [1, N], … as B.
ValueId bias_vector(Graph& g, ValueId v, std::int64_t n) {
  const Tensor* t = constant_of(g, v);
  if (t == nullptr || t->dtype() != DataType::float32 || t->rank() == 0 || t->size() != n || t->shape().back() != n)
    return kNoValue;
  if (t->rank() == 1) return v;
  const Tensor flat = t->reshaped({n});
  return g.add_constant(g.value(v).name + "_flat", flat);
}

bool add_operand(Graph& g, NodeId id, NodeId reader, Readers& readers) {
  const Node& add = g.node(reader);
  const ValueId out = g.node(id).outputs[0];
  if (!is_binary(add, "Add") || add.inputs[0] == add.inputs[1]) return false;
  const ValueId other = add.inputs[add.inputs[0] == out ? 1 : 0];
  if (!is_f32(g, other) || !same_shape(g, out, add.outputs[0])) return false;
  const Tensor* w = constant_input(g, g.node(id), 1);
  if (w == nullptr || w->rank() != 2) return false;  // of a file's own Linear
  const std::int64_t n = w->shape()[ops::parse<ops::LinearAttrs>(g.node(id)).trans_b ? 0 : 1];
  std::size_t slot = ops::LinearIn::kB;
  ValueId operand = has_input(g.node(id), ops::LinearIn::kB) ? kNoValue : bias_vector(g, other, n);
  if (operand == kNoValue && !has_input(g.node(id), ops::LinearIn::kZ) && same_shape(g, out, other)) {
    slot = ops::LinearIn::kZ;
    operand = other;
  }
  if (operand == kNoValue) return false;
  Node& linear = g.node(id);
  linear.inputs.resize(std::max(linear.inputs.size(), slot + 1), kNoValue);
  linear.inputs[slot] = operand;
  readers.add(operand, id);
  absorb(g, id, reader, readers);
  return true;
}

// The weights and bias times a factor for each column, instead of multiplying the result: layers of transformers that are scaled
// before they are added (CaiT, ResMLP, DINOv2).
bool scale_weights(Graph& g, NodeId id, NodeId reader, Readers& readers) {
  const Node& mul = g.node(reader);
  const Node n = g.node(id);
  const ValueId out = n.outputs[0];
  if (!is_binary(mul, "Mul") || mul.inputs[0] == mul.inputs[1] || has_input(n, ops::LinearIn::kZ)) return false;
  const Tensor* w = constant_input(g, n, 1);
  const bool has_bias = has_input(n, ops::LinearIn::kB);
  const Tensor* bias = has_bias ? constant_input(g, n, ops::LinearIn::kB) : nullptr;
  if (w == nullptr || w->dtype() != DataType::float32 || w->rank() != 2 || !same_shape(g, out, mul.outputs[0])) return false;
  const auto attrs = ops::parse<ops::LinearAttrs>(n);
  const std::int64_t columns = w->shape()[attrs.trans_b ? 0 : 1], inner = columns == 0 ? 0 : w->size() / columns;
  const Tensor* factors = constant_of(g, mul.inputs[mul.inputs[0] == out ? 1 : 0]);
  if (factors == nullptr || factors->dtype() != DataType::float32 || factors->rank() == 0 || factors->size() != columns ||
      factors->shape().back() != columns || attrs.bfloat16 || (has_bias && (bias == nullptr || bias->size() != columns))) {
    return false;
  }
  const Tensor aligned = factors->aligned();
  const std::span<const float> by = aligned.values<float>();
  if (!std::ranges::all_of(by, [](float v) { return std::isfinite(v); })) return false;
  const auto scaled = [&](const Tensor& t, auto&& column) {
    Tensor result(DataType::float32, t.shape());
    const std::span<const float> from = t.values<float>();
    const std::span<float> to = result.mutable_values<float>();
    for (std::size_t i = 0; i < from.size(); ++i)
      to[i] = from[i] * by[static_cast<std::size_t>(column(static_cast<std::int64_t>(i)))];
    return result;
  };
  const auto of_weight = [&](std::int64_t i) { return attrs.trans_b ? i / inner : i % columns; };
  const std::string name = g.value(mul.outputs[0]).name;
  const ValueId weights = g.add_constant(name + "_weights", scaled(w->aligned(), of_weight));
  g.node(id).inputs[1] = weights;
  if (has_bias) {
    const ValueId b = g.add_constant(name + "_bias", scaled(bias->aligned(), [](std::int64_t i) { return i; }));
    g.node(id).inputs[ops::LinearIn::kB] = b;
  }
  absorb(g, id, reader, readers);
  return true;
}

bool add_activation(Graph& g, NodeId id, NodeId reader, Readers& readers) {
  const Node& n = g.node(reader);
  if (n.inputs.size() != 1 || n.outputs.size() != 1 || n.outputs[0] == kNoValue) return false;
  const bool ms = n.domain == "com.microsoft";
  static constexpr std::array kOnnx{"Relu", "Sigmoid", "Tanh", "HardSwish"};
  static constexpr std::array kMicrosoft{"Gelu", "FastGelu", "QuickGelu"};
  const auto is = [&](const char* name) { return n.op_type == name; };
  std::string word;
  if ((n.domain.empty() && std::any_of(kOnnx.begin(), kOnnx.end(), is)) ||
      (ms && std::any_of(kMicrosoft.begin(), kMicrosoft.end(), is))) {
    word = n.op_type;
  } else if (n.domain.empty() && n.op_type == "Gelu") {
    word = ops::parse<ops::GeluAttrs>(n).tanh() ? "FastGelu" : "Gelu";
  } else {
    return false;
  }
  const float alpha = ops::parse<ops::ActivationAttrs>(n).alpha;
  Node& linear = g.node(id);
  // Gelus of fuse-gelu have a form with alpha 1.
  if (word == "QuickGelu" || (word.ends_with("Gelu") && alpha != 0)) linear.attributes.set("activation_alpha", alpha);
  linear.attributes.set("activation", std::move(word));
  absorb(g, id, reader, readers);
  return true;
}

bool extend(Graph& g, NodeId id, Readers& readers) {
  const Node& n = g.node(id);
  if (!ops::parse<ops::FusedActivationFields>(n).activation.empty()) return false;
  const NodeId reader = readers.only(n.outputs[0]);
  if (reader == kNoNode || g.node(reader).outputs.size() != 1 || g.node(reader).outputs[0] == kNoValue) return false;
  return add_operand(g, id, reader, readers) || scale_weights(g, id, reader, readers) || add_activation(g, id, reader, readers);
}

}  // namespace

bool weights_in_place(Graph& graph) {
  bool changed = false;
  const Readers readers(graph);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) changed = start(graph, id, readers) || changed;
  return changed;
}

bool fuse_linear(Graph& graph) {
  bool changed = false;
  Readers readers(graph);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (!is_linear(graph.node(id))) continue;
    while (extend(graph, id, readers)) changed = true;
  }
  return changed;
}

}  // namespace sdx::fuse
