// Convolutions of bytes run with the channels last (com.microsoft QLinearConv, channels_last 1): a pixel's channels lie together,
// so that a 1x1 convolution gathers nothing and any other copies whole pixels. Transposes are put around each; operators that
// can work in either order follow their operands, so that transposes are left only at the edges of a region.

#include <algorithm>

#include "base/system/cpu_features.h"
#include "ops/quant/signatures.h"
#include "ops/tensor/signatures.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/qdq_parts.h"

namespace sdx::fuse {
namespace {

using Ints = std::vector<std::int64_t>;

// [N, C, spatial...] to [N, spatial..., C] and back.
Ints to_last(std::size_t rank) {
  Ints perm{0};
  for (std::size_t i = 2; i < rank; ++i) perm.push_back(static_cast<std::int64_t>(i));
  perm.push_back(1);
  return perm;
}
Ints to_first(std::size_t rank) {
  Ints perm{0, static_cast<std::int64_t>(rank) - 1};
  for (std::size_t i = 1; i + 1 < rank; ++i) perm.push_back(static_cast<std::int64_t>(i));
  return perm;
}

std::size_t rank_of(const Graph& g, ValueId v) {
  const Type& t = g.value(v).type;
  return t.is_tensor() && t.shape ? t.shape->size() : 0;
}

bool is_byte_image(const Graph& g, ValueId v) { return rank_of(g, v) == 4 && is_byte(g.value(v).type.elem); }

// The value with the channels last whose transpose v is; kNoValue: v is none.
ValueId last_of(const Graph& g, ValueId v) {
  const Node* t = made_by(g, v, "Transpose", 1);
  if (t == nullptr || !is_byte(g.value(v).type.elem)) return kNoValue;
  const ops::IntList perm = ops::parse<ops::TransposeAttrs>(*t).perm.value_or(ops::IntList());
  return perm.size() >= 3 && std::ranges::equal(perm, to_first(perm.size())) ? t->inputs[0] : kNoValue;
}

ValueId transposed(Graph& g, ValueId v, Ints perm, int version) {
  const std::string name = g.value(v).name + "_last";
  const ValueId out = add_node(g, make_node(name, "Transpose", version, {v}, {{"perm", std::move(perm)}}), name);
  g.value(out).type = Type::tensor(g.value(v).type.elem);
  return out;
}

// The operand with its channels last, transposed here if nothing else gives it.
ValueId operand(Graph& g, ValueId v, int version) {
  const ValueId last = last_of(g, v);
  return last != kNoValue ? last : transposed(g, v, to_last(rank_of(g, v)), version);
}

// Makes the node give its results with the channels last; transposes after it restore the previous values.
void turn(Graph& g, NodeId id, Node n, int version) {
  std::vector<Node> after;
  for (ValueId& out : n.outputs) {
    const ValueId last = g.add_value(g.value(out).name + "_last");
    g.value(last).type = Type::tensor(g.value(out).type.elem);
    after.push_back(make_node(g.value(out).name + "_first", "Transpose", version, {last}, {{"perm", to_first(rank_of(g, out))}}));
    after.back().outputs = {out};
    out = last;
  }
  g.remove_node(id);
  g.add_node(std::move(n));
  for (Node& t : after) g.add_node(std::move(t));
}

// The least outputs of a group for which convolutions with the channels last are faster. Kernels for AVX512-VNNI
// (quant_grouped.h) share a vector of outputs among groups; others leave most of it unused: 3.2 instead of 1.0 ms for 32 groups
// of 4 under AVX2.
std::int64_t least_outputs() { return cpu_isa() == Isa::avx512 && use_vnni(Isa::avx512) ? 4 : 8; }

// One group, one channel per group, or groups that are not too narrow.
bool wants_last(const Graph& g, const Node& n) {
  if (n.op_type != "QLinearConv" || ops::parse<ops::QLinearConvAttrs>(n).channels_last) return false;
  const Tensor* w = constant_of(g, input_of(n, 3));
  if (w == nullptr || w->rank() != 4 || !is_byte_image(g, n.inputs[0]) || rank_of(g, n.outputs[0]) != 4) return false;
  const std::int64_t group = ops::group_of(n.attributes);
  const std::int64_t columns = group < 1 ? 0 : w->shape()[0] / group;
  return group == 1 || (columns == 1 && w->shape()[1] == 1) || columns >= least_outputs();
}

bool turn_conv(Graph& g, NodeId id, int version) {
  Node n = g.node(id);
  if (!wants_last(g, n)) return false;
  n.domain = "com.microsoft";
  n.version = 1;
  n.attributes.set("channels_last", std::int64_t{1});
  n.inputs[0] = operand(g, n.inputs[0], version);
  turn(g, id, std::move(n), version);
  return true;
}

// Not only where its operand is there: no kernel pools bytes with the channels first.
bool turn_average_pool(Graph& g, NodeId id, int version) {
  Node n = g.node(id);
  if (ops::parse<ops::QLinearPoolAttrs>(n).channels_last || !is_byte_image(g, n.inputs[0]) || rank_of(g, n.outputs[0]) != 4) {
    return false;
  }
  n.attributes.set("channels_last", std::int64_t{1});
  n.inputs[0] = operand(g, n.inputs[0], version);
  turn(g, id, std::move(n), version);
  return true;
}

// Operators that follow: each of the listed inputs must already be there with its channels last.
bool follow(Graph& g, NodeId id, const std::vector<std::size_t>& images, int version, void (*change)(Node&)) {
  Node n = g.node(id);
  for (const std::size_t i : images) {
    if (i >= n.inputs.size() || !is_byte_image(g, n.inputs[i]) || last_of(g, n.inputs[i]) == kNoValue) return false;
  }
  if (!std::ranges::all_of(n.outputs, [&](ValueId v) { return v != kNoValue && rank_of(g, v) == 4; })) return false;
  for (const std::size_t i : images) n.inputs[i] = last_of(g, n.inputs[i]);
  change(n);
  turn(g, id, std::move(n), version);
  return true;
}

void keep(Node&) {}
void set_channels_last(Node& n) { n.attributes.set("channels_last", std::int64_t{1}); }
void make_nhwc_pool(Node& n) {
  n.op_type = "NhwcMaxPool";
  n.domain = "com.microsoft";
  n.version = 1;
  n.attributes.erase("storage_order");
}

bool turn_concat(Graph& g, NodeId id, int version) {
  const Node& n = g.node(id);
  const std::int64_t axis = ops::parse<ops::QLinearConcatAttrs>(n).axis;
  if (axis != 1 && axis != -3) return false;
  std::vector<std::size_t> images;
  for (std::size_t i = 2; i < n.inputs.size(); i += 3) images.push_back(i);
  return follow(g, id, images, version, [](Node& c) { c.attributes.set("axis", std::int64_t{3}); });
}

bool turn_split(Graph& g, NodeId id, int version) {
  const std::int64_t axis = ops::parse<ops::SplitAttrs>(g.node(id)).axis;
  if (axis != 1 && axis != -3) return false;
  return follow(g, id, {0}, version, [](Node& c) { c.attributes.set("axis", std::int64_t{3}); });
}

bool turn_node(Graph& g, NodeId id, int version) {
  const Node& n = g.node(id);
  if (n.removed || n.outputs.empty() || n.outputs[0] == kNoValue || n.inputs.empty() || n.inputs[0] == kNoValue) return false;
  const std::string& op = n.op_type;
  if (op == "QLinearConv") return turn_conv(g, id, version);
  if (n.domain.empty() && op == "MaxPool") return n.outputs.size() == 1 && follow(g, id, {0}, version, make_nhwc_pool);
  if (n.domain.empty() && op == "Split") return turn_split(g, id, version);
  if (n.domain == "sdx" && op == "ByteTable") return follow(g, id, {0}, version, keep);
  if (n.domain != "com.microsoft") return false;
  if (op == "QLinearMul") return follow(g, id, {0, 3}, version, keep);
  if (op == "QLinearAdd") return same_shape(g, n.inputs[0], n.inputs[3]) && follow(g, id, {0, 3}, version, keep);
  if (op == "QLinearSigmoid" || op == "QLinearLeakyRelu") return follow(g, id, {0}, version, keep);
  if (op == "QLinearConcat") return turn_concat(g, id, version);
  if (op == "QLinearAveragePool") return turn_average_pool(g, id, version);
  if (op == "QLinearGlobalAveragePool") {
    return !ops::parse<ops::QLinearPoolAttrs>(n).channels_last && follow(g, id, {0}, version, set_channels_last);
  }
  return false;
}

// The version of ai.onnx that the model imports; 0: no node says.
int default_version(const Graph& g) {
  for (const Node& n : g.nodes()) {
    if (!n.removed && n.domain.empty()) return n.version;
  }
  return 0;
}

}  // namespace

bool bytes_channels_last(Graph& graph) {
  const int version = std::max(1, default_version(graph));
  const std::size_t count = graph.nodes().size();
  bool changed = false;
  // Nodes are visited in order, so that a node's inputs have been transposed before it.
  for (NodeId id = 0; id < count; ++id) changed = turn_node(graph, id, version) || changed;
  return changed;
}

}  // namespace sdx::fuse
