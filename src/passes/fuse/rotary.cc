// Rotary position embedding (RoFormer, arXiv:2104.09864) as PyTorch exports of Llama, Qwen, Mistral, Phi and GPT-NeoX write it,
// x cos + concat(-x2, x1) sin with x = (x1, x2), becomes RotaryEmbedding of the domain sdx (ai.onnx 23's).

#include <cstring>
#include <map>

#include "graph/edit.h"
#include "ops/tensor/signatures.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/match.h"
#include "tensor/element.h"

namespace sdx::fuse {
namespace {

const Node* maker(const Graph& g, ValueId v) {
  return v == kNoValue || g.value(v).producer == kNoNode ? nullptr : &g.node(g.value(v).producer);
}

// The value of an input that is a constant of one integer.
std::optional<std::int64_t> integer(const Graph& g, const Node& n, std::size_t i) {
  const Tensor* t = constant_input(g, n, i);
  if (t == nullptr || t->dtype() != DataType::int64 || t->size() != 1) return std::nullopt;
  std::int64_t value;  // perhaps INT64_MAX, which is not a double
  std::memcpy(&value, t->data(), sizeof(value));
  return value;
}

// v is x[..., begin:end] of four axes; returns x.
ValueId slice_of(const Graph& g, ValueId v, std::int64_t begin, std::int64_t end) {
  const Node* n = maker(g, v);
  if (n == nullptr || n->op_type != "Slice" || !n->domain.empty() || n->inputs.size() < 4 || n->version < 10) return kNoValue;
  const SymShape* from = shape_of(g, n->inputs[0]);
  if (from == nullptr || from->size() != 4 || !(*from)[3].is_const()) return kNoValue;
  const auto axis = integer(g, *n, 3), first = integer(g, *n, 1), last = integer(g, *n, 2);
  if (!axis || !first || !last || (*axis != 3 && *axis != -1) || *first != begin) return kNoValue;
  const std::int64_t size = (*from)[3].value();
  if (*last != end && (end != size || *last < size)) return kNoValue;
  if (n->inputs.size() > 4 && n->inputs[4] != kNoValue && integer(g, *n, 4) != 1) return kNoValue;
  return n->inputs[0];
}

// x of concat(-x2, x1), where v is that and x has four axes.
ValueId turned_halves(const Graph& g, ValueId v) {
  const Node* join = made_by(g, v, "Concat", 2);
  if (join == nullptr) return kNoValue;
  const std::int64_t axis = ops::parse<ops::ConcatAttrs>(*join).along();
  const Node* negative = made_by(g, join->inputs[0], "Neg", 1);
  const SymShape* shape = shape_of(g, v);
  if (negative == nullptr || (axis != 3 && axis != -1) || shape == nullptr || shape->size() != 4 || !(*shape)[3].is_const()) {
    return kNoValue;
  }
  const std::int64_t size = (*shape)[3].value();
  if (size < 2 || size % 2 != 0) return kNoValue;
  const Node* split = maker(g, join->inputs[1]);
  if (split != nullptr && split->op_type == "Split" && split->domain.empty() && split->outputs.size() == 2) {
    const std::int64_t along = ops::parse<ops::SplitAttrs>(*split).axis;
    const SymShape* half = shape_of(g, split->outputs[0]);
    const bool fits = (along == 3 || along == -1) && split->outputs[0] == join->inputs[1] &&
                      split->outputs[1] == negative->inputs[0] && half != nullptr && half->size() == 4 &&
                      is_const((*half)[3], size / 2) && same_shape(g, split->inputs[0], v);
    return fits ? split->inputs[0] : kNoValue;
  }
  const ValueId x = slice_of(g, join->inputs[1], 0, size / 2);
  if (x == kNoValue || slice_of(g, negative->inputs[0], size / 2, size) != x || !same_shape(g, x, v)) return kNoValue;
  return x;
}

// The first half of each row of a table, as `shape`, where the second one equals it.
std::optional<Tensor> first_halves(const Tensor& table, const Shape& shape) {
  if (table.dtype() != DataType::float32) return std::nullopt;
  Tensor first(DataType::float32, shape);
  auto* to = static_cast<float*>(first.mutable_data());
  const std::int64_t half = shape.back();
  for (std::int64_t i = 0; i < first.size(); ++i) {
    const std::int64_t at = i / half * 2 * half + i % half;
    const double a = element_as_double(table, at);
    if (a != element_as_double(table, at + half)) return std::nullopt;
    to[i] = static_cast<float>(a);
  }
  return first;
}

class Rotary {
 public:
  explicit Rotary(Graph& graph) : g_(graph), readers_(graph) {}

  bool run() {
    bool changed = false;
    const std::size_t count = g_.nodes().size();
    for (NodeId id = 0; id < count; ++id) changed = fuse(id) || changed;
    return changed;
  }

 private:
  bool fuse(NodeId id) {
    if (!is_binary(g_.node(id), "Add") || g_.node(id).outputs.size() != 1) return false;
    const std::vector<ValueId> terms = g_.node(id).inputs;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const Node *plain = made_by(g_, terms[i], "Mul", 2), *turned = made_by(g_, terms[1 - i], "Mul", 2);
      if (plain == nullptr || turned == nullptr) return false;
      for (const std::size_t r : {std::size_t{0}, std::size_t{1}}) {
        const ValueId x = turned_halves(g_, turned->inputs[r]);
        if (x == kNoValue || (plain->inputs[0] != x && plain->inputs[1] != x)) continue;
        const ValueId cos = plain->inputs[plain->inputs[0] == x ? 1 : 0], sin = turned->inputs[1 - r];
        return rewrite(id, x, cos, sin);  // which moves the nodes, even where it gives up
      }
    }
    return false;
  }

  bool rewrite(NodeId id, ValueId x, ValueId cos, ValueId sin) {
    const ValueId y = g_.node(id).outputs[0];
    if (y == kNoValue || !is_f32(g_, x) || !same_shape(g_, x, y)) return false;
    const SymShape shape = *shape_of(g_, x);
    const ValueId half_cos = half_table(cos, shape), half_sin = half_cos == kNoValue ? kNoValue : half_table(sin, shape);
    if (half_sin == kNoValue) return false;
    const std::string name = g_.node(id).name.empty() ? "rotary" : g_.node(id).name;
    ValueId from = x, to = y;
    NodeId last = id;
    std::int64_t dim = 0;
    // Partial rotation: the elements behind pass as they are.
    if (const NodeId join = readers_.only(y); join != kNoNode) {
      if (const ValueId whole = partly(g_.node(join), x, y); whole != kNoValue) {
        from = whole, to = g_.node(join).outputs[0], last = join, dim = shape[3].value();
      }
    }
    Node n = make_node(name, "RotaryEmbedding", 1, {from, half_cos, half_sin}, {}, "sdx");
    n.outputs = {to};
    if (dim != 0) n.attributes.set("rotary_embedding_dim", dim);
    g_.remove_node(id);
    if (last != id) g_.remove_node(last);
    if (!before_transpose(n, from, to, name)) g_.add_node(std::move(n));
    return true;
  }

  // q where x is q[..., :dim] and `join` puts y before q[..., dim:].
  ValueId partly(const Node& join, ValueId x, ValueId y) const {
    const Node* first = maker(g_, x);
    if (join.op_type != "Concat" || !join.domain.empty() || join.inputs.size() != 2 || join.inputs[0] != y ||
        join.outputs.empty() || first == nullptr || first->inputs.empty()) {
      return kNoValue;
    }
    const std::int64_t axis = ops::parse<ops::ConcatAttrs>(join).along(), dim = (*shape_of(g_, x))[3].value();
    const SymShape* whole = shape_of(g_, first->inputs[0]);
    if ((axis != 3 && axis != -1) || whole == nullptr || whole->size() != 4 || !(*whole)[3].is_const()) return kNoValue;
    const std::int64_t size = (*whole)[3].value();
    const ValueId q = slice_of(g_, x, 0, dim);
    if (q != kNoValue && slice_of(g_, join.inputs[1], dim, size) == q && same_shape(g_, q, join.outputs[0])) return q;
    const bool split = first->op_type == "Split" && first->domain.empty() && first->outputs.size() == 2 &&
                       first->outputs[0] == x && first->outputs[1] == join.inputs[1] &&
                       same_shape(g_, first->inputs[0], join.outputs[0]);
    const std::int64_t along = ops::parse<ops::SplitAttrs>(*first).axis;
    return split && (along == 3 || along == -1) ? first->inputs[0] : kNoValue;
  }

  // Transpose(Reshape [b, s, n h] -> [b, s, n, h]) goes behind the rotation, where attention takes it in.
  bool before_transpose(Node& rotation, ValueId x, ValueId y, const std::string& name) {
    const Node* turn = made_by(g_, x, "Transpose", 1);
    const Node* split = turn == nullptr || !has_perm(*turn, {0, 2, 1, 3}) ? nullptr : made_by(g_, turn->inputs[0], "Reshape", 2);
    if (split == nullptr) return false;
    const ValueId flat = split->inputs[0];
    const SymShape *from = shape_of(g_, flat), *to = shape_of(g_, split->outputs[0]);
    if (from == nullptr || to == nullptr || from->size() != 3 || to->size() != 4 || !(*to)[2].is_const() ||
        !(*to)[3].is_const() || (*to)[2].value() < 1 || !is_const((*from)[2], (*to)[2].value() * (*to)[3].value()) ||
        !((*from)[0] == (*to)[0]) || !((*from)[1] == (*to)[1])) {
      return false;
    }
    const std::int64_t count = (*to)[2].value();
    const ValueId rotated = g_.add_value(name + "_rotated", Type(g_.value(flat).type));
    const ValueId heads = g_.add_value(name + "_heads", Type(g_.value(split->outputs[0]).type));
    rotation.attributes.set("num_heads", count);
    rotation.inputs[0] = flat;
    rotation.outputs = {rotated};
    Node reshape = *split, transpose = *turn;
    reshape.name = transpose.name = name;
    reshape.inputs[0] = rotated;
    reshape.outputs = {heads};
    transpose.inputs[0] = heads;
    transpose.outputs = {y};
    g_.add_node(std::move(rotation));
    g_.add_node(std::move(reshape));
    g_.add_node(std::move(transpose));
    return true;
  }

  // [b, s, h / 2] of a table [b, 1, s, h] whose halves are equal: an Unsqueeze of Cos or Sin of Concat(f, f), perhaps scaled, or
  // of rows that are gathered from a constant; or a constant, if all extents were known.
  ValueId half_table(ValueId table, const SymShape& x) {
    if (g_.value(table).constant) return half_constant(table, x);
    const Node* unsqueeze = maker(g_, table);
    if (unsqueeze == nullptr || unsqueeze->op_type != "Unsqueeze" || !unsqueeze->domain.empty()) return kNoValue;
    const ValueId whole = unsqueeze->inputs[0];
    const SymShape *four = shape_of(g_, table), *three = shape_of(g_, whole);
    if (four == nullptr || three == nullptr || four->size() != 4 || three->size() != 3 || !is_f32(g_, whole)) return kNoValue;
    const bool fits = is_const((*four)[1], 1) && (*four)[0] == (*three)[0] && (*four)[2] == (*three)[1] && (*three)[0] == x[0] &&
                      (*three)[1] == x[2] && (*three)[2] == x[3];
    if (!fits) return kNoValue;
    if (const auto known = halves_.find(whole); known != halves_.end()) return known->second;
    const ValueId half = half_of(whole, x[3].value(), 4);
    halves_.emplace(whole, half);
    return half;
  }

  ValueId half_constant(ValueId table, const SymShape& x) {
    if (const auto known = halves_.find(table); known != halves_.end()) return known->second;
    const Tensor& t = *g_.value(table).constant;
    const bool fits = t.rank() == 4 && t.dim(1) == 1 && !g_.value(table).is_input && is_const(x[0], t.dim(0)) &&
                      is_const(x[2], t.dim(2)) && is_const(x[3], t.dim(3));
    const std::optional<Tensor> half = fits ? first_halves(t, {t.dim(0), t.dim(2), t.dim(3) / 2}) : std::nullopt;
    const ValueId v = half ? g_.add_constant(g_.value(table).name + "_half", *half) : kNoValue;
    halves_.emplace(table, v);
    return v;
  }

  ValueId new_half(ValueId like, std::int64_t size) {
    Type type = g_.value(like).type;
    if (type.shape) type.shape->back() = Dim(size / 2);
    return g_.add_value(g_.value(like).name + "_half", std::move(type));
  }

  ValueId half_of(ValueId v, std::int64_t size, int depth) {
    const Node* n = maker(g_, v);
    if (n == nullptr || !n->domain.empty() || depth == 0) return kNoValue;
    if (n->op_type == "Concat" && n->inputs.size() == 2 && n->inputs[0] == n->inputs[1]) {
      const std::int64_t axis = ops::parse<ops::ConcatAttrs>(*n).along();
      return axis == 2 || axis == -1 ? n->inputs[0] : kNoValue;
    }
    if (n->op_type == "Gather") return gathered(*n, v, size);
    Node copy = *n;
    std::size_t chain = 0;
    if (is_binary(*n, "Mul")) {
      if (!scalar_value(g_, n->inputs[1])) chain = 1;
      if (!scalar_value(g_, n->inputs[1 - chain])) return kNoValue;
    } else if ((n->op_type != "Cos" && n->op_type != "Sin") || n->inputs.size() != 1) {
      return kNoValue;
    }
    if (!same_shape(g_, n->inputs[chain], v)) return kNoValue;
    const ValueId inner = half_of(n->inputs[chain], size, depth - 1);
    if (inner == kNoValue) return kNoValue;
    copy.inputs[chain] = inner;
    copy.outputs = {new_half(v, size)};
    const ValueId out = copy.outputs[0];
    g_.add_node(std::move(copy));
    return out;
  }

  ValueId gathered(const Node& n, ValueId v, std::int64_t size) {
    const Tensor* t = constant_input(g_, n, 0);
    if (t == nullptr || t->dtype() != DataType::float32 || t->rank() != 2 || t->dim(1) != size ||
        ops::parse<ops::GatherAttrs>(n).axis != 0)
      return kNoValue;
    std::optional<Tensor> half = first_halves(*t, {t->dim(0), size / 2});
    if (!half) return kNoValue;
    Node copy = n;
    copy.inputs[0] = g_.add_constant(g_.value(n.inputs[0]).name + "_half", std::move(*half));
    copy.outputs = {new_half(v, size)};
    const ValueId out = copy.outputs[0];
    g_.add_node(std::move(copy));
    return out;
  }

  Graph& g_;
  Readers readers_;
  std::map<ValueId, ValueId> halves_;  // table -> half of it, or kNoValue
};

}  // namespace

bool fuse_rotary(Graph& graph) { return Rotary(graph).run(); }

}  // namespace sdx::fuse
