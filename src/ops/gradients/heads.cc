// Gradients of RotaryEmbedding and of com.microsoft's attention, written as products, masks and Softmax.

#include <limits>

#include "ops/attention/signatures.h"
#include "ops/gradient.h"

namespace sdx::ops {
namespace {

using Outputs = std::vector<Expr>;

template <Outputs (*formula)(GradientContext&)>
void by_formula(GradientContext& c) {
  c.through(formula);
}

Expr join(GradientContext& c, const std::vector<Expr>& parts, std::int64_t axis = 0) {
  return c.emit("Concat", parts, {{"axis", axis}});
}
Expr transposed(GradientContext& c, Expr e, const std::vector<std::int64_t>& perm) {
  return c.emit("Transpose", {e}, {{"perm", perm}});
}
Expr unsqueeze(GradientContext& c, Expr e, const std::vector<std::int64_t>& axes) {
  return c.emit("Unsqueeze", {e, c.ints(axes)});
}
Expr to_type(GradientContext& c, Expr e, DataType t) { return c.emit("Cast", {e}, {{"to", static_cast<std::int64_t>(t)}}); }
Outputs halves(GradientContext& c, Expr e) {
  return c.emit_many("Split", {e}, 2, {{"axis", std::int64_t{-1}}, {"num_outputs", std::int64_t{2}}});
}
// 0, 1, … up to axis `axis` of e.
Expr positions_of(GradientContext& c, Expr e, std::int64_t axis) {
  return c.emit("Range", {c.int_scalar(0), c.emit("Squeeze", {c.extents(e, axis, axis + 1)}), c.int_scalar(1)});
}

// --- rotary embeddings -------------------------------------------------------------------------------------------------------

constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

Expr last_extent(GradientContext& c, Expr e) { return c.extents(e, -1, kEnd); }

// Rotates x […, size]: twice as many elements as the caches have columns. cos and sin broadcast to them.
Expr rotated(GradientContext& c, Expr x, Expr cos, Expr sin, bool interleaved) {
  const Expr half = last_extent(c, cos);
  const Expr dim = call("Add", half, half);
  const Expr rest = call("Sub", last_extent(c, x), dim);
  const Expr outer = c.extents(x, 0, -1);
  const Outputs parts = c.emit_many("Split", {x, join(c, {dim, rest})}, 2, {{"axis", std::int64_t{-1}}});
  Outputs pair;
  if (interleaved) {
    pair = halves(c, c.reshape(parts[0], join(c, {outer, half, c.ints({2})})));
    for (Expr& e : pair) e = c.emit("Squeeze", {e, c.ints({-1})});
  } else {
    pair = halves(c, parts[0]);
  }
  const Expr first = pair[0] * cos - pair[1] * sin;
  const Expr second = pair[0] * sin + pair[1] * cos;
  if (!interleaved) return join(c, {first, second, parts[1]}, -1);
  const Expr pairs = join(c, {unsqueeze(c, first, {-1}), unsqueeze(c, second, {-1})}, -1);
  return join(c, {c.reshape(pairs, join(c, {outer, dim})), parts[1]}, -1);
}

// Rotates the heads of [batch, length, heads * size] or [batch, heads, length, size]; cos and sin: [batch, length, columns].
// `heads` 0: the caches determine the size.
Expr rotate_heads(GradientContext& c, Expr x, Expr cos, Expr sin, std::int64_t heads) {
  const bool interleaved = parse<RotaryAttrs>(c).interleaved;
  if (c.rank(x) == 4) return rotated(c, x, unsqueeze(c, cos, {1}), unsqueeze(c, sin, {1}), interleaved);
  const Expr half = last_extent(c, cos);
  const Expr tail = heads > 0 ? c.ints({heads, -1}) : join(c, {c.ints({-1}), call("Add", half, half)});
  const Expr split = c.emit("Reshape", {x, join(c, {c.ints({0, 0}), tail})});
  const Expr y = rotated(c, split, unsqueeze(c, cos, {2}), unsqueeze(c, sin, {2}), interleaved);
  return c.reshape(y, c.shape_of(x));
}

Expr rows(GradientContext& c, Expr table, Expr at) { return c.emit("Gather", {table, at}, {{"axis", std::int64_t{0}}}); }

Outputs rotary(GradientContext& c) {
  Expr cos = c.in(1);
  Expr sin = c.in(2);
  if (c.has_input(3)) {
    cos = rows(c, cos, c.in(3));
    sin = rows(c, sin, c.in(3));
  }
  return {rotate_heads(c, c.in(0), cos, sin, parse<RotaryAttrs>(c).num_heads)};
}

// One position for the beginning of every sequence, or one for every token.
Outputs rotary_ms(GradientContext& c) {
  const Expr x = c.in(0);
  const std::int64_t sequence = c.rank(x) == 4 ? 2 : 1;
  Expr at = c.in(1);
  if (c.rank(at) < 2) at = unsqueeze(c, call("Add", c.emit("Reshape", {at, c.ints({1})}), positions_of(c, x, sequence)), {0});
  return {rotate_heads(c, x, rows(c, c.in(2), at), rows(c, c.in(3), at), parse<RotaryAttrs>(c).num_heads)};
}

// --- attention ---------------------------------------------------------------------------------------------------------------

// [batch, length, heads * size] as [batch, heads, length, size].
Expr split_heads(GradientContext& c, Expr e, std::int64_t heads) {
  return transposed(c, c.emit("Reshape", {e, c.ints({0, 0, heads, -1})}), {0, 2, 1, 3});
}

struct Heads {
  Expr q, k, v;              // [batch, heads, length or keys, size]
  float scale = 0;           // 0: 1 / sqrt(size)
  std::vector<Expr> added;   // to the scores, [batch, heads, length, keys], to which they broadcast
  std::vector<Expr> hidden;  // where these are false nothing is seen
};

// [batch, length, heads * size]
Expr attend(GradientContext& c, const Heads& h) {
  const Expr size = c.cast_like(c.emit("Squeeze", {last_extent(c, h.q)}), h.q);
  const Expr scale = h.scale != 0 ? c.scalar(static_cast<double>(h.scale)) : 1.0 / call("Sqrt", size);
  Expr scores = call("MatMul", h.q * scale, transposed(c, h.k, {0, 1, 3, 2}));
  for (const Expr e : h.added) scores = scores + e;
  for (const Expr e : h.hidden) scores = where(e, scores, c.scalar(-std::numeric_limits<double>::infinity()));
  const Expr p = c.emit("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  const Expr y = transposed(c, call("MatMul", p, h.v), {0, 2, 1, 3});
  return c.emit("Reshape", {y, c.ints({0, 0, -1})});
}

// [length, keys]: true for keys that are not in the future.
Expr causal(GradientContext& c, const Heads& h) {
  return c.emit("GreaterOrEqual", {unsqueeze(c, positions_of(c, h.q, 2), {1}), unsqueeze(c, positions_of(c, h.k, 2), {0})});
}

// A mask of numbers says where each sequence ends, [batch], or ends and starts, [2 * batch]; other lengths begin with the ends.
Expr within(GradientContext& c, Expr mask, const Heads& h) {
  const Expr batch = c.extents(c.in(0), 0, 1);
  const Expr size = c.shape_of(mask);
  const Expr twice = call("Add", batch, batch);
  const Expr zeros = c.emit("ConstantOfShape", {twice}, {{"value", Tensor::of<std::int64_t>({1}, {0})}});
  const Expr padded = join(c, {mask, zeros});
  const Expr column = unsqueeze(c, positions_of(c, h.k, 2), {0});
  const auto part = [&](Expr from, Expr to) { return unsqueeze(c, c.emit("Slice", {padded, from, to}), {1}); };
  const Expr starts = where(call("Equal", size, twice), part(batch, twice), c.ints({0}));
  return call("And", call("Less", column, part(c.ints({0}), batch)), c.emit("GreaterOrEqual", {column, starts}));
}

// com.microsoft's masks add mask_filter_value to the scores of masked keys.
void add_mask(GradientContext& c, std::size_t slot, Heads& h, float filter) {
  if (!c.has_input(slot)) return;
  const Expr mask = c.in(slot);
  const SymShape& s = c.rank(mask) >= 0 ? *c.shape(mask) : SymShape();
  if (s.size() == 2 && s[1] == Dim(1)) return;  // means that there is none
  Expr kept;
  if (s.size() == 1) {
    kept = within(c, to_type(c, mask, DataType::int64), h);
  } else {
    kept = c.emit("Greater", {mask, to_type(c, c.int_scalar(0), DataType::int32)});
  }
  if (s.size() > 3) c.refuse("a mask with four axes");
  const Expr added = where(kept, c.scalar(0), c.scalar(static_cast<double>(filter)));
  h.added.push_back(unsqueeze(c, added, s.size() == 3 ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{1, 2}));
}

void refuse_past(GradientContext& c, std::initializer_list<std::size_t> slots) {
  for (const std::size_t i : slots) {
    if (c.has_input(i)) c.refuse("past keys");
  }
}

// Packed [batch, length, heads, parts, size].
std::vector<Expr> unpacked(GradientContext& c, Expr e, std::int64_t parts) {
  Outputs out = c.emit_many("Split", {e}, static_cast<std::size_t>(parts), {{"axis", std::int64_t{3}}, {"num_outputs", parts}});
  for (Expr& part : out) part = transposed(c, c.emit("Squeeze", {part, c.ints({3})}), {0, 2, 1, 3});
  return out;
}

std::vector<Expr> thirds(GradientContext& c, Expr e, std::int64_t axis) {
  return c.emit_many("Split", {e}, 3, {{"axis", axis}, {"num_outputs", std::int64_t{3}}});
}

// The inputs of MultiHeadAttention, in each form that they may have.
Heads multi_heads(GradientContext& c, std::int64_t heads, std::size_t bias_slot) {
  Heads h;
  const bool biased = c.has_input(bias_slot);
  if (c.rank(c.in(0)) == 5) {
    if (biased) c.refuse("a bias with packed inputs");
    const std::vector<Expr> parts = unpacked(c, c.in(0), 3);
    h.q = parts[0], h.k = parts[1], h.v = parts[2];
    return h;
  }
  std::vector<Expr> in{c.in(0), c.in(1), c.in(2)};
  if (!c.has_input(1)) in = thirds(c, c.in(0), 2);
  const std::int64_t key_rank = c.has_input(1) ? c.rank(c.in(1)) : 3;
  if (biased) {
    if (key_rank != 3) c.refuse("a bias with packed or ready keys");
    const Expr q = last_extent(c, in[0]);
    const Expr sizes = join(c, {q, q, last_extent(c, in[2])});
    const Outputs bias = c.emit_many("Split", {c.in(bias_slot), sizes}, 3, {{"axis", std::int64_t{0}}});
    for (std::size_t i = 0; i < 3; ++i) in[i] = in[i] + bias[i];
  }
  h.q = split_heads(c, in[0], heads);
  if (key_rank == 3) {
    h.k = split_heads(c, in[1], heads);
    h.v = split_heads(c, in[2], heads);
  } else if (key_rank == 4) {
    h.k = in[1], h.v = in[2];
  } else {
    const std::vector<Expr> parts = unpacked(c, in[1], 2);
    h.k = parts[0], h.v = parts[1];
  }
  return h;
}

Outputs multi_head_attention(GradientContext& c) {
  const auto attr = parse<MultiHeadAttrs>(c);
  constexpr auto slots = MultiHeadIn::of("MultiHeadAttention");
  refuse_past(c, {slots.past_key, slots.past_value});
  Heads h = multi_heads(c, attr.num_heads, slots.bias);
  h.scale = attr.scale;
  add_mask(c, slots.mask, h, attr.mask_filter_value);
  if (c.has_input(slots.attention_bias)) h.added.push_back(c.in(slots.attention_bias));
  if (attr.unidirectional) h.hidden.push_back(causal(c, h));
  return {attend(c, h), h.k, h.v};
}

Outputs projected_attention(GradientContext& c) {
  using enum ProjectedAttentionIn::Slot;
  const auto attr = parse<MultiHeadAttrs>(c);
  refuse_past(c, {kPast});
  if (attr.do_rotary) c.refuse("do_rotary");
  const Expr product = call("MatMul", c.in(kInput), c.in(kWeights));
  const Expr all = c.has_input(kBias) ? product + c.in(kBias) : product;
  const std::vector<std::int64_t> sizes = to_vector(attr.qkv_hidden_sizes);
  const Outputs parts =
      sizes.empty() ? thirds(c, all, 2) : c.emit_many("Split", {all, c.ints(sizes)}, 3, {{"axis", std::int64_t{2}}});
  Heads h;
  h.q = split_heads(c, parts[0], attr.num_heads);
  h.k = split_heads(c, parts[1], attr.num_heads);
  h.v = split_heads(c, parts[2], attr.num_heads);
  h.scale = attr.scale;
  add_mask(c, kMask, h, attr.mask_filter_value);
  if (c.has_input(kAttentionBias)) h.added.push_back(c.in(kAttentionBias));
  if (attr.unidirectional) h.hidden.push_back(causal(c, h));
  Outputs out{attend(c, h)};
  if (c.node().outputs.size() > 1) out.push_back(join(c, {unsqueeze(c, h.k, {0}), unsqueeze(c, h.v, {0})}));
  return out;
}

// Keys that several query heads share, once for each.
Expr repeated(GradientContext& c, Expr e, std::int64_t times) {
  if (times == 1) return e;
  const Expr wide = join(c, {c.extents(e, 0, 2), c.ints({times}), c.extents(e, 2, 4)});
  const Expr flat = join(c, {c.extents(e, 0, 1), c.ints({-1}), c.extents(e, 2, 4)});
  return c.emit("Reshape", {call("Expand", unsqueeze(c, e, {2}), wide), flat});
}

void check_grouped(GradientContext& c, const GroupQueryAttrs& attr) {
  using enum GroupQueryIn::Slot;
  for (const std::size_t i : {kPastKey, kPastValue}) {
    const SymShape* past = c.has_input(i) ? c.shape(c.in(i)) : nullptr;
    const bool empty = past != nullptr && past->size() == 4 && (*past)[2] == Dim(0);
    if (c.has_input(i) && !empty) c.refuse("past keys");
  }
  if (c.has_input(kSink) || attr.smooth_softmax > 0) c.refuse("smooth softmax");
  if (c.has_input(kQNorm) || c.has_input(kKNorm)) c.refuse("normalised queries and keys");
  if (attr.softcap != 0) c.refuse("softcap");
  if (attr.quantised()) c.refuse("a quantised cache");
  if (attr.heads.num_heads < 1 || attr.heads.kv_num_heads < 1 || attr.heads.num_heads % attr.heads.kv_num_heads != 0)
    c.refuse("num_heads must be a multiple of kv_num_heads");
}

// A prompt as a whole, as it is when training: sequences begin at position 0.
Outputs grouped_query_attention(GradientContext& c) {
  using enum GroupQueryIn::Slot;
  const auto attr = parse<GroupQueryAttrs>(c);
  check_grouped(c, attr);
  const std::int64_t heads = attr.heads.num_heads, kv = attr.heads.kv_num_heads;
  std::vector<Expr> in{c.in(kQuery), c.in(kKey), c.in(kValue)};
  if (!c.has_input(kKey)) {
    const Expr size = call("Div", c.extents(c.in(kQuery), 2, 3), c.ints({heads + 2 * kv}));
    in = c.emit_many("Split", {c.in(kQuery), call("Mul", size, c.ints({heads, kv, kv}))}, 3, {{"axis", std::int64_t{2}}});
  }
  Heads h;
  h.scale = attr.scale;
  h.q = split_heads(c, in[0], heads);
  h.k = split_heads(c, in[1], kv);
  h.v = split_heads(c, in[2], kv);
  const Expr at = positions_of(c, c.in(kQuery), 1);
  if (attr.do_rotary) {
    Expr places = at;
    if (c.has_input(kPositions)) {
      const Expr first = c.emit("Slice", {c.emit("Reshape", {c.in(kPositions), c.ints({-1})}), c.ints({0}), c.ints({1})});
      places = call("Add", at, first);
    }
    const Expr cos = unsqueeze(c, rows(c, c.in(kCos), places), {0, 1});
    const Expr sin = unsqueeze(c, rows(c, c.in(kSin), places), {0, 1});
    h.q = rotated(c, h.q, cos, sin, attr.rotary_interleaved);
    h.k = rotated(c, h.k, cos, sin, attr.rotary_interleaved);
  }
  const Expr present_key = h.k, present_value = h.v;
  h.k = repeated(c, h.k, heads / kv);
  h.v = repeated(c, h.v, heads / kv);
  if (c.has_input(kBias)) h.added.push_back(c.in(kBias));
  if (attr.causal) h.hidden.push_back(causal(c, h));
  const Expr row = unsqueeze(c, at, {1}), column = unsqueeze(c, at, {0});
  if (attr.local_window_size >= 0)
    h.hidden.push_back(call("Greater", column, call("Sub", row, c.int_scalar(attr.local_window_size))));
  const Expr last = unsqueeze(c, to_type(c, c.emit("Reshape", {c.in(kSeqlens), c.ints({-1})}), DataType::int64), {1, 2, 3});
  h.hidden.push_back(c.emit("LessOrEqual", {column, last}));
  return {attend(c, h), present_key, present_value};
}

}  // namespace

void register_gradients_heads(GradientTable& t) {
  t.add({{"RotaryEmbedding", by_formula<rotary>}, {"com.microsoft.RotaryEmbedding", by_formula<rotary_ms>}});
  t.add({{"com.microsoft.MultiHeadAttention", by_formula<multi_head_attention>},
         {"com.microsoft.Attention", by_formula<projected_attention>},
         {"com.microsoft.GroupQueryAttention", by_formula<grouped_query_attention>}});
}

}  // namespace sdx::ops
