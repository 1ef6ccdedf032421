#include "passes/fuse/attention_sources.h"

#include <algorithm>

#include "ops/tensor/signatures.h"
#include "passes/fuse/match.h"

namespace sdx::fuse {

NodeId maker(const Graph& g, ValueId v) { return v == kNoValue ? kNoNode : g.value(v).producer; }

ValueId unscaled(const Graph& g, ValueId v, double& scale) {
  for (;;) {
    const NodeId id = maker(g, v);
    if (id == kNoNode) return v;
    const Node& n = g.node(id);
    if (is_binary(n, "Div")) {
      const auto by = scalar_value(g, n.inputs[1]);
      if (!by || *by == 0 || !same_shape(g, v, n.inputs[0])) return v;
      scale /= *by;
      v = n.inputs[0];
    } else if (is_binary(n, "Mul")) {
      const std::size_t i = scalar_value(g, n.inputs[1]) ? 1 : 0;
      const auto by = scalar_value(g, n.inputs[i]);
      if (!by || !same_shape(g, v, n.inputs[1 - i])) return v;
      scale *= *by;
      v = n.inputs[1 - i];
    } else {
      return v;
    }
  }
}

namespace {

// The input of a Reshape [b, s, n h] -> [b, s, n, h] that makes v; kNoValue when none does.
ValueId joined_heads(const Graph& g, ValueId v) {
  const Node* reshape = made_by(g, v, "Reshape", 2);
  if (reshape == nullptr) return kNoValue;
  const SymShape *from = shape_of(g, reshape->inputs[0]), *to = shape_of(g, v);
  if (from == nullptr || to == nullptr || from->size() != 3 || to->size() != 4) return kNoValue;
  const bool fits = (*to)[2].is_const() && (*to)[3].is_const() && is_const((*from)[2], (*to)[2].value() * (*to)[3].value()) &&
                    (*from)[0] == (*to)[0] && (*from)[1] == (*to)[1] && (*to)[2].value() > 0;
  return fits ? reshape->inputs[0] : kNoValue;
}

// Heads [b, s, n, h] behind each row, joined where they were joined before.
std::optional<Source> from_rows(const Graph& g, ValueId v, double& scale) {
  double factor = scale;
  const ValueId rows = unscaled(g, v, factor);
  const SymShape* shape = shape_of(g, rows);
  if (shape == nullptr || shape->size() != 4 || !(*shape)[2].is_const() || !(*shape)[3].is_const()) return std::nullopt;
  Source s;
  s.heads = (*shape)[2].value();
  s.flat = true;
  const ValueId flat = joined_heads(g, rows);
  s.lies = flat == kNoValue ? Source::Lies::apart : Source::Lies::joined;
  s.value = flat == kNoValue ? rows : unscaled(g, flat, factor);
  if (s.heads == 0) return std::nullopt;
  scale = factor;
  return s;
}

// Finds x [s, n, h] of v, which is [1, n, s, h] or [1, n, h, s] after a transposition of three axes by `perm`. PyTorch's exporter
// writes sequences with the batch in the second place, where it is part of the heads during the transposition.
std::optional<Source> from_one_batch(const Graph& g, ValueId v, std::initializer_list<std::int64_t> perm, double& scale) {
  const Node* apart = made_by(g, v, "Reshape", 2);
  const Node* turn = apart == nullptr ? nullptr : made_by(g, apart->inputs[0], "Transpose", 1);
  if (turn == nullptr || !has_perm(*turn, perm)) return std::nullopt;
  const SymShape *from = shape_of(g, apart->inputs[0]), *to = shape_of(g, v);
  if (from == nullptr || to == nullptr || to->size() != 4 || !is_const((*to)[0], 1)) return std::nullopt;
  if (!std::equal(from->begin(), from->end(), to->begin() + 1, to->end())) return std::nullopt;
  double factor = scale;
  Source s;
  s.value = unscaled(g, turn->inputs[0], factor);
  const SymShape* x = shape_of(g, s.value);
  if (x == nullptr || !(*x)[1].is_const() || !(*x)[2].is_const() || (*x)[1].value() == 0) return std::nullopt;
  s.heads = (*x)[1].value();
  s.flat = true;
  s.lies = Source::Lies::alone;
  scale = factor;
  return s;
}

}  // namespace

Source split_heads(const Graph& g, ValueId v, double& scale) {
  Source s;
  v = unscaled(g, v, scale);
  s.value = v;
  const SymShape* shape = shape_of(g, v);
  if (shape != nullptr && shape->size() == 4 && (*shape)[1].is_const()) s.heads = (*shape)[1].value();
  if (s.heads == 0) return s;
  if (const auto alone = from_one_batch(g, v, {1, 0, 2}, scale)) return *alone;
  const Node* transpose = made_by(g, v, "Transpose", 1);
  if (transpose == nullptr || !has_perm(*transpose, {0, 2, 1, 3})) return s;
  return from_rows(g, transpose->inputs[0], scale).value_or(s);
}

namespace {

// Reshape(Expand(Unsqueeze(x, 2))): each head of [b, n, t, h] repeated.
ValueId unrepeated(const Graph& g, ValueId v) {
  const Node* reshape = made_by(g, v, "Reshape", 2);
  const Node* expand = reshape == nullptr ? nullptr : made_by(g, reshape->inputs[0], "Expand", 2);
  if (expand == nullptr) return v;
  const NodeId id = maker(g, expand->inputs[0]);
  if (id == kNoNode || g.node(id).op_type != "Unsqueeze" || !g.node(id).domain.empty()) return v;
  const ValueId x = g.node(id).inputs[0];
  const SymShape *one = shape_of(g, x), *wide = shape_of(g, expand->inputs[0]), *all = shape_of(g, expand->outputs[0]),
                 *out = shape_of(g, v);
  if (one == nullptr || wide == nullptr || all == nullptr || out == nullptr) return v;
  if (one->size() != 4 || wide->size() != 5 || all->size() != 5 || out->size() != 4) return v;
  const bool shapes = is_const((*wide)[2], 1) && (*wide)[0] == (*one)[0] && (*wide)[1] == (*one)[1] && (*wide)[3] == (*one)[2] &&
                      (*wide)[4] == (*one)[3] && (*all)[0] == (*one)[0] && (*all)[1] == (*one)[1] && (*all)[3] == (*one)[2] &&
                      (*all)[4] == (*one)[3] && (*out)[0] == (*one)[0] && (*out)[2] == (*one)[2] && (*out)[3] == (*one)[3] &&
                      (*all)[1].is_const() && (*all)[2].is_const() && is_const((*out)[1], (*all)[1].value() * (*all)[2].value());
  return shapes ? x : v;
}

}  // namespace

Source key_source(const Graph& g, ValueId v, double& scale) {
  v = unrepeated(g, unscaled(g, v, scale));
  const Node* concat = made_by(g, v, "Concat", 2);
  const std::int64_t axis = concat == nullptr ? 0 : ops::parse<ops::ConcatAttrs>(*concat).along();
  const SymShape* past = concat == nullptr ? nullptr : shape_of(g, concat->inputs[0]);
  if (past == nullptr || past->size() != 4 || (axis != 2 && axis != -2)) return split_heads(g, v, scale);
  double factor = 1;
  Source s = split_heads(g, concat->inputs[1], factor);
  if (factor != 1) {  // of the new keys alone
    s = {concat->inputs[1], false, 0, kNoValue, kNoNode};
    const SymShape* shape = shape_of(g, s.value);
    if (shape != nullptr && shape->size() == 4 && (*shape)[1].is_const()) s.heads = (*shape)[1].value();
  }
  s.past = concat->inputs[0];
  s.cache = maker(g, v);
  return s;
}

namespace {

// x [b, n, t, h] of K' [b, n, h, t] that is turned with the first two axes as one: Reshape, Transpose, Reshape. kNoValue: it is
// not.
ValueId turned_as_three(const Graph& g, ValueId v) {
  const Node* apart = made_by(g, v, "Reshape", 2);
  const Node* turn = apart == nullptr ? nullptr : made_by(g, apart->inputs[0], "Transpose", 1);
  const Node* together = turn == nullptr || !has_perm(*turn, {0, 2, 1}) ? nullptr : made_by(g, turn->inputs[0], "Reshape", 2);
  if (together == nullptr) return kNoValue;
  const SymShape *from = shape_of(g, together->inputs[0]), *three = shape_of(g, turn->inputs[0]), *to = shape_of(g, v);
  if (from == nullptr || three == nullptr || to == nullptr || from->size() != 4 || three->size() != 3 || to->size() != 4)
    return kNoValue;
  const bool fits = (*three)[1] == (*from)[2] && (*three)[2] == (*from)[3] && (*to)[0] == (*from)[0] && (*to)[1] == (*from)[1] &&
                    (*to)[2] == (*from)[3] && (*to)[3] == (*from)[2];
  return fits ? together->inputs[0] : kNoValue;
}

}  // namespace

std::optional<Source> transposed_keys(const Graph& g, ValueId v, double& scale) {
  v = unscaled(g, v, scale);
  if (const ValueId keys = turned_as_three(g, v); keys != kNoValue) return key_source(g, keys, scale);
  if (const auto alone = from_one_batch(g, v, {1, 2, 0}, scale)) return alone;
  const Node* transpose = made_by(g, v, "Transpose", 1);
  if (transpose == nullptr) return std::nullopt;
  if (has_perm(*transpose, {0, 1, 3, 2})) return key_source(g, transpose->inputs[0], scale);
  if (!has_perm(*transpose, {0, 2, 3, 1})) return std::nullopt;
  return from_rows(g, transpose->inputs[0], scale);
}

Source heads_from_batch(const Graph& g, ValueId v, double& scale) {
  const Node* together = made_by(g, v, "Reshape", 2);
  const SymShape* from = together == nullptr ? nullptr : shape_of(g, together->inputs[0]);
  const SymShape* to = shape_of(g, v);
  if (from == nullptr || from->size() != 4 || !(*from)[0].is_const() || !(*from)[1].is_const()) return {};
  const bool same =
      is_const((*to)[0], (*from)[0].value() * (*from)[1].value()) && (*to)[1] == (*from)[2] && (*to)[2] == (*from)[3];
  const Source s = same ? split_heads(g, together->inputs[0], scale) : Source{};
  return s.flat && s.lies != Source::Lies::alone ? s : Source{};
}

bool has_form(const Graph& g, const Source& s) {
  const SymShape* shape = shape_of(g, s.value);
  return is_f32(g, s.value) && shape != nullptr && shape->size() == (s.flat && s.lies != Source::Lies::apart ? 3U : 4U) &&
         s.heads != 0;
}

bool same_rows(const Graph& g, const Source& a, const Source& b) {
  const auto rows = [&](const Source& s) {
    const SymShape& shape = *shape_of(g, s.value);
    return s.lies == Source::Lies::alone ? shape[0] : shape[s.flat ? 1 : 2];
  };
  return rows(a) == rows(b);
}

Dim batch_of(const Graph& g, const Source& s) { return s.lies == Source::Lies::alone ? Dim(1) : (*shape_of(g, s.value))[0]; }

ValueId as_operand(Graph& g, const Source& s, const std::string& name, int version) {
  if (s.lies == Source::Lies::joined) return s.value;
  const std::int64_t width = s.heads * shape_of(g, s.value)->back().value();
  const bool alone = s.lies == Source::Lies::alone;
  const std::vector<std::int64_t> to = alone ? std::vector<std::int64_t>{1, -1, width} : std::vector<std::int64_t>{0, 0, width};
  return add_reshape(g, name, version, s.value, name + "_shape", to, g.add_value(name));
}

}  // namespace sdx::fuse
