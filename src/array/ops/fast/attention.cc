// Attention. float32 uses Attention of domain sdx, which means what ai.onnx's does in any opset; other cases use single
// operations.

#include <sdx/array.hpp>

#include "array/emitter.h"
#include "array/ops/batch.h"
#include "array/ops/common.h"

namespace sdx::array {
namespace detail {
namespace {

struct Scores {
  double scale = 1;
  bool causal = false;
};

// Tells for each query i whether it sees key j: the last query sees all keys.
array causal_mask(std::int64_t queries, std::int64_t keys, const StreamOrDevice& s = {}) {
  const array last = add(reshape(iota(queries), {queries, 1}), array(keys - queries), s);
  return greater_equal(last, iota(keys), s);
}

// Splits the heads by the keys' heads that they share: [B, heads, …] becomes [B, heads of keys, heads for each, …]. An extent of
// 1 stays.
array grouped(const array& a, std::int64_t kv_heads, const StreamOrDevice& s) {
  Shape shape = a.shape();
  const bool one = shape[1] == 1;
  shape.insert(shape.begin() + 2, one ? 1 : shape[1] / kv_heads);
  shape[1] = one ? 1 : kv_heads;
  return reshape(a, std::move(shape), s);
}

array with_rank_4(const array& a, const StreamOrDevice& s) {
  Shape shape = a.shape();
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  return reshape(a, std::move(shape), s);
}

// Computes attention by single operations. `mask` has four axes.
array attention_by_parts(const array& q, const array& k, const array& v, const Scores& how, const std::optional<array>& mask,
                         const std::optional<array>& sinks, const StreamOrDevice& s = {}) {
  const std::int64_t kv_heads = k.shape()[1];
  const array queries = multiply(grouped(q, kv_heads, s), array(how.scale, q.dtype()), s);
  array scores = matmul(queries, swapaxes(expand_dims(k, 2, s), -1, -2, s), s);
  const array least(q.dtype() == Dtype::float64 ? -1e300 : -3e38, q.dtype());
  if (how.causal) scores = where(causal_mask(q.shape()[2], k.shape()[2], s), scores, least, s);
  if (mask) {
    const array m = grouped(*mask, kv_heads, s);
    scores = mask->dtype() == Dtype::boolean ? where(m, scores, least, s) : add(scores, as_type(m, scores.dtype(), s), s);
  }
  const std::int64_t keys = k.shape()[2];
  if (sinks) {
    Shape one = scores.shape();
    one.back() = 1;
    const array sink = reshape(as_type(*sinks, scores.dtype(), s), {1, kv_heads, q.shape()[1] / kv_heads, 1, 1}, s);
    scores = concatenate({scores, broadcast_to(sink, one, s)}, -1, s);
  }
  array weights = softmax(scores, -1, false, s);
  if (sinks) {
    Shape stop = weights.shape();
    stop.back() = keys;
    weights = slice(weights, Shape(stop.size(), 0), stop, {}, s);
  }
  return reshape(matmul(weights, expand_dims(v, 2, s), s), {q.shape()[0], q.shape()[1], q.shape()[2], v.shape()[3]}, s);
}

// Inputs: q, k, v, and a mask if there is one. params.ints holds causal, params.reals the scale.
void emit_attention(Emitter& e) {
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < e.num_inputs(); ++i) inputs.push_back(e.in(i));
  e.result(e.foreign("sdx", "Attention", std::move(inputs), 1,
                     {{"is_causal", e.params().ints[0]}, {"scale", static_cast<float>(e.params().reals[0])}})[0]);
}

std::vector<array> attention_vjp(const VjpCall& c) {
  const Scores how{c.params.reals[0], c.params.ints[0] != 0};
  const auto by_parts = [&](const std::vector<array>& in) {
    const std::optional<array> mask = in.size() > 3 ? std::optional(in[3]) : std::nullopt;
    return std::vector<array>{attention_by_parts(in[0], in[1], in[2], how, mask, std::nullopt)};
  };
  const std::vector<array> all = vjp(by_parts, c.inputs, {c.of_outputs[0]}).second;
  std::vector<array> out;
  for (const std::size_t i : c.wanted) out.push_back(all[i]);
  return out;
}

array attention(const array& q, const array& k, const array& v, const Scores& how, const std::optional<array>& mask,
                const StreamOrDevice& s = {});

// A batch of batches is one larger batch.
VmapResult attention_vmap(const VmapCall& c) {
  const auto flat = [&](std::size_t i) { return flatten(batched(c, i), 0, 1); };
  std::optional<array> mask;
  const array q = batched(c, 0);
  if (c.inputs.size() > 3) {
    array m = batched(c, 3);
    Shape shape = m.shape();
    shape[1] = q.shape()[1];
    mask = flatten(broadcast_to(m, shape), 0, 1);
  }
  const Scores how{c.params.reals[0], c.params.ints[0] != 0};
  const array out = attention(flatten(q, 0, 1), flat(1), flat(2), how, mask);
  return batch_result(unflatten(out, 0, {c.batch, q.shape()[1]}));
}

const Kind kAttention{
    .name = "scaled_dot_product_attention", .emit = emit_attention, .vjp = attention_vjp, .vmap = attention_vmap};

array attention(const array& q, const array& k, const array& v, const Scores& how, const std::optional<array>& mask,
                const StreamOrDevice& s) {
  Params p;
  p.ints = {how.causal};
  p.reals = {how.scale};
  std::vector<array> inputs{q, k, v};
  if (mask) inputs.push_back(*mask);
  Shape shape = q.shape();
  shape[3] = v.shape()[3];
  return make(kAttention, q.dtype(), std::move(shape), std::move(inputs), std::move(p), s);
}

constexpr const char* kName = "scaled_dot_product_attention";

void check(const array& q, const array& k, const array& v) {
  if (q.ndim() != 4 || k.ndim() != 4 || v.ndim() != 4) {
    refuse(kName, "shapes {}, {} and {}; expected four dimensions each", to_string(q.shape()), to_string(k.shape()),
           to_string(v.shape()));
  }
  const bool fits = q.shape()[0] == k.shape()[0] && q.shape()[0] == v.shape()[0] && k.shape()[1] == v.shape()[1] &&
                    k.shape()[1] > 0 && q.shape()[1] % k.shape()[1] == 0 && k.shape()[2] == v.shape()[2] &&
                    q.shape()[3] == k.shape()[3];
  if (!fits) {
    refuse(kName, "queries of shape {}, keys of shape {} and values of shape {} do not fit", to_string(q.shape()),
           to_string(k.shape()), to_string(v.shape()));
  }
}

// Returns the mask with four axes, of which the last two are as long as queries and keys.
array settled_mask(const array& mask, const array& q, const array& k, Dtype type, const StreamOrDevice& s) {
  const Shape whole{q.shape()[0], q.shape()[1], q.shape()[2], k.shape()[2]};
  if (mask.ndim() > 4 || broadcast(kName, mask.shape(), whole) != whole) {
    refuse(kName, "a mask of shape {}; expected what broadcasts to {}", to_string(mask.shape()), to_string(whole));
  }
  if (mask.dtype() != Dtype::boolean && !is_floating(mask.dtype())) refuse(kName, "a mask of type {}", name(mask.dtype()));
  array m = with_rank_4(mask, s);
  Shape shape = m.shape();
  shape[2] = whole[2];
  shape[3] = whole[3];
  m = broadcast_to(m, shape, s);
  return m.dtype() == Dtype::boolean ? m : as_type(m, type, s);
}

}  // namespace
}  // namespace detail

array fast::scaled_dot_product_attention(const array& q, const array& k, const array& v, float scale, const Mask& mask,
                                         const std::optional<array>& sinks, StreamOrDevice s) {
  using namespace detail;
  check(q, k, v);
  const Dtype type = promote(promote(q.dtype(), k.dtype()), v.dtype());
  if (!is_floating(type)) refuse(kName, "operands of type {}; expected floats", name(type));
  const Dtype inner = type == Dtype::float64 ? type : Dtype::float32;
  const array x = as_type(q, inner, s), y = as_type(k, inner, s), z = as_type(v, inner, s);
  Scores how{static_cast<double>(scale), false};
  std::optional<array> m;
  if (const auto* word = std::get_if<std::string>(&mask)) {
    if (*word != "causal") refuse(kName, "mask '{}'; expected 'causal' or an array", *word);
    // A single query sees all keys.
    how.causal = q.shape()[2] > 1;
  } else if (const auto* given = std::get_if<array>(&mask)) {
    m = settled_mask(*given, q, k, inner, s);
  }
  if (sinks && sinks->shape() != Shape{q.shape()[1]}) {
    refuse(kName, "sinks of shape {}; expected one for each of {} heads", to_string(sinks->shape()), q.shape()[1]);
  }
  if (sinks || inner == Dtype::float64) return as_type(attention_by_parts(x, y, z, how, m, sinks, s), type, s);
  // The operator aligns the first query with the first key, not the last with the last.
  if (how.causal && q.shape()[2] != k.shape()[2]) {
    m = with_rank_4(causal_mask(q.shape()[2], k.shape()[2], s), s);
    how.causal = false;
  }
  return as_type(attention(x, y, z, how, m, s), type, s);
}

}  // namespace sdx::array
