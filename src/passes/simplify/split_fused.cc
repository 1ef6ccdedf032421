// Operators of com.microsoft that optimisers of other runtimes have fused, as single steps: BiasGelu, FastGelu with bias,
// FusedMatMul and GemmFastGelu. The fusions here know those, and fuse more.

#include <numeric>
#include <string>
#include <utility>

#include "graph/edit.h"
#include "ops/matrix/signatures.h"
#include "passes/simplify/simplify.h"

namespace sdx::simplify {
namespace {

// Appends nodes whose results are named after the one that they stand for.
struct Steps {
  Graph& g;
  const Node& from;
  int count = 0;

  ValueId make(const char* domain, const char* op, int version, std::vector<ValueId> inputs, Attributes attributes, bool last) {
    const ValueId to = last ? from.outputs[0] : g.add_value(g.value(from.outputs[0]).name + "_" + std::to_string(++count));
    if (!last) g.value(to).type = Type::tensor(DataType::float32);
    return add_node(g, make_node(from.name, op, version, std::move(inputs), std::move(attributes), domain), to);
  }
  ValueId add(ValueId a, ValueId b) { return make("", "Add", 14, {a, b}, {}, false); }
};

// A vector as long as x's last axis. Others are errors, which the operator itself reports.
bool is_bias(const Graph& g, ValueId bias, ValueId x) {
  const auto& b = g.value(bias).type.shape;
  const auto& s = g.value(x).type.shape;
  return is_f32(g, bias) && b && s && b->size() == 1 && !s->empty() && b->front() == s->back();
}

// BiasGelu and FastGelu.
bool split_gelu(Graph& g, NodeId id) {
  const Node n = g.node(id);
  if (n.inputs.size() != 2 || !is_f32(g, n.inputs[0]) || n.inputs[1] == kNoValue || !is_bias(g, n.inputs[1], n.inputs[0]))
    return false;
  g.remove_node(id);
  Steps steps{g, n};
  const ValueId sum = steps.add(n.inputs[0], n.inputs[1]);
  steps.make("com.microsoft", n.op_type == "BiasGelu" ? "Gelu" : "FastGelu", 1, {sum}, {}, true);
  return true;
}

bool split_gemm_gelu(Graph& g, NodeId id) {
  const Node n = g.node(id);
  const bool has_bias = n.inputs.size() > 2 && n.inputs[2] != kNoValue;
  if (!is_f32(g, n.inputs[0]) || !is_f32(g, n.inputs[1]) || (has_bias && !is_bias(g, n.inputs[2], n.inputs[1]))) return false;
  g.remove_node(id);
  Steps steps{g, n};
  ValueId y = steps.make("", "MatMul", 13, {n.inputs[0], n.inputs[1]}, {}, false);
  if (has_bias) y = steps.add(y, n.inputs[2]);
  steps.make("com.microsoft", "FastGelu", 1, {y}, {}, true);
  return true;
}

// The axes of a matrix that is transposed.
std::vector<std::int64_t> swapped(const Graph& g, const Node& n, std::size_t i) {
  std::vector<std::int64_t> perm(g.value(n.inputs[i]).type.shape->size());
  std::iota(perm.begin(), perm.end(), std::int64_t{0});
  std::swap(perm[perm.size() - 2], perm[perm.size() - 1]);
  return perm;
}

bool split_matmul(Graph& g, NodeId id) {
  const Node n = g.node(id);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& shape = g.value(n.inputs[i]).type.shape;
    if (!is_f32(g, n.inputs[i]) || !shape || shape->size() < 2) return false;
  }
  const auto attr = ops::parse<ops::FusedMatMulAttrs>(n);
  if (attr.trans_batch_a || attr.trans_batch_b || n.op_type == "FusedMatMulActivation") return false;
  const float alpha = attr.alpha;
  g.remove_node(id);
  Steps steps{g, n};
  std::vector<ValueId> operands{n.inputs[0], n.inputs[1]};
  for (std::size_t i = 0; i < 2; ++i) {
    if (!(i == 0 ? attr.trans_a : attr.trans_b)) continue;
    operands[i] = steps.make("", "Transpose", 13, {operands[i]}, attributes_of({{"perm", swapped(g, n, i)}}), false);
  }
  const ValueId y = steps.make("", "MatMul", 13, std::move(operands), {}, alpha == 1.0F);
  if (alpha != 1.0F) {
    const ValueId factor = g.add_constant(n.name + "_alpha", Tensor::scalar<float>(alpha));
    steps.make("", "Mul", 14, {y, factor}, {}, true);
  }
  return true;
}

}  // namespace

bool split_fused(Graph& graph) {
  bool changed = false;
  const std::size_t count = graph.nodes().size();
  for (NodeId id = 0; id < count; ++id) {
    const Node& n = graph.node(id);
    if (n.removed || n.domain != "com.microsoft" || n.outputs.size() != 1) continue;
    if (n.op_type == "BiasGelu" || n.op_type == "FastGelu") changed = split_gelu(graph, id) || changed;
    if (n.op_type == "GemmFastGelu") changed = split_gemm_gelu(graph, id) || changed;
    if (n.op_type == "FusedMatMul") changed = split_matmul(graph, id) || changed;
  }
  return changed;
}

}  // namespace sdx::simplify
