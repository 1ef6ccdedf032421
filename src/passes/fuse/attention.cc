// Softmax(scale Q K' + mask) V as PyTorch's, TensorFlow's and optimum's exporters write it becomes Attention of the domain sdx,
// together with the reshapes and transpositions that split and join heads, repeated keys of grouped queries, and the cache before
// new keys.

#include <algorithm>
#include <set>

#include "graph/edit.h"
#include "ops/attention/signatures.h"
#include "ops/reduce/signatures.h"
#include "passes/fuse/attention_masks.h"
#include "passes/fuse/attention_sources.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/match.h"

namespace sdx::fuse {
namespace {

struct Match {
  NodeId first = kNoNode;           // the product of Q and K
  double scale = 1;                 // of the scores, all in all
  double q_scale = 1, k_scale = 1;  // the parts that apply before the product
  std::vector<Mask> masks;          // the last applies first
  ValueId scores = kNoValue;        // of any step, for their shape
  Source q, k, v;
  Dim batch;                     // of the result
  bool zero_nan = false;         // weights that are NaN become 0
  bool q_scaled_inside = false;  // between its flat form and its heads
};

// Walks up from the softmax's input to the product of Q and K; false when there is none.
bool match_scores(const Graph& g, ValueId v, const Readers& readers, Match& m, int depth) {
  if (depth == 0 || v == kNoValue || readers.only(v) == kNoNode) return false;
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
    if (!match_scores(g, inner, readers, below, depth - 1) || below.masks.size() != m.masks.size()) return false;
    m = below;
    m.scale *= scale;
    return true;
  }
  const auto above = [&](ValueId inner, const Mask& mask) {
    if (!same_shape(g, inner, v)) return false;
    Match below = m;
    below.masks.push_back(mask);
    if (!match_scores(g, inner, readers, below, depth - 1)) return false;
    m = below;
    return true;
  };
  const auto step = [&](std::size_t chain, const Mask& mask) { return above(n.inputs[chain], mask); };
  Mask mask;
  if (const ValueId inner = scores_in_windows(g, v, readers, mask); inner != kNoValue) return above(inner, mask);
  if (const ValueId inner = scores_in_places(g, v, readers, mask); inner != kNoValue) return above(inner, mask);
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

// Finds the nodes that join the heads again after the product with V: Transpose [b, n, s, h] -> [b, s, n, h], Reshape -> [b, s, n
// h].
NodeId join_after(const Graph& g, ValueId out, const Readers& readers, ValueId& result) {
  const NodeId turn = readers.only(out);
  if (turn == kNoNode || g.node(turn).op_type != "Transpose" || !g.node(turn).domain.empty() ||
      !has_perm(g.node(turn), {0, 2, 1, 3})) {
    return kNoNode;
  }
  const NodeId join = readers.only(g.node(turn).outputs[0]);
  if (join == kNoNode || g.node(join).op_type != "Reshape" || !g.node(join).domain.empty()) return kNoNode;
  result = g.node(join).outputs[0];
  const SymShape *from = shape_of(g, g.node(turn).outputs[0]), *to = shape_of(g, result);
  if (from == nullptr || to == nullptr || from->size() != 4 || to->size() != 3) return kNoNode;
  const bool fits = (*from)[2].is_const() && (*from)[3].is_const() && (*from)[0] == (*to)[0] && (*from)[1] == (*to)[1] &&
                    is_const((*to)[2], (*from)[2].value() * (*from)[3].value());
  return fits ? join : kNoNode;
}

// A Transpose behind the product with V after which the elements lie as in [b, s, n h], where no Reshape to this form follows: it
// becomes a Reshape of that form. kNoNode: there is none.
NodeId rows_after(const Graph& g, ValueId out, const Readers& readers) {
  const NodeId turn = readers.only(out);
  const SymShape* from = shape_of(g, out);
  if (turn == kNoNode || g.node(turn).op_type != "Transpose" || !g.node(turn).domain.empty() || from == nullptr) return kNoNode;
  if (from->size() != 4 || !(*from)[1].is_const() || !(*from)[3].is_const()) return kNoNode;
  const bool rows = has_perm(g.node(turn), {0, 2, 1, 3}) || (has_perm(g.node(turn), {2, 0, 1, 3}) && is_const((*from)[0], 1));
  return rows ? turn : kNoNode;
}

// Removes the Transpose; returns the value of the form [b, s, n h] from which its result is then made.
ValueId reshape_rows(Graph& g, NodeId turn, const std::string& name, int version) {
  const Node n = g.node(turn);
  const SymShape from = *shape_of(g, n.inputs[0]);
  const std::int64_t heads = from[1].value(), size = from[3].value();
  const ValueId flat = g.add_value(name + "_rows");
  const bool batch_first = has_perm(n, {0, 2, 1, 3});
  g.remove_node(turn);
  const std::vector<std::int64_t> to =
      batch_first ? std::vector<std::int64_t>{0, 0, heads, size} : std::vector<std::int64_t>{-1, 1, heads, size};
  add_reshape(g, n.name, version, flat, name + "_rows_shape", to, n.outputs[0]);
  return flat;
}

// The steps between softmax and the product with V: none, or zeros in place of the NaN of rows that see nothing.
ValueId probabilities(const Graph& g, ValueId v, const Readers& readers) {
  if (readers.of(v).size() != 2 || is_output(g, v)) return v;
  for (const NodeId id : readers.of(v)) {
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

// MatMul repeats an operand whose batch is 1 for all samples: queries that a model learns once (Perceiver, Q-Former, DETR).
bool batches_fit(const Graph& g, const Match& m) {
  for (const Source* s : {&m.q, &m.k, &m.v}) {
    const Dim batch = batch_of(g, *s);
    if (!(batch == m.batch) && !is_const(batch, 1)) return false;
  }
  return true;
}

// Without Q in their flat form K and V may still have theirs; without a known count of heads nothing may.
bool complete(Graph& g, Match& m, ValueId probs, NodeId last) {
  const Node &first = g.node(m.first), &second = g.node(last);
  if (second.op_type != "MatMul" || !second.domain.empty() || second.inputs[0] != probs) return false;
  double of_q = 1, before_product = 1;
  m.q = split_heads(g, first.inputs[0], of_q);
  unscaled(g, first.inputs[0], before_product);
  m.q_scaled_inside = of_q != before_product;
  double of_k = 1;
  auto k = transposed_keys(g, first.inputs[1], of_k);
  if (!k) return false;
  m.k = *k;
  m.q_scale = of_q, m.k_scale = of_k;
  m.scale *= of_q * of_k;
  double values = 1;
  m.v = key_source(g, second.inputs[1], values);
  if (values != 1) {  // scaled values: only as they are
    m.v = Source{second.inputs[1], false, 0, kNoValue, kNoNode};
    const SymShape* s = shape_of(g, m.v.value);
    if (s != nullptr && s->size() == 4 && (*s)[1].is_const()) m.v.heads = (*s)[1].value();
  }
  for (const Source* s : {&m.q, &m.k, &m.v}) {
    if (!has_form(g, *s)) return false;
  }
  const SymShape* out = shape_of(g, second.outputs.at(0));
  if (out == nullptr || out->size() != 4) return false;
  m.batch = (*out)[0];
  if (!batches_fit(g, m)) return false;
  return m.k.heads == m.v.heads && m.q.heads % m.k.heads == 0 && m.scale > 0;
}

// Whether the cache moves into Attention: both halves must have one, and neither an operand nor a mask may need its result.
// Otherwise keys and values are taken as they leave the cache.
bool take_cache(const Graph& g, Match& m) {
  bool cached =
      m.k.cache != kNoNode && m.v.cache != kNoNode && m.k.cache != m.v.cache && is_f32(g, m.k.past) && is_f32(g, m.v.past);
  for (const Source* s : {&m.q, &m.k, &m.v}) cached = cached && batch_of(g, *s) == m.batch;
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
  const Node* turn = made_by(g, unscaled(g, first.inputs[1], m.k_scale), "Transpose", 1);
  if (turn == nullptr || !has_perm(*turn, {0, 2, 1})) return false;
  m.q.value = unscaled(g, first.inputs[0], m.q_scale);
  m.k.value = unscaled(g, turn->inputs[0], m.k_scale);
  m.v.value = second.inputs[1];
  m.scale *= m.q_scale * m.k_scale;
  for (Source* s : {&m.q, &m.k, &m.v}) {
    s->flat = true;
    s->heads = 1;
    const SymShape* shape = shape_of(g, s->value);
    if (!is_f32(g, s->value) || shape == nullptr || shape->size() != 3) return false;
  }
  const SymShape &q = *shape_of(g, m.q.value), &k = *shape_of(g, m.k.value), &v = *shape_of(g, m.v.value);
  const SymShape* out = shape_of(g, second.outputs.at(0));
  if (out == nullptr || out->size() != 3) return false;
  m.batch = (*out)[0];
  return batches_fit(g, m) && q[2] == k[2] && k[1] == v[1] && m.scale > 0;
}

// Finds the nodes that join heads after a product [b n, t, h]: Reshape to [b, n, ..., h], Transpose to [b, ..., n, h], Reshape to
// [b, ..., n h]. Empty if other nodes follow.
std::vector<NodeId> join_after_three(const Graph& g, ValueId out, const Source& q, const Readers& readers) {
  std::vector<NodeId> nodes;
  for (const char* op : {"Reshape", "Transpose", "Reshape"}) {
    const NodeId id = readers.only(out);
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

Node attention_node(Graph& g, const Match& m, const std::string& name, int version, const JoinedMasks& masks, ValueId result) {
  using enum ops::AttentionIn::Slot;
  Node n = make_node(name, "Attention", 1, {},
                     {{"scale", static_cast<float>(m.scale)},
                      {"q_num_heads", m.q.heads},
                      {"kv_num_heads", m.k.heads},
                      {"by_steps", std::int64_t{1}}},
                     "sdx");
  if (m.zero_nan) n.attributes.set("zero_nan", std::int64_t{1});
  if (m.q_scale != 1) n.attributes.set("q_scale", static_cast<float>(m.q_scale));
  if (m.k_scale != 1) n.attributes.set("k_scale", static_cast<float>(m.k_scale));
  n.inputs.assign(kHidden + 1, kNoValue);
  n.inputs[kQ] = as_operand(g, m.q, name + "_q", version);
  n.inputs[kK] = as_operand(g, m.k, name + "_k", version);
  n.inputs[kV] = as_operand(g, m.v, name + "_v", version);
  n.inputs[kMask] = masks.add;
  n.inputs[kSee] = masks.see, n.inputs[kHidden] = masks.hidden;
  n.outputs = {result};
  return n;
}

// The heads leave the batch where they come from a flat form and go back to one, else each is an entry of the batch.
bool fuse_three(Graph& g, Match& m, const SymShape& scores, ValueId probs, NodeId last, const Readers& readers,
                const std::string& name, int version) {
  if (!complete_three(g, m, probs, last)) return false;
  double of_q = 1, of_k = 1, values = 1;
  const Source q = heads_from_batch(g, m.q.value, of_q), k = heads_from_batch(g, m.k.value, of_k),
               v = heads_from_batch(g, m.v.value, values);
  const double scale = m.scale * of_q * of_k;
  ValueId result = g.node(last).outputs[0];
  std::vector<NodeId> joins;
  if (q.flat && k.flat && v.flat && q.heads == k.heads && q.heads == v.heads && values == 1 && scale > 0) {
    joins = join_after_three(g, result, q, readers);
  }
  const bool leave = !joins.empty();
  if (leave) {
    m.q = q, m.k = k, m.v = v;
    m.scale = scale;
    m.q_scale *= of_q, m.k_scale *= of_k;
  }
  const JoinedMasks masks = joined_masks(g, m.masks, scores, m.q.heads, name, version);
  g.remove_node(last);
  if (leave) {
    const ValueId joined = g.node(joins[2]).outputs[0];
    for (const NodeId id : joins) g.remove_node(id);
    result = g.add_value(name + "_joined");
    std::vector<std::int64_t> to;
    for (const Dim& d : *shape_of(g, joined)) to.push_back(d.value());
    add_reshape(g, name, version, result, name + "_shape", to, joined);
  }
  Node attention = attention_node(g, m, name, version, masks, result);
  while (attention.inputs.back() == kNoValue) attention.inputs.pop_back();
  g.add_node(std::move(attention));
  return true;
}

bool fuse_at(Graph& g, NodeId id, const Readers& readers) {
  if (!is_last_axis_softmax(g, g.node(id))) return false;
  const int version = g.node(id).version;
  const std::string name = g.node(id).name.empty() ? "attention" : g.node(id).name;
  Match m;
  if (!match_scores(g, g.node(id).inputs[0], readers, m, 8)) return false;
  const SymShape scores = *shape_of(g, g.node(id).inputs[0]);
  if (!std::all_of(m.masks.begin(), m.masks.end(), [&](const Mask& x) { return usable(g, x, scores); })) return false;
  const ValueId probs = probabilities(g, g.node(id).outputs.at(0), readers);
  const NodeId last = readers.only(probs);
  if (last == kNoNode) return false;
  m.zero_nan = probs != g.node(id).outputs[0];
  if (scores.size() == 3) return fuse_three(g, m, scores, probs, last, readers, name, version);
  if (!complete(g, m, probs, last)) return false;

  const bool cached = take_cache(g, m);
  if (!same_rows(g, m.k, m.v)) return false;

  ValueId result = g.node(last).outputs[0];
  ValueId joined = kNoValue;
  NodeId end = m.q.flat ? join_after(g, result, readers, joined) : kNoNode;
  const NodeId turn = m.q.flat && end == kNoNode ? rows_after(g, result, readers) : kNoNode;
  if (turn != kNoNode) {
    end = last;
    result = reshape_rows(g, turn, name, version);
  } else if (end == kNoNode) {
    end = last;
    if (m.q.flat) {  // as it enters the product; a factor on the way has been taken into the scale
      if (m.q_scaled_inside) return false;
      double ignored = 1;
      m.q = Source{unscaled(g, g.node(m.first).inputs[0], ignored), false, m.q.heads, kNoValue, kNoNode};
    }
  } else {
    result = joined;
  }

  const Dim past = cached ? (*shape_of(g, m.k.past))[2] : Dim(0);
  const bool causal = scores[2].is_const() && is_causal(g, m.masks) && past == scores[3] - scores[2];
  const JoinedMasks masks = joined_masks(g, m.masks, scores, 1, name, version);
  Node attention = attention_node(g, m, name, version, masks, result);
  if (causal) attention.attributes.set("is_causal", std::int64_t{1});
  if (end != last) {
    g.remove_node(g.value(g.node(end).inputs[0]).producer);
    g.remove_node(end);
  }
  g.remove_node(last);
  if (cached) {
    attention.inputs[ops::AttentionIn::kPastKey] = m.k.past;
    attention.inputs[ops::AttentionIn::kPastValue] = m.v.past;
    for (const NodeId c : {m.k.cache, m.v.cache}) {
      attention.outputs.push_back(g.node(c).outputs[0]);
      g.remove_node(c);
    }
  }
  while (attention.inputs.back() == kNoValue) attention.inputs.pop_back();
  g.add_node(std::move(attention));
  return true;
}

}  // namespace

bool fuse_attention(Graph& graph) {
  bool changed = false;
  const std::size_t count = graph.nodes().size();
  // The readers stay valid: a fusion adds and removes only values of its own pattern, and all of these have one reader.
  const Readers readers(graph);
  for (NodeId id = 0; id < count; ++id) {
    if (graph.node(id).op_type == "Softmax" && !graph.node(id).removed) changed = fuse_at(graph, id, readers) || changed;
  }
  return changed;
}

}  // namespace sdx::fuse
