#include <algorithm>

#include "graph/edit.h"
#include "passes/simplify/simplify.h"

namespace sdx::simplify {
namespace {

// A factor that is multiplied with the rows taken: a single number, or one for each row of `rank` axes.
enum class Factor { none, one, per_row };
Factor factor_of(const ValueInfo& value, const ValueInfo& table) {
  if (!value.constant || value.is_input || !table.type.has_static_shape()) return Factor::none;
  const Shape &s = value.constant->shape(), all = to_shape(*table.type.shape);
  if (value.constant->size() == 1 && s.size() < all.size()) return Factor::one;
  const bool ones = std::all_of(s.begin() + (s.empty() ? 0 : 1), s.end(), [](std::int64_t n) { return n == 1; });
  return !s.empty() && s.size() == all.size() && s[0] == all[0] && ones ? Factor::per_row : Factor::none;
}

class GatherEarly {
 public:
  explicit GatherEarly(Graph& graph) : g_(graph), readers_(graph) {}

  bool run() {
    bool changed = false;
    for (NodeId id = 0; id < g_.nodes().size(); ++id) changed = step(id) || changed;  // new ones too
    return changed;
  }

 private:
  // Moves the step that makes the table's values behind the taking of rows.
  bool step(NodeId id) {
    const Node& gather = g_.node(id);
    if (!is_op(gather, "Gather") || gather.attributes.get_int("axis", 0) != 0) return false;
    const ValueId data = gather.inputs[0];
    const NodeId maker = g_.value(data).producer;
    if (maker == kNoNode || readers_.of(data).size() != 1 || is_output(g_, data) || !of_a_constant(maker)) return false;
    const Node& made = g_.node(maker);
    if (is_op(made, "Cast") || one_scale(made)) return swap(id, maker, 0, Factor::one);
    if (!is_op(made, "Mul") || made.inputs[0] == made.inputs[1]) return false;
    for (std::size_t table = 0; table < 2; ++table) {
      const Factor f = factor_of(g_.value(made.inputs[1 - table]), g_.value(made.inputs[table]));
      if (f != Factor::none) return swap(id, maker, table, f);
    }
    return false;
  }

  // Whether the node dequantises a constant of whole bytes with a single scale.
  bool one_scale(const Node& n) const {
    return is_op(n, "DequantizeLinear") && !is_sub_byte(g_.value(n.inputs[0]).type.elem) &&
           std::all_of(n.inputs.begin() + 1, n.inputs.end(),
                       [&](ValueId v) { return v == kNoValue || g_.value(v).constant->rank() == 0; });
  }

  // Through scales, casts and factors, down to a table that is in the file.
  bool of_a_constant(NodeId id) const {
    for (int depth = 0; depth < 8; ++depth) {
      const Node& n = g_.node(id);
      const bool dequantizes = is_op(n, "DequantizeLinear");
      if (!dequantizes && !is_op(n, "Cast") && !is_op(n, "Mul")) return false;
      NodeId next = kNoNode;
      for (const ValueId v : n.inputs) {
        if (v == kNoValue) continue;
        if (constant_of(g_, v) != nullptr) continue;
        if (dequantizes || g_.value(v).producer == kNoNode || next != kNoNode) return false;
        next = g_.value(v).producer;
      }
      if (next == kNoNode) return true;
      id = next;
    }
    return false;
  }

  ValueId rows_of(const Node& gather, ValueId table) {
    Node n = gather;
    n.inputs[0] = table;
    return add_node(g_, std::move(n), g_.value(table).name + "/rows");
  }

  // The step comes last, on rows that a new Gather takes.
  bool swap(NodeId id, NodeId maker, std::size_t table, Factor factor) {
    const Node gather = g_.node(id);
    Node made = g_.node(maker);
    g_.remove_node(id);
    g_.remove_node(maker);
    const ValueId from = made.inputs[table];
    made.inputs[table] = rows_of(gather, from);
    if (factor == Factor::per_row) made.inputs[1 - table] = rows_of(gather, made.inputs[1 - table]);
    made.outputs = gather.outputs;
    g_.add_node(std::move(made));
    return true;
  }

  Graph& g_;
  Readers readers_;  // of what there was before
};

}  // namespace

bool gather_early(Graph& graph) { return GatherEarly(graph).run(); }

}  // namespace sdx::simplify
