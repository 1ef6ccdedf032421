#include "providers/cpu/layout/join_transposes.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "graph/edit.h"
#include "ops/tensor/signatures.h"

namespace sdx::cpu {
namespace {

// The value whose last two axes `v` transposes; kNoValue if it is no such transposition.
ValueId swapped_from(const Graph& g, ValueId v) {
  const NodeId producer = g.value(v).producer;
  if (producer == kNoNode || !is_op(g.node(producer), "Transpose")) return kNoValue;
  const Node& n = g.node(producer);
  const ValueId from = n.inputs.at(0);
  const auto& shape = g.value(from).type.shape;
  if (!shape || shape->size() < 2 || constant_of(g, from) != nullptr) return kNoValue;
  std::vector<std::int64_t> swapped(shape->size());
  std::iota(swapped.begin(), swapped.end(), std::int64_t{0});
  std::swap(swapped[swapped.size() - 2], swapped[swapped.size() - 1]);
  const auto attr = ops::parse<ops::TransposeAttrs>(n);
  const bool is_swap =
      attr.perm ? std::equal(attr.perm->begin(), attr.perm->end(), swapped.begin(), swapped.end()) : shape->size() == 2;
  return is_swap ? from : kNoValue;
}

bool is_matrices(const Graph& g, ValueId v) {
  const Type& t = g.value(v).type;
  return t.elem == DataType::float32 && t.shape && t.shape->size() >= 2;
}

bool join(Graph& g, NodeId id) {
  if (!is_op(g.node(id), "MatMul")) return false;
  const Node n = g.node(id);  // a copy of a product alone: other nodes may hold whole subgraphs
  if (!is_matrices(g, n.inputs[0]) || !is_matrices(g, n.inputs[1])) return false;
  const ValueId from[2] = {swapped_from(g, n.inputs[0]), swapped_from(g, n.inputs[1])};
  if (from[0] == kNoValue && from[1] == kNoValue) return false;
  Node& joined = g.node(id);
  joined.domain = "com.microsoft";
  joined.op_type = "FusedMatMul";
  joined.version = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    joined.attributes.set(i == 0 ? "transA" : "transB", std::int64_t{from[i] != kNoValue});
    if (from[i] != kNoValue) joined.inputs[i] = from[i];
  }
  return true;
}

}  // namespace

bool join_transposes(Graph& graph) {
  bool changed = false;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) changed = join(graph, id) || changed;
  if (!changed) return false;
  const Readers readers(graph);
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (!is_op(graph.node(id), "Transpose")) continue;
    if (!readers.is_read(graph.node(id).outputs.at(0))) graph.remove_node(id);
  }
  return true;
}

}  // namespace sdx::cpu
