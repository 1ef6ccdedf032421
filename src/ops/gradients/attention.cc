// Gradient of Attention (ai.onnx 23 to 25). With probabilities P = softmax(scale * Q K^T + mask), whatever masks them, and Y = P
// V:
//   dV = P^T dY,  dS = P * (dY V^T - rows of sums of dY V^T * P),  dQ = scale * dS K,  dK = scale * dS^T Q

#include "ops/attention/signatures.h"
#include "ops/gradient.h"

namespace sdx::ops {
namespace {

using enum AttentionIn::Slot;

Expr join(GradientContext& c, const std::vector<Expr>& parts) { return c.emit("Concat", parts, {{"axis", std::int64_t{0}}}); }
Expr transposed(GradientContext& c, Expr e, const std::vector<std::int64_t>& perm) {
  return c.emit("Transpose", {e}, {{"perm", perm}});
}
Expr last_swapped(GradientContext& c, Expr e) { return transposed(c, e, {0, 1, 2, 4, 3}); }

// Q, K, V and their gradients as [batch, key heads, query heads of each, rows, size], and back.
class Heads {
 public:
  explicit Heads(GradientContext& c) : c_(c), flat_(c.rank(c.in(kQ)) == 3) {
    if (flat_) {
      query_ = c.ints({parse<AttentionAttrs>(c).q_num_heads});
      key_ = c.ints({parse<AttentionAttrs>(c).kv_num_heads});
    } else {
      query_ = c.extents(c.in(kQ), 1, 2);
      key_ = c.extents(c.in(kK), 1, 2);
    }
  }

  Expr split(Expr e, bool of_query) {
    const Expr heads = of_query ? query_ : key_;
    if (flat_) {
      const Expr size = call("Div", c_.extents(e, 2, 3), heads);
      e = transposed(c_, c_.reshape(e, join(c_, {c_.extents(e, 0, 2), heads, size})), {0, 2, 1, 3});
    }
    const Expr each = of_query ? call("Div", query_, key_) : c_.ints({1});
    return c_.reshape(e, join(c_, {c_.extents(e, 0, 1), key_, each, c_.extents(e, 2, 4)}));
  }

  Expr merge(Expr e, Expr like) {
    if (flat_) {
      const Expr four =
          join(c_, {c_.extents(e, 0, 1), call("Mul", c_.extents(e, 1, 2), c_.extents(e, 2, 3)), c_.extents(e, 3, 5)});
      e = transposed(c_, c_.reshape(e, four), {0, 2, 1, 3});
    }
    return c_.reshape(e, c_.shape_of(like));
  }

  // The probabilities' layout, [batch, query heads, rows, keys].
  Expr split_scores(Expr e) {
    return c_.reshape(e, join(c_, {c_.extents(e, 0, 1), key_, call("Div", query_, key_), c_.extents(e, 2, 4)}));
  }

 private:
  GradientContext& c_;
  bool flat_;
  Expr query_, key_;  // how many, int64[1]
};

// All of the node's inputs as they are; the probabilities are its fourth output.
Expr probabilities(GradientContext& c) {
  std::vector<Expr> inputs;
  for (std::size_t i = 0; i < c.num_inputs(); ++i) inputs.push_back(c.in(i));
  return c.repeat_many(inputs, {{"qk_matmul_output_mode", std::int64_t{3}}}, 4)[3];
}

// Keys or values with those of the past before them, [batch, key heads, 1, rows, size].
Expr with_past(GradientContext& c, std::size_t past, Expr fresh) {
  if (!c.has_input(past)) return fresh;
  return c.emit("Concat", {c.emit("Unsqueeze", {c.in(past), c.ints({2})}), fresh}, {{"axis", std::int64_t{3}}});
}

// `g`: the gradient of with_past()'s result, apart from the part that comes from output `present`, which has the same shape.
void set_keys(GradientContext& c, Heads& heads, std::size_t input, std::size_t past, std::size_t present, Expr g) {
  if (c.dy(present)) {
    const Expr more = c.emit("Unsqueeze", {c.dy(present), c.ints({2})});
    g = g ? g + more : more;
  }
  if (!g) return;
  if (c.has_input(past)) {
    const Expr before = c.extents(c.in(past), 2, 3);
    const Expr sizes = join(c, {before, call("Sub", c.extents(g, 3, 4), before)});
    const std::vector<Expr> parts = c.emit_many("Split", {g, sizes}, 2, {{"axis", std::int64_t{3}}});
    c.set(past, c.emit("Squeeze", {parts[0], c.ints({2})}));
    g = parts[1];
  }
  c.set(input, heads.merge(g, c.in(input)));
}

void attention(GradientContext& c) {
  if (c.dy(3)) c.refuse("the scores");
  Heads heads(c);
  if (!c.dy()) {
    set_keys(c, heads, kK, kPastKey, 1, {});
    return set_keys(c, heads, kV, kPastValue, 2, {});
  }
  const Expr all = probabilities(c);
  const Expr p = heads.split_scores(all);
  const Expr q = heads.split(c.in(kQ), true);
  const Expr k = with_past(c, kPastKey, heads.split(c.in(kK), false));
  const Expr v = with_past(c, kPastValue, heads.split(c.in(kV), false));
  const Expr g = heads.split(c.dy(), true);
  const Expr dp = call("MatMul", g, last_swapped(c, v));
  const Expr masked = p * (dp - c.sum(dp * p, {-1}));
  const auto attr = parse<AttentionAttrs>(c);
  const float given = attr.scale.value_or(0);
  const Expr size = c.cast_like(c.emit("Squeeze", {c.extents(q, 4, 5)}), c.in(kQ));
  const Expr scale = given != 0 ? c.scalar(static_cast<double>(given)) : 1.0 / call("Sqrt", size);
  Expr ds = masked;
  if (attr.softcap > 0) {  // before the mask: cap * tanh(s / cap)
    const Expr s = call("MatMul", q, last_swapped(c, k)) * scale;
    ds = ds * (1.0 - square(call("Tanh", s / static_cast<double>(attr.softcap))));
  }
  // Query heads that share a key head add up.
  const auto shared = [&](Expr e) { return c.sum(e, {2}); };
  if (c.wants(kQ)) c.set(kQ, heads.merge(call("MatMul", ds, k) * scale, c.in(kQ)));
  if (c.wants(kK) || c.wants(kPastKey))
    set_keys(c, heads, kK, kPastKey, 1, shared(call("MatMul", last_swapped(c, ds), q)) * scale);
  if (c.wants(kV) || c.wants(kPastValue)) set_keys(c, heads, kV, kPastValue, 2, shared(call("MatMul", last_swapped(c, p), g)));
  if (c.wants(kMask)) c.set(kMask, c.sum_to(c.reshape(masked, c.shape_of(all)), c.in(kMask)));
}

}  // namespace

void register_gradients_attention(GradientTable& t) { t.add("Attention", attention); }

}  // namespace sdx::ops
