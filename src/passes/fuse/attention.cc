// Softmax(scale Q K' + mask) V as PyTorch's, TensorFlow's and optimum's exporters write it becomes Attention of the domain sdx,
// together with the reshapes and transpositions that split and join heads, repeated keys of grouped queries, and the cache before
// new keys.

#include <algorithm>
#include <cmath>
#include <set>

#include "ops/reduce/signatures.h"
#include "ops/tensor/signatures.h"
#include "passes/fuse/attention_masks.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/match.h"

namespace sdx::fuse {
namespace {

// Q, K or V: [batch, heads, rows, size], or [batch, rows, heads * size].
struct Source {
  ValueId value = kNoValue;
  bool flat = false;
  std::int64_t heads = 0;   // 0: not known, which only 4 axes allow
  ValueId past = kNoValue;  // the cache before it
  NodeId cache = kNoNode;   // what joins the two
};

struct Match {
  NodeId first = kNoNode;  // the product of Q and K
  double scale = 1;
  std::vector<Mask> masks;
  ValueId scores = kNoValue;  // of any step, for their shape
  Source q, k, v;
};

NodeId maker(const Graph& g, ValueId v) { return v == kNoValue ? kNoNode : g.value(v).producer; }

// Steps up through multiplications with and divisions by scalars.
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

// [b, n, s, h] that is split off [b, s, n h].
Source split_heads(const Graph& g, ValueId v, double& scale) {
  Source s;
  v = unscaled(g, v, scale);
  s.value = v;
  const SymShape* shape = shape_of(g, v);
  if (shape != nullptr && shape->size() == 4 && (*shape)[1].is_const()) s.heads = (*shape)[1].value();
  const Node* transpose = made_by(g, v, "Transpose", 1);
  if (transpose == nullptr || !has_perm(*transpose, {0, 2, 1, 3})) return s;
  const ValueId flat = joined_heads(g, unscaled(g, transpose->inputs[0], scale));
  if (flat == kNoValue || s.heads == 0) return s;
  s.value = unscaled(g, flat, scale);
  s.flat = true;
  return s;
}

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

// Keys or values [b, n, t, h].
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

// K from K' [b, n, h, t].
std::optional<Source> transposed_keys(Graph& g, ValueId v, double& scale) {
  v = unscaled(g, v, scale);
  if (const ValueId keys = turned_as_three(g, v); keys != kNoValue) return key_source(g, keys, scale);
  const Node* transpose = made_by(g, v, "Transpose", 1);
  if (transpose == nullptr) return std::nullopt;
  if (has_perm(*transpose, {0, 1, 3, 2})) return key_source(g, transpose->inputs[0], scale);
  if (!has_perm(*transpose, {0, 2, 3, 1})) return std::nullopt;
  const ValueId split = unscaled(g, transpose->inputs[0], scale);
  const ValueId flat = joined_heads(g, split);
  if (flat == kNoValue) return std::nullopt;
  Source s;
  s.heads = (*shape_of(g, split))[2].value();
  s.value = unscaled(g, flat, scale);
  s.flat = true;
  return s;
}

// Walks up from the softmax's input to the product of Q and K; false when there is none.
bool match_scores(const Graph& g, ValueId v, const Uses& uses, Match& m, int depth) {
  if (depth == 0 || v == kNoValue || only_reader(g, v, uses) == kNoNode) return false;
  const NodeId id = maker(g, v);
  if (id == kNoNode) return false;
  const Node& n = g.node(id);
  if (n.removed || !n.domain.empty()) return false;
  m.scores = v;
  if (n.op_type == "MatMul") {
    m.first = id;
    return true;
  }
  double scale = 1;
  if (const ValueId inner = unscaled(g, v, scale); inner != v) {
    Match below = m;
    // A mask that is scaled as well is no mask that Attention knows.
    if (!match_scores(g, inner, uses, below, depth - 1) || below.masks.size() != m.masks.size()) return false;
    m = below;
    m.scale *= scale;
    return true;
  }
  const auto above = [&](ValueId inner, const Mask& mask) {
    if (!same_shape(g, inner, v)) return false;
    Match below = m;
    below.masks.push_back(mask);
    if (!match_scores(g, inner, uses, below, depth - 1)) return false;
    m = below;
    return true;
  };
  const auto step = [&](std::size_t chain, const Mask& mask) { return above(n.inputs[chain], mask); };
  Mask mask;
  if (const ValueId inner = scores_in_windows(g, v, uses, mask); inner != kNoValue) return above(inner, mask);
  if (const ValueId inner = scores_in_places(g, v, uses, mask); inner != kNoValue) return above(inner, mask);
  if (is_binary(n, "Add")) return step(0, {.add = n.inputs[1]}) || step(1, {.add = n.inputs[0]});
  if (n.op_type == "Where" && n.inputs.size() == 3) {
    return step(1, {.condition = n.inputs[0], .replacement = n.inputs[2], .inverted = true}) ||
           step(2, {.condition = n.inputs[0], .replacement = n.inputs[1]});
  }
  return false;
}

// Whether v is computed from the result of `node`.
bool depends_on(const Graph& g, ValueId v, const std::set<NodeId>& nodes) {
  std::vector<ValueId> open{v};
  std::set<ValueId> seen;
  while (!open.empty()) {
    const ValueId at = open.back();
    open.pop_back();
    const NodeId id = maker(g, at);
    if (id == kNoNode || !seen.insert(at).second) continue;
    if (nodes.contains(id) || seen.size() > 4096) return true;
    for (const ValueId in : g.node(id).inputs) {
      if (in != kNoValue) open.push_back(in);
    }
    for (const Subgraph& s : g.node(id).subgraphs) open.insert(open.end(), s.captures.begin(), s.captures.end());
  }
  return false;
}

// Where the heads are joined again behind the product with V: Transpose [b, n, s, h] -> [b, s, n, h], Reshape -> [b, s, n h].
NodeId join_after(const Graph& g, ValueId out, const Uses& uses, ValueId& result) {
  const NodeId turn = only_reader(g, out, uses);
  if (turn == kNoNode || g.node(turn).op_type != "Transpose" || !g.node(turn).domain.empty() ||
      !has_perm(g.node(turn), {0, 2, 1, 3})) {
    return kNoNode;
  }
  const NodeId join = only_reader(g, g.node(turn).outputs[0], uses);
  if (join == kNoNode || g.node(join).op_type != "Reshape" || !g.node(join).domain.empty()) return kNoNode;
  result = g.node(join).outputs[0];
  const SymShape *from = shape_of(g, g.node(turn).outputs[0]), *to = shape_of(g, result);
  if (from == nullptr || to == nullptr || from->size() != 4 || to->size() != 3) return kNoNode;
  const bool fits = (*from)[2].is_const() && (*from)[3].is_const() && (*from)[0] == (*to)[0] && (*from)[1] == (*to)[1] &&
                    is_const((*to)[2], (*from)[2].value() * (*from)[3].value());
  return fits ? join : kNoNode;
}

// The steps between softmax and the product with V: none, or zeros in place of the NaN of rows that see nothing.
ValueId probabilities(const Graph& g, ValueId v, const Uses& uses) {
  if (v >= uses.size() || uses[v].size() != 2 || is_output(g, v)) return v;
  for (const NodeId id : uses[v]) {
    const Node& where = g.node(id);
    if (where.op_type != "Where" || where.inputs.size() != 3 || where.inputs[2] != v) continue;
    const Node* nan = made_by(g, where.inputs[0], "IsNaN", 1);
    const auto zero = scalar_value(g, where.inputs[1]);
    if (nan != nullptr && nan->inputs[0] == v && zero && *zero == 0) return where.outputs[0];
  }
  return v;
}

bool is_last_axis_softmax(const Graph& g, const Node& n) {
  if (n.removed || n.op_type != "Softmax" || !n.domain.empty() || !is_f32(g, n.inputs.at(0))) return false;
  const SymShape* s = shape_of(g, n.inputs[0]);
  if (s == nullptr || (s->size() != 4 && s->size() != 3)) return false;
  const std::int64_t axis = ops::parse<ops::SoftmaxAttrs>(n).axis, rank = static_cast<std::int64_t>(s->size());
  return axis == -1 || axis == rank - 1;
}

// Without Q in their flat form K and V may still have theirs; without a known count of heads nothing may.
bool complete(Graph& g, Match& m, ValueId probs, NodeId last) {
  const Node &first = g.node(m.first), &second = g.node(last);
  if (second.op_type != "MatMul" || !second.domain.empty() || second.inputs[0] != probs) return false;
  m.q = split_heads(g, first.inputs[0], m.scale);
  auto k = transposed_keys(g, first.inputs[1], m.scale);
  if (!k) return false;
  m.k = *k;
  double values = 1;
  m.v = key_source(g, second.inputs[1], values);
  if (values != 1) {  // scaled values: only as they are
    m.v = Source{second.inputs[1], false, 0, kNoValue, kNoNode};
    const SymShape* s = shape_of(g, m.v.value);
    if (s != nullptr && s->size() == 4 && (*s)[1].is_const()) m.v.heads = (*s)[1].value();
  }
  for (const Source* s : {&m.q, &m.k, &m.v}) {
    const SymShape* shape = shape_of(g, s->value);
    if (!is_f32(g, s->value) || shape == nullptr || shape->size() != (s->flat ? 3U : 4U) || s->heads == 0) return false;
  }
  return m.k.heads == m.v.heads && m.q.heads % m.k.heads == 0 && m.scale > 0;
}

bool same_rows(const Graph& g, const Source& a, const Source& b) {
  const SymShape &x = *shape_of(g, a.value), &y = *shape_of(g, b.value);
  return x[0] == y[0] && x[a.flat ? 1 : 2] == y[b.flat ? 1 : 2];
}

// Whether the cache moves into Attention: when both halves have one and no operand or mask needs its result. Else keys and values
// are taken as they come out of it.
bool take_cache(const Graph& g, Match& m) {
  bool cached =
      m.k.cache != kNoNode && m.v.cache != kNoNode && m.k.cache != m.v.cache && is_f32(g, m.k.past) && is_f32(g, m.v.past);
  if (cached) {
    const std::set<NodeId> caches{m.k.cache, m.v.cache};
    for (const ValueId v : {m.q.value, m.k.value, m.v.value, m.k.past, m.v.past}) cached = cached && !depends_on(g, v, caches);
    for (const Mask& x : m.masks) {
      cached = cached && x.places.empty() && !depends_on(g, x.add != kNoValue ? x.add : x.condition, caches);
    }
  }
  if (cached) return true;
  for (Source* s : {&m.k, &m.v}) {
    if (s->cache != kNoNode) *s = Source{g.node(s->cache).outputs[0], false, s->heads, kNoValue, kNoNode};
  }
  return false;
}

// Heads that are part of the batch, [b n, rows, size]: each is the flat form of one head.
bool complete_three(const Graph& g, Match& m, ValueId probs, NodeId last) {
  const Node &first = g.node(m.first), &second = g.node(last);
  if (second.op_type != "MatMul" || !second.domain.empty() || second.inputs[0] != probs) return false;
  const Node* turn = made_by(g, unscaled(g, first.inputs[1], m.scale), "Transpose", 1);
  if (turn == nullptr || !has_perm(*turn, {0, 2, 1})) return false;
  m.q.value = unscaled(g, first.inputs[0], m.scale);
  m.k.value = unscaled(g, turn->inputs[0], m.scale);
  m.v.value = second.inputs[1];
  for (Source* s : {&m.q, &m.k, &m.v}) {
    s->flat = true;
    s->heads = 1;
    const SymShape* shape = shape_of(g, s->value);
    if (!is_f32(g, s->value) || shape == nullptr || shape->size() != 3) return false;
  }
  const SymShape &q = *shape_of(g, m.q.value), &k = *shape_of(g, m.k.value), &v = *shape_of(g, m.v.value);
  return q[0] == k[0] && k[0] == v[0] && q[2] == k[2] && k[1] == v[1] && m.scale > 0;
}

// [b n, t, h] that is made of [b, t, n h]; no value where it is not.
Source heads_from_batch(const Graph& g, ValueId v, double& scale) {
  const Node* together = made_by(g, v, "Reshape", 2);
  const SymShape* from = together == nullptr ? nullptr : shape_of(g, together->inputs[0]);
  const SymShape* to = shape_of(g, v);
  if (from == nullptr || from->size() != 4 || !(*from)[0].is_const() || !(*from)[1].is_const()) return {};
  const bool same =
      is_const((*to)[0], (*from)[0].value() * (*from)[1].value()) && (*to)[1] == (*from)[2] && (*to)[2] == (*from)[3];
  const Source s = same ? split_heads(g, together->inputs[0], scale) : Source{};
  return s.flat ? s : Source{};
}

// What joins heads behind a product [b n, t, h]: Reshape to [b, n, ..., h], Transpose to [b, ..., n, h], Reshape to [b, ..., n
// h]. Empty where something else follows.
std::vector<NodeId> join_after_three(const Graph& g, ValueId out, const Source& q, const Uses& uses) {
  std::vector<NodeId> nodes;
  for (const char* op : {"Reshape", "Transpose", "Reshape"}) {
    const NodeId id = only_reader(g, out, uses);
    if (id == kNoNode || g.node(id).op_type != op || !g.node(id).domain.empty() || g.node(id).inputs[0] != out) return {};
    nodes.push_back(id);
    out = g.node(id).outputs[0];
  }
  const SymShape *apart = shape_of(g, g.node(nodes[0]).outputs[0]), *turned = shape_of(g, g.node(nodes[1]).outputs[0]);
  const SymShape *to = shape_of(g, out), &flat = *shape_of(g, q.value);
  if (apart == nullptr || turned == nullptr || to == nullptr || apart->size() < 4 || apart->size() > 5) return {};
  const bool five = apart->size() == 5;
  const Node& turn = g.node(nodes[1]);
  if (!(five ? has_perm(turn, {0, 2, 3, 1, 4}) : has_perm(turn, {0, 2, 1, 3})) || (*apart)[0] != flat[0]) return {};
  for (const SymShape* s : {apart, turned, to}) {
    if (!std::all_of(s->begin(), s->end(), [](const Dim& d) { return d.is_const(); })) return {};
  }
  const bool fits = is_const((*apart)[1], q.heads) && to->size() + 1 == turned->size() &&
                    is_const(to->back(), q.heads * apart->back().value()) &&
                    std::equal(to->begin(), to->end() - 1, turned->begin());
  return fits ? nodes : std::vector<NodeId>{};
}

Node attention_node(const Match& m, const std::string& name, ValueId mask, ValueId result) {
  Node n;
  n.name = name;
  n.domain = "sdx";
  n.op_type = "Attention";
  n.version = 1;
  n.attributes.set("scale", static_cast<float>(m.scale));
  n.attributes.set("q_num_heads", m.q.heads);
  n.attributes.set("kv_num_heads", m.k.heads);
  n.inputs = {m.q.value, m.k.value, m.v.value};
  if (mask != kNoValue) n.inputs.push_back(mask);
  n.outputs = {result};
  return n;
}

// The heads leave the batch where they come from a flat form and go back to one, else each is an entry of the batch.
bool fuse_three(Graph& g, Match& m, const SymShape& scores, ValueId probs, NodeId last, const Uses& uses, const std::string& name,
                int version) {
  if (!complete_three(g, m, probs, last)) return false;
  double scale = m.scale, values = 1;
  const Source q = heads_from_batch(g, m.q.value, scale), k = heads_from_batch(g, m.k.value, scale),
               v = heads_from_batch(g, m.v.value, values);
  ValueId result = g.node(last).outputs[0];
  std::vector<NodeId> joins;
  if (q.flat && k.flat && v.flat && q.heads == k.heads && q.heads == v.heads && values == 1 && scale > 0) {
    joins = join_after_three(g, result, q, uses);
  }
  const bool leave = !joins.empty();
  if (leave) {
    m.q = q, m.k = k, m.v = v;
    m.scale = scale;
  }
  const ValueId mask = joined_masks(g, m.masks, scores, m.q.heads, name, version);
  g.remove_node(last);
  if (leave) {
    const ValueId joined = g.node(joins[2]).outputs[0];
    for (const NodeId id : joins) g.remove_node(id);
    result = g.add_value(name + "_joined");
    std::vector<std::int64_t> to;
    for (const Dim& d : *shape_of(g, joined)) to.push_back(d.value());
    add_reshape(g, name, version, result, name + "_shape", to, joined);
  }
  g.add_node(attention_node(m, name, mask, result));
  return true;
}

bool fuse_at(Graph& g, NodeId id, const Uses& uses) {
  if (!is_last_axis_softmax(g, g.node(id))) return false;
  const int version = g.node(id).version;
  const std::string name = g.node(id).name.empty() ? "attention" : g.node(id).name;
  Match m;
  if (!match_scores(g, g.node(id).inputs[0], uses, m, 8)) return false;
  const SymShape scores = *shape_of(g, g.node(id).inputs[0]);
  if (!std::all_of(m.masks.begin(), m.masks.end(), [&](const Mask& x) { return usable(g, x, scores); })) return false;
  const ValueId probs = probabilities(g, g.node(id).outputs.at(0), uses);
  const NodeId last = only_reader(g, probs, uses);
  if (last == kNoNode) return false;
  if (scores.size() == 3) return fuse_three(g, m, scores, probs, last, uses, name, version);
  if (!complete(g, m, probs, last)) return false;

  const bool cached = take_cache(g, m);
  if (!same_rows(g, m.k, m.v)) return false;

  ValueId result = g.node(last).outputs[0];
  ValueId joined = kNoValue;
  NodeId end = m.q.flat ? join_after(g, result, uses, joined) : kNoNode;
  if (end == kNoNode) {
    end = last;
    if (m.q.flat) {  // as it enters the product; a factor on the way has been taken into the scale
      double ignored = 1;
      m.q = Source{unscaled(g, g.node(m.first).inputs[0], ignored), false, m.q.heads, kNoValue, kNoNode};
      if (ignored != 1 && made_by(g, m.q.value, "Transpose", 1) != nullptr) {
        double inside = 1;
        unscaled(g, made_by(g, m.q.value, "Transpose", 1)->inputs[0], inside);
        if (inside != 1) return false;
      }
    }
  } else {
    result = joined;
  }

  const Dim past = cached ? (*shape_of(g, m.k.past))[2] : Dim(0);
  const bool causal = scores[2].is_const() && is_causal(g, m.masks) && past == scores[3] - scores[2];
  const ValueId mask = causal ? kNoValue : joined_masks(g, m.masks, scores, 1, name, version);
  Node attention = attention_node(m, name, mask, result);
  if (causal) attention.attributes.set("is_causal", std::int64_t{1});
  if (mask == kNoValue && cached) attention.inputs.push_back(kNoValue);
  if (end != last) {
    g.remove_node(g.value(g.node(end).inputs[0]).producer);
    g.remove_node(end);
  }
  g.remove_node(last);
  if (cached) {
    attention.inputs.insert(attention.inputs.end(), {m.k.past, m.v.past});
    for (const NodeId c : {m.k.cache, m.v.cache}) {
      attention.outputs.push_back(g.node(c).outputs[0]);
      g.remove_node(c);
    }
  }
  g.add_node(std::move(attention));
  return true;
}

}  // namespace

bool fuse_attention(Graph& graph) {
  bool changed = false;
  const std::size_t count = graph.nodes().size();
  for (NodeId id = 0; id < count; ++id) {
    // Each fusion changes who reads what.
    if (graph.node(id).op_type == "Softmax" && !graph.node(id).removed) changed = fuse_at(graph, id, graph.uses()) || changed;
  }
  return changed;
}

}  // namespace sdx::fuse
