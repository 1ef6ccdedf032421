#include <algorithm>

#include "passes/simplify/simplify.h"

namespace sdx::simplify {
namespace {

bool plain(const Node& n, const char* op) { return !n.removed && n.op_type == op && n.domain.empty(); }

// Multiplied with whatever rows are taken: a single number, or one for each row of `rank` axes.
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
  explicit GatherEarly(Graph& graph) : g_(graph), uses_(graph.uses()) {}

  bool run() {
    bool changed = false;
    for (NodeId id = 0; id < g_.nodes().size(); ++id) changed = step(id) || changed;  // new ones too
    return changed;
  }

 private:
  // Moves the step that makes the table's values behind the taking of rows.
  bool step(NodeId id) {
    const Node& gather = g_.node(id);
    if (!plain(gather, "Gather") || gather.attributes.get_int("axis", 0) != 0) return false;
    const ValueId data = gather.inputs[0];
    const NodeId maker = g_.value(data).producer;
    if (maker == kNoNode || data >= uses_.size() || uses_[data].size() != 1 || is_output(data) || !of_a_constant(maker))
      return false;
    const Node& made = g_.node(maker);
    if (plain(made, "Cast") || one_scale(made)) return swap(id, maker, 0, Factor::one);
    if (!plain(made, "Mul") || made.inputs[0] == made.inputs[1]) return false;
    for (std::size_t table = 0; table < 2; ++table) {
      const Factor f = factor_of(g_.value(made.inputs[1 - table]), g_.value(made.inputs[table]));
      if (f != Factor::none) return swap(id, maker, table, f);
    }
    return false;
  }

  // Whether this dequantises a constant of whole bytes with a single scale.
  bool one_scale(const Node& n) const {
    return plain(n, "DequantizeLinear") && !is_sub_byte(g_.value(n.inputs[0]).type.elem) &&
           std::all_of(n.inputs.begin() + 1, n.inputs.end(),
                       [&](ValueId v) { return v == kNoValue || g_.value(v).constant->rank() == 0; });
  }

  bool is_output(ValueId v) const { return std::find(g_.outputs().begin(), g_.outputs().end(), v) != g_.outputs().end(); }

  // Through scales, casts and factors, down to a table that is in the file.
  bool of_a_constant(NodeId id) const {
    for (int depth = 0; depth < 8; ++depth) {
      const Node& n = g_.node(id);
      const bool dequantizes = plain(n, "DequantizeLinear");
      if (!dequantizes && !plain(n, "Cast") && !plain(n, "Mul")) return false;
      NodeId next = kNoNode;
      for (const ValueId v : n.inputs) {
        if (v == kNoValue) continue;
        const ValueInfo& info = g_.value(v);
        if (info.constant && !info.is_input) continue;
        if (dequantizes || info.producer == kNoNode || next != kNoNode) return false;
        next = info.producer;
      }
      if (next == kNoNode) return true;
      id = next;
    }
    return false;
  }

  ValueId rows_of(const Node& gather, ValueId table) {
    Node n = gather;
    n.inputs[0] = table;
    n.outputs = {g_.add_value(g_.value(table).name + "/rows")};
    const ValueId out = n.outputs[0];
    g_.add_node(std::move(n));
    return out;
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
  std::vector<std::vector<NodeId>> uses_;  // of what there was before
};

}  // namespace

bool gather_early(Graph& graph) { return GatherEarly(graph).run(); }

}  // namespace sdx::simplify
