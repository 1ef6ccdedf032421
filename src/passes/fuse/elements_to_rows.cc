#include "graph/edit.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/signatures.h"
#include "passes/fuse/fuse.h"

// Graph networks, as PyTorch Geometric exports them, read and add up whole rows by GatherElements and ScatterElements, with one
// index per row that Expand repeats for every element: [e, 1, 1] -> [e, heads, width].

namespace sdx::fuse {
namespace {

// The value that Expand repeats, if it has the extent of `indices` along the axis and 1 elsewhere, and the indices cover whole
// rows of the data; else kNoValue.
ValueId one_index_per_row(const Graph& g, ValueId indices, ValueId data, std::size_t axis) {
  const Node* expand = made_by(g, indices, "Expand", 2);
  if (expand == nullptr) return kNoValue;
  const SymShape *from = shape_of(g, expand->inputs[0]), *to = shape_of(g, indices), *rows = shape_of(g, data);
  if (from == nullptr || to == nullptr || rows == nullptr || from->size() != rows->size() || to->size() != rows->size()) {
    return kNoValue;
  }
  for (std::size_t d = 0; d < rows->size(); ++d) {
    const bool fits = d == axis ? (*from)[d] == (*to)[d] : is_const((*from)[d], 1) && (*to)[d] == (*rows)[d];
    if (!fits) return kNoValue;
  }
  return expand->inputs[0];
}

ValueId reshaped(Graph& g, const Node& like, ValueId v, const std::vector<std::int64_t>& to) {
  const std::string base = g.value(like.outputs[0]).name + "/rows";
  return add_reshape(g, like.name, like.version, v, base + "_shape", to, g.add_value(base));
}

bool is_plain(const Node& n, std::string_view op) { return !n.removed && n.domain.empty() && n.op_type == op; }

bool to_gather(Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const SymShape* data = shape_of(g, n.inputs[0]);
  if (data == nullptr) return false;
  const std::int64_t axis = ops::normalize_axis(ops::parse<ops::GatherAttrs>(n).axis, data->size());
  const ValueId index = one_index_per_row(g, n.inputs[1], n.inputs[0], static_cast<std::size_t>(axis));
  if (index == kNoValue) return false;
  Node gather = n;
  g.remove_node(id);
  gather.inputs[1] = reshaped(g, gather, index, {-1});
  gather.op_type = "Gather";
  g.add_node(std::move(gather));
  return true;
}

bool to_scatter_nd(Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const SymShape* data = shape_of(g, n.inputs[0]);
  if (data == nullptr || data->empty()) return false;
  if (ops::normalize_axis(ops::parse<ops::ScatterAttrs>(n).axis, data->size()) != 0) return false;
  const ValueId index = one_index_per_row(g, n.inputs[1], n.inputs[0], 0);
  if (index == kNoValue || g.value(index).type.elem != DataType::int64) return false;
  Node scatter = n;
  g.remove_node(id);
  scatter.inputs[1] = reshaped(g, scatter, index, {-1, 1});
  scatter.op_type = "ScatterND";
  scatter.attributes.erase("axis");
  g.add_node(std::move(scatter));
  return true;
}

}  // namespace

bool elements_to_rows(Graph& graph) {
  bool changed = false;
  const std::size_t count = graph.nodes().size();
  for (NodeId id = 0; id < count; ++id) {
    const Node& n = graph.node(id);
    if (is_plain(n, "GatherElements")) {
      changed = to_gather(graph, id) || changed;
    } else if (is_plain(n, "ScatterElements")) {
      changed = to_scatter_nd(graph, id) || changed;
    }
  }
  return changed;
}

}  // namespace sdx::fuse
