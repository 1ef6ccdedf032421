#include <algorithm>
#include <span>

#include "graph/edit.h"
#include "ops/tensor/signatures.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/match.h"

// Queries, keys and values that one product makes: x [b, t, 3, n, h] is transposed as a whole to [3, b, n, t, h], and each is
// taken from that, or it is split in three.

namespace sdx::fuse {
namespace {

struct Stack {
  NodeId transpose = kNoNode;
  NodeId reshape = kNoNode;  // [3, b, n, t, h] -> [3, b n, t, h], where there is one
  std::vector<NodeId> gathers;
};

// The nodes that read v, where all of them take one entry of its first axis; else none.
std::vector<NodeId> takers(const Graph& g, ValueId v, const Readers& readers) {
  if (is_output(g, v)) return {};
  for (const NodeId id : readers.of(v)) {
    const Node& n = g.node(id);
    if (n.removed || n.op_type != "Gather" || !n.domain.empty() || n.inputs[0] != v || n.inputs[1] == v) return {};
    const Tensor* index = constant_input(g, n, 1);
    if (index == nullptr || index->rank() != 0 || ops::parse<ops::GatherAttrs>(n).axis != 0) return {};
  }
  return readers.of(v);
}

// Split of the first axis in ones, each without that axis: Gathers in its place. timm's unbind(0) is exported so.
bool gather_parts(Graph& g, ValueId v, const Readers& readers) {
  const NodeId id = readers.only(v);
  if (id == kNoNode || g.node(id).op_type != "Split" || !g.node(id).domain.empty()) return false;
  const Node split = g.node(id);
  const std::int64_t axis = ops::parse<ops::SplitAttrs>(split).axis;
  if (axis != 0) return false;
  for (const ValueId part : split.outputs) {
    const SymShape* s = shape_of(g, part);
    if (part == kNoValue || s == nullptr || !is_const((*s)[0], 1) || is_output(g, part)) return false;
    for (const NodeId reader : readers.of(part)) {
      const Node& n = g.node(reader);
      const SymShape* out = n.op_type == "Squeeze" && n.domain.empty() ? shape_of(g, n.outputs[0]) : nullptr;
      // If several axes have extent 1, another one may be removed: the elements are the same.
      if (out == nullptr || out->size() + 1 != s->size() || !std::equal(out->begin(), out->end(), s->begin() + 1)) return false;
    }
  }
  for (std::size_t i = 0; i < split.outputs.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const ValueId index = g.add_constant(g.value(split.outputs[i]).name + "_index",
                                         Tensor::of<std::int64_t>({}, std::span<const std::int64_t>(&at, 1)));
    for (const NodeId reader : readers.of(split.outputs[i])) {
      Node gather = g.node(reader);
      g.remove_node(reader);
      gather.op_type = "Gather";
      gather.version = std::max(gather.version, 1);
      gather.inputs = {v, index};
      gather.attributes = {};
      g.add_node(std::move(gather));
    }
  }
  g.remove_node(id);
  return true;
}

bool has_known_heads(const SymShape* x) {
  return x != nullptr && x->size() == 5 && (*x)[2].is_const() && (*x)[3].is_const() && (*x)[4].is_const();
}

bool turns_stack(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  return !n.removed && n.op_type == "Transpose" && n.domain.empty() && has_perm(n, {2, 0, 3, 1, 4}) &&
         has_known_heads(shape_of(g, n.inputs[0]));
}

// `id` must satisfy turns_stack(). `readers` may be older than the removal of other stacks, because these share no node with this
// one.
std::optional<Stack> stack_at(const Graph& g, NodeId id, const Readers& readers) {
  const Node& n = g.node(id);
  const SymShape* x = shape_of(g, n.inputs[0]);
  Stack s{id, kNoNode, takers(g, n.outputs[0], readers)};
  if (!s.gathers.empty()) return s;
  s.reshape = readers.only(n.outputs[0]);
  if (s.reshape == kNoNode || g.node(s.reshape).op_type != "Reshape" || !g.node(s.reshape).domain.empty()) return std::nullopt;
  const ValueId together = g.node(s.reshape).outputs[0];
  const SymShape* to = shape_of(g, together);
  if (to == nullptr || to->size() != 4 || !(*x)[0].is_const() || !(*x)[1].is_const()) return std::nullopt;
  const bool fits =
      (*to)[0] == (*x)[2] && is_const((*to)[1], (*x)[0].value() * (*x)[3].value()) && (*to)[2] == (*x)[1] && (*to)[3] == (*x)[4];
  s.gathers = takers(g, together, readers);
  return fits && !s.gathers.empty() ? std::optional(s) : std::nullopt;
}

// Nodes that follow each other, each with one input that another made and constants.
class Chain {
 public:
  Chain(Graph& g, const Node& like) : g_(g), name_(like.name), base_(g.value(like.outputs[0]).name), version_(like.version) {}

  ValueId reshape(ValueId v, const std::vector<std::int64_t>& to, ValueId out = kNoValue) {
    return add("Reshape", {v, shape_constant(g_, base_ + "/shape", to)}, {}, out);
  }
  ValueId transpose(ValueId v, ValueId out) {
    return add("Transpose", {v}, attributes_of({{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}}), out);
  }
  ValueId gather(ValueId v, ValueId index) {
    return add("Gather", {v, index}, attributes_of({{"axis", std::int64_t{2}}}), kNoValue);
  }

 private:
  ValueId add(const char* op, std::vector<ValueId> inputs, Attributes attributes, ValueId out) {
    return add_node(g_, make_node(name_, op, version_, std::move(inputs), std::move(attributes)),
                    out != kNoValue ? out : g_.add_value(base_ + "/" + op));
  }
  Graph& g_;
  std::string name_, base_;
  int version_;
};

void take_apart(Graph& g, const Stack& s) {
  const ValueId x = g.node(s.transpose).inputs[0];
  const SymShape shape = *shape_of(g, x);
  const std::int64_t heads = shape[3].value(), size = shape[4].value();
  for (const NodeId id : s.gathers) {
    const Node gather = g.node(id);
    g.remove_node(id);
    Chain c(g, gather);
    // Flat and apart again: attention reads heads where they lie in a flat form.
    const ValueId flat = c.reshape(c.gather(x, gather.inputs[1]), {0, 0, heads * size});
    const ValueId apart = c.reshape(flat, {0, 0, heads, size});
    if (s.reshape == kNoNode) {
      c.transpose(apart, gather.outputs[0]);
    } else {
      c.reshape(c.transpose(apart, kNoValue), {shape[0].value() * heads, shape[1].value(), size}, gather.outputs[0]);
    }
  }
  if (s.reshape != kNoNode) g.remove_node(s.reshape);
  g.remove_node(s.transpose);
}

}  // namespace

bool fuse_stacked_heads(Graph& graph) {
  bool changed = false;
  std::optional<Readers> readers;
  const std::size_t count = graph.nodes().size();
  for (NodeId id = 0; id < count; ++id) {
    if (!turns_stack(graph, id)) continue;
    if (!readers) readers.emplace(graph);
    if (gather_parts(graph, graph.node(id).outputs[0], *readers)) readers.emplace(graph);
    const auto stack = stack_at(graph, id, *readers);
    if (!stack) continue;
    take_apart(graph, *stack);
    changed = true;
  }
  return changed;
}

}  // namespace sdx::fuse
