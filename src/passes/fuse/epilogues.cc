// Source: com.microsoft FusedConv (Y = activation(conv(X, W) + B + Z)) and FusedGemm. The kernels apply additions and activations
// to results that are still in cache.

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "graph/edit.h"
#include "ops/math/fused_activation.h"
#include "ops/math/signatures.h"
#include "passes/fuse/fuse.h"
#include "tensor/element.h"

namespace sdx::fuse {
namespace {

struct Activation {
  std::string name;
  std::vector<float> params;
};

// A bound of Clip: its input when constant, `otherwise` when left out.
std::optional<float> bound(const Graph& g, const Node& n, std::size_t i, float otherwise) {
  if (!has_input(n, i)) return otherwise;
  const Tensor* t = constant_input(g, n, i);
  if (t == nullptr || t->size() != 1 || t->dtype() != DataType::float32) return std::nullopt;
  return static_cast<float>(element_as_double(*t, 0));
}

std::optional<Activation> clip(const Graph& g, const Node& n) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kMax = std::numeric_limits<float>::max();
  const auto attr = n.version < 11 ? std::optional(ops::parse<ops::ClipAttrs>(n)) : std::nullopt;
  const auto low = attr ? attr->min.value_or(-kMax) : bound(g, n, ops::ClipIn::kMin, -kInf);
  const auto high = attr ? attr->max.value_or(kMax) : bound(g, n, ops::ClipIn::kMax, kInf);
  // FusedConv does not define the result of bounds that cross.
  if (!low || !high || !(*low <= *high)) return std::nullopt;
  return Activation{"Clip", {*low, *high}};
}

// The node as an activation of its first input; nothing when it is none that the fused operators know.
std::optional<Activation> activation_of(const Graph& g, const Node& n) {
  const auto attr = [&] { return ops::parse<ops::ActivationAttrs>(n); };
  const std::string& op = n.op_type;
  if (n.domain == "com.microsoft") {
    const bool silu = op == "QuickGelu" && attr().alpha == 1.0F;
    return silu ? std::optional<Activation>({"Silu", {}}) : std::nullopt;
  }
  if (!n.domain.empty()) return std::nullopt;
  if (op == "Clip") return clip(g, n);
  if (n.inputs.size() != 1) return std::nullopt;
  for (const std::string_view plain : {"Relu", "Sigmoid", "Tanh", "HardSwish"}) {
    if (op == plain) return Activation{op, {}};
  }
  if (op == "LeakyRelu") return Activation{op, {attr().alpha}};
  if (op == "HardSigmoid") return Activation{op, {attr().alpha, attr().beta}};
  if (op == "Swish" && attr().alpha == 1.0F) return Activation{"Silu", {}};
  return std::nullopt;
}

bool is_candidate(const Graph& g, const Node& n) {
  if (n.removed || n.outputs.size() != 1 || n.outputs[0] == kNoValue) return false;
  const bool fused = n.domain == "com.microsoft";
  if (!fused && !n.domain.empty()) return false;
  if (!std::ranges::all_of(n.inputs, [&](ValueId v) { return v == kNoValue || is_f32(g, v); })) return false;
  if (n.op_type == (fused ? "FusedConv" : "Conv")) {
    const Tensor* w = constant_input(g, n, 1);
    return w != nullptr && w->rank() >= 3 && w->rank() <= 5 && ops::parse<ops::FusedActivationFields>(n).activation.empty();
  }
  // Before opset 7 Gemm broadcasts C by an attribute that FusedGemm lacks.
  return n.op_type == (fused ? "FusedGemm" : "Gemm") && (fused || n.version >= 7) &&
         ops::parse<ops::FusedActivationFields>(n).activation.empty();  // only here: to other operators the word may be a number
}

void make_fused(Node& n) {
  if (!n.domain.empty()) return;
  n.op_type = "Fused" + n.op_type;
  n.domain = "com.microsoft";
  n.version = 1;
}

// The reader goes; its result is the fused node's.
void absorb(Graph& g, ValueId out, NodeId reader, Readers& readers) {
  const ValueId result = g.node(reader).outputs[0];
  g.remove_node(reader);
  readers.clear(out);
  readers.replace(g, result, out);
}

bool fuse_residual(Graph& g, NodeId id, Readers& readers) {
  const Node& conv = g.node(id);
  if (conv.op_type != "Conv" && (conv.op_type != "FusedConv" || has_input(conv, 3))) return false;
  const ValueId out = conv.outputs[0];
  const NodeId reader = readers.only(out);
  if (reader == kNoNode) return false;
  const Node& add = g.node(reader);
  // Sum of two is how Caffe2's exporter writes Add; shapes are compared below, so broadcasting rules do not matter.
  const bool adds = (add.op_type == "Add" && add.version >= 7) || add.op_type == "Sum";
  if (!adds || !add.domain.empty() || add.inputs.size() != 2) return false;
  const std::size_t other = add.inputs[0] == out ? 1 : 0;
  const ValueId z = add.inputs[other];
  // Only one of the operands is the convolution's: out + out has one reader as well.
  if (z == out || z == kNoValue || constant_input(g, add, other) != nullptr) return false;
  if (!same_shape(g, out, z)) return false;
  Node& changed = g.node(id);
  make_fused(changed);
  changed.inputs.resize(4, kNoValue);
  changed.inputs[3] = z;
  readers.add(z, id);
  absorb(g, out, reader, readers);
  return true;
}

bool fuse_activation(Graph& g, NodeId id, Readers& readers) {
  const ValueId out = g.node(id).outputs[0];
  const NodeId reader = readers.only(out);
  if (reader == kNoNode || g.node(reader).inputs[0] != out || g.node(reader).outputs[0] == kNoValue) return false;
  auto activation = activation_of(g, g.node(reader));
  if (!activation) return false;
  Node& changed = g.node(id);
  make_fused(changed);
  changed.attributes.set("activation", std::move(activation->name));
  if (!activation->params.empty() && changed.op_type == "FusedConv") {
    changed.attributes.set("activation_params", std::move(activation->params));
  } else if (!activation->params.empty()) {
    changed.attributes.set("activation_alpha", activation->params[0]);
    if (activation->params.size() > 1) changed.attributes.set("activation_beta", activation->params[1]);
  }
  absorb(g, out, reader, readers);
  return true;
}

bool is_scalar(const Graph& g, const Node& n, std::size_t i, float value) {
  const Tensor* t = constant_input(g, n, i);
  return t != nullptr && t->size() == 1 && t->dtype() == DataType::float32 &&
         element_as_double(*t, 0) == static_cast<double>(value);
}

// HardSwish as exporters write it before opset 14: x * Clip(x + 3, 0, 6) / 6. Returns the four nodes when x's only readers are
// the first and the third, else nothing.
std::vector<NodeId> hard_swish_chain(const Graph& g, ValueId x, const Readers& readers) {
  if (readers.of(x).size() != 2 || is_output(g, x)) return {};
  for (const std::size_t first : {std::size_t{0}, std::size_t{1}}) {
    const NodeId add = readers.of(x)[first], mul = readers.of(x)[1 - first];
    const Node &a = g.node(add), &m = g.node(mul);
    if (!is_binary(a, "Add") || !is_binary(m, "Mul")) continue;
    const std::size_t shift = a.inputs[0] == x ? 1 : 0;
    if (a.inputs[1 - shift] != x || !is_scalar(g, a, shift, 3)) continue;
    const NodeId clipped = readers.only(a.outputs[0]);
    if (clipped == kNoNode || !g.node(clipped).domain.empty() || g.node(clipped).op_type != "Clip") continue;
    if (g.node(clipped).inputs[0] != a.outputs[0]) continue;
    const auto bounds = clip(g, g.node(clipped));
    if (!bounds || bounds->params[0] != 0 || bounds->params[1] != 6) continue;
    const ValueId c = g.node(clipped).outputs[0];
    if (readers.only(c) != mul) continue;
    if (!(m.inputs[0] == x && m.inputs[1] == c) && !(m.inputs[0] == c && m.inputs[1] == x)) continue;
    const NodeId div = readers.only(m.outputs[0]);
    if (div == kNoNode || !is_binary(g.node(div), "Div") || g.node(div).inputs[0] != m.outputs[0]) continue;
    if (!is_scalar(g, g.node(div), 1, 6) || !same_shape(g, x, g.node(div).outputs[0])) continue;
    return {add, clipped, mul, div};
  }
  return {};
}

bool fuse_hard_swish(Graph& g, NodeId id, Readers& readers) {
  const ValueId out = g.node(id).outputs[0];
  const std::vector<NodeId> chain = hard_swish_chain(g, out, readers);
  if (chain.empty()) return false;
  Node& changed = g.node(id);
  make_fused(changed);
  changed.attributes.set("activation", std::string("HardSwish"));
  const ValueId result = g.node(chain.back()).outputs[0];
  for (const NodeId n : chain) g.remove_node(n);
  readers.clear(out);
  readers.replace(g, result, out);
  return true;
}

}  // namespace

bool fuse_epilogues(Graph& graph) {
  bool changed = false;
  Readers readers(graph);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (!is_candidate(graph, graph.node(id))) continue;
    changed = fuse_residual(graph, id, readers) || changed;
    changed = fuse_activation(graph, id, readers) || fuse_hard_swish(graph, id, readers) || changed;
  }
  return changed;
}

}  // namespace sdx::fuse
