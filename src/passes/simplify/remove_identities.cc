#include <algorithm>

#include "graph/edit.h"
#include "ops/image/signatures.h"
#include "ops/random/signatures.h"
#include "ops/tensor/signatures.h"
#include "passes/simplify/simplify.h"
#include "tensor/element.h"

namespace sdx::simplify {
namespace {

const Type& type_in(const Graph& g, const Node& n, std::size_t i) { return g.value(n.inputs[i]).type; }

bool same_static_type(const Type& a, const Type& b) {
  if (!a.is_tensor() || !b.is_tensor() || a.elem != b.elem || !a.shape || !b.shape || a.shape->size() != b.shape->size())
    return false;
  for (std::size_t i = 0; i < a.shape->size(); ++i) {
    if (!((*a.shape)[i] == (*b.shape)[i])) return false;
  }
  return true;
}

// Every element of a floating or integer constant equals `value`. Looks at no more than 4096 elements.
bool all_equal(const Tensor* t, double value) {
  if (t == nullptr || t->size() == 0 || t->size() > 4096 || (!is_floating(t->dtype()) && !is_integer(t->dtype()))) return false;
  for (std::int64_t i = 0; i < t->size(); ++i) {
    if (!(element_as_double(*t, i) == value)) return false;
  }
  return true;
}

bool all_zero_ints(const Tensor* t) { return t != nullptr && is_integer(t->dtype()) && all_equal(t, 0); }

// Whether a Resize leaves each pixel in its place.
bool keeps_pixels(const Graph& g, const Node& n, const Type& in, const Type& out) {
  if (n.version < 11 || !same_static_type(in, out)) return false;
  const auto attr = ops::parse<ops::ResizeAttrs>(n);
  if (attr.mode != "linear" && attr.mode != "nearest") return false;
  if (attr.coordinate_transformation_mode == "tf_crop_and_resize" ||
      attr.coordinate_transformation_mode == "tf_half_pixel_for_nn")
    return false;
  const bool by_sizes = n.inputs.size() > 3 && n.inputs[3] != kNoValue;
  return by_sizes ? attr.keep_aspect_ratio_policy == "stretch" : all_equal(constant_input(g, n, 2), 1);
}

// Whether a ScatterND replaces every slice by the update at the same place, as exporters write `x[:, :, 0:] = y`.
bool replaces_all(const Graph& g, const Node& n, const Type& out) {
  const Tensor* const indices = constant_input(g, n, 1);
  if (indices == nullptr || indices->dtype() != DataType::int64 || indices->rank() < 2) return false;
  if (!out.has_static_shape() || !same_static_type(type_in(g, n, 0), out) || !same_static_type(type_in(g, n, 2), out))
    return false;
  if (ops::parse<ops::ScatterAttrs>(n).reduction != "none") return false;
  const Shape shape = to_shape(*out.shape);
  const auto depth = static_cast<std::size_t>(indices->shape().back());
  if (indices->rank() != depth + 1 || depth > shape.size()) return false;
  if (!std::equal(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(depth), indices->shape().begin())) return false;
  Shape expected(depth, 0);
  const Tensor aligned = indices->aligned();
  const auto given = aligned.values<std::int64_t>();
  for (std::size_t at = 0; at < given.size(); at += depth) {
    if (!std::equal(expected.begin(), expected.end(), given.begin() + static_cast<std::ptrdiff_t>(at))) return false;
    for (std::size_t axis = depth; axis-- > 0;) {
      if (++expected[axis] < shape[axis]) break;
      expected[axis] = 0;
    }
  }
  return true;
}

// The input that the node merely passes on, or -1. `out` is the type of its first output.
int passed_input(const Graph& g, const Node& n, const Type& out, const Readers& readers) {
  const std::string& op = n.op_type;
  if (!n.domain.empty()) return -1;
  if (op == "Identity") return 0;
  if (op == "Dropout") {
    const bool plain = n.outputs.size() < 2 || n.outputs[1] == kNoValue || !readers.is_read(n.outputs[1]);
    const bool trains = (n.inputs.size() > 2 && n.inputs[2] != kNoValue) || ops::parse<ops::DropoutAttrs>(n).says_training();
    return plain && !trains ? 0 : -1;
  }
  if (n.inputs.empty() || n.inputs[0] == kNoValue) return -1;
  const Type& in = type_in(g, n, 0);
  if (op == "Cast" && in.is_tensor() && in.elem != DataType::undefined && in.elem == out.elem) return 0;
  if (op == "Reshape" && same_static_type(in, out)) return 0;
  if ((op == "Flatten" || op == "Expand" || op == "Tile" || op == "Slice") && same_static_type(in, out)) {
    if (op != "Slice") return 0;
    // Equal extents with a negative step would be a reversal.
    const Tensor* steps = constant_input(g, n, 4);
    const bool forward = n.version < 10 || n.inputs.size() < 5 || n.inputs[4] == kNoValue || all_equal(steps, 1);
    return forward ? 0 : -1;
  }
  if (op == "Transpose" && in.shape) {
    const ops::IntList perm = ops::parse<ops::TransposeAttrs>(n).perm.value_or(ops::IntList());
    if (in.shape->size() <= 1) return 0;
    if (perm.empty()) return -1;
    for (std::size_t i = 0; i < perm.size(); ++i) {
      if (perm[i] != static_cast<std::int64_t>(i)) return -1;
    }
    return 0;
  }
  if (op == "Resize" && keeps_pixels(g, n, in, out)) return 0;
  if (op == "ScatterND" && n.inputs.size() == 3 && replaces_all(g, n, out)) return 2;
  if (op == "Pad" && n.version >= 11 && all_zero_ints(constant_input(g, n, 1))) return 0;
  if ((op == "Concat" || op == "Sum" || op == "Max" || op == "Min" || op == "Mean") && n.inputs.size() == 1) return 0;
  // x + 0, x - 0, x * 1, x / 1: only where the result has x's own type and shape. (x + 0 turns -0 into 0, which compares equal.)
  if (n.version >= 7 && n.inputs.size() == 2 && n.inputs[1] != kNoValue) {
    const double neutral = op == "Add" || op == "Sub" ? 0 : 1;
    if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div") {
      if (all_equal(constant_input(g, n, 1), neutral) && same_static_type(in, out)) return 0;
      if ((op == "Add" || op == "Mul") && all_equal(constant_input(g, n, 0), neutral) && same_static_type(type_in(g, n, 1), out))
        return 1;
    }
  }
  return -1;
}

// Transpose(Transpose(x)): one transposition with the product of both, which the next round removes when it moves nothing.
bool merge_transposes(Graph& g, NodeId id, Readers& readers) {
  Node& n = g.node(id);
  if (n.op_type != "Transpose" || !n.domain.empty() || n.inputs[0] == kNoValue) return false;
  const NodeId before = g.value(n.inputs[0]).producer;
  if (before == kNoNode) return false;
  const Node& first = g.node(before);
  if (first.op_type != "Transpose" || !first.domain.empty()) return false;
  const ops::IntList p = ops::parse<ops::TransposeAttrs>(first).perm.value_or(ops::IntList());
  const ops::IntList q = ops::parse<ops::TransposeAttrs>(n).perm.value_or(ops::IntList());
  if (p.empty() || q.size() != p.size()) return false;
  std::vector<std::int64_t> merged;
  for (const std::int64_t axis : q) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(p.size())) return false;
    merged.push_back(p[static_cast<std::size_t>(axis)]);
  }
  const ValueId source = first.inputs[0];
  n.attributes.set("perm", merged);
  n.inputs[0] = source;
  readers.add(source, id);
  return true;
}

}  // namespace

bool remove_identities(Graph& graph) {
  bool changed = false;
  Readers readers(graph);
  std::vector<bool> is_output(graph.values().size(), false);
  for (const ValueId v : graph.outputs()) is_output[v] = true;
  std::map<ValueId, ValueId> outputs;  // replaced at last, all at once
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (graph.node(id).removed) continue;
    changed = merge_transposes(graph, id, readers) || changed;
    const Node& node = graph.node(id);
    if (node.outputs.empty() || node.outputs[0] == kNoValue) continue;
    const ValueId out = node.outputs[0];
    const int passed = passed_input(graph, node, graph.value(out).type, readers);
    if (passed < 0) continue;
    const ValueId in = node.inputs[static_cast<std::size_t>(passed)];
    if (in == kNoValue) continue;
    // Subgraphs return their outputs by value: an output that is the graph's own input or a constant stays as it is.
    graph.remove_node(id);
    if (is_output[out]) outputs.emplace(out, in);
    readers.replace_in_nodes(graph, out, in);
    changed = true;
  }
  replace_outputs(graph, outputs);
  return changed;
}

}  // namespace sdx::simplify
