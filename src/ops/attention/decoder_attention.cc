// com.microsoft DecoderAttention 1: self or cross attention of a decoder, chosen at run time, with a cache of keys and values.
// Inputs are [length, batch, features].

#include <algorithm>
#include <cmath>

#include "ops/attention/attention_core.h"
#include "ops/context.h"
#include "ops/control/subgraphs.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct DecoderAttentionAttrs {
  std::int64_t num_heads = 0;
  float mask_filter_value = -10000.0F;

  void fields(auto& f) {
    f.required("num_heads", num_heads);
    f("mask_filter_value", mask_filter_value);
  }
};

enum In : std::size_t {
  kQuery,
  kKey,
  kQWeight,
  kKvWeight,
  kBias,
  kPadding,
  kKeyCache,
  kValueCache,
  kStatic,
  kUsePast,
  kHasState,
  kHasPadding
};

void infer_decoder_attention(InferContext& c) {
  const std::int64_t heads = checked_heads(parse<DecoderAttentionAttrs>(c).num_heads);
  const SymShape* q = c.shape(kQuery);
  if (q != nullptr && q->size() != 3) c.fail("query must have 3 axes, received {}", to_string(*q));
  if (q != nullptr) {
    c.output(0, c.dtype(kQuery), *q);
  } else {
    c.output(0, c.dtype(kQuery));
  }
  // The number of rows of the caches depends on the flags.
  const Dim batch = q != nullptr ? (*q)[1] : Dim(), size = q != nullptr ? floor_div((*q)[2], Dim(heads)) : Dim();
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) c.output(i, c.dtype(kQuery), {batch, Dim(heads), Dim(), size});
}

struct Problem {
  std::int64_t heads = 0, length = 0, batch = 0, hidden = 0, size = 0;
  Tensor query, key, bias;  // float32
};

// columns [first, first + count) of x * w + bias, x [rows, hidden].
Tensor project(const Problem& p, const Tensor& x, const Tensor& w, std::int64_t bias_at, std::int64_t columns) {
  Tensor y(DataType::float32, {x.dim(0) * x.dim(1), columns});
  dense(static_cast<const float*>(x.data()), static_cast<const float*>(w.data()),
        static_cast<const float*>(p.bias.data()) + bias_at, static_cast<float*>(y.mutable_data()), x.dim(0) * x.dim(1), p.hidden,
        columns);
  return y;
}

Problem problem_of(OpContext& c) {
  Problem p;
  p.heads = checked_heads(parse<DecoderAttentionAttrs>(c).num_heads);
  const Tensor &q = c.input(kQuery), &k = c.input(kKey);
  if (q.rank() != 3 || k.rank() != 3 || q.dim(1) != k.dim(1) || q.dim(2) != k.dim(2) || q.dim(2) < 1 || q.dim(2) % p.heads != 0) {
    c.fail("query and key must be [length,batch,features of {} heads], received {} and {}", p.heads, q.type_string(),
           k.type_string());
  }
  p.length = q.dim(0), p.batch = q.dim(1), p.hidden = q.dim(2), p.size = p.hidden / p.heads;
  if (c.input(kQWeight).shape() != Shape{p.hidden, p.hidden} || c.input(kKvWeight).shape() != Shape{p.hidden, 2 * p.hidden} ||
      c.input(kBias).size() != 3 * p.hidden) {
    c.fail("q_weight, kv_weight and bias must be [{},{}], [{},{}] and [{}]", p.hidden, p.hidden, p.hidden, 2 * p.hidden,
           3 * p.hidden);
  }
  p.query = converted(q, DataType::float32), p.key = converted(k, DataType::float32),
  p.bias = converted(c.input(kBias), DataType::float32);
  return p;
}

// Keys (part 0) or values (part 1) as [batch, heads, rows, size]: of the cache, of the new tokens, or both.
Tensor rows_of(OpContext& c, const Problem& p, const Tensor& fresh, std::int64_t part) {
  const bool cross = single_bool(c.input(kStatic), "static_kv");
  const bool cached = single_bool(c.input(kUsePast), "use_past") && single_bool(c.input(kHasState), "has_layer_state");
  Tensor past;
  if (cached) {
    past = converted(c.input(part == 0 ? kKeyCache : kValueCache), DataType::float32);
    if (past.rank() != 4 || past.shape() != Shape{p.batch, p.heads, past.dim(2), p.size}) {
      c.fail("caches must be [{},{},rows,{}], received {}", p.batch, p.heads, p.size, past.type_string());
    }
    if (cross) return past;
  }
  const std::int64_t rows = fresh.size() / std::max<std::int64_t>(1, p.batch * 2 * p.hidden), before = cached ? past.dim(2) : 0;
  // fresh is [rows, batch, 2 * hidden]
  const HeadView<float> view{static_cast<const float*>(fresh.data()) + part * p.hidden, 2 * p.hidden, p.size,
                             p.batch * 2 * p.hidden};
  return gather_rows(CacheParts<float>{p.batch,
                                       p.heads,
                                       p.size,
                                       cached ? static_cast<const float*>(past.data()) : nullptr,
                                       before,
                                       before,
                                       view,
                                       rows,
                                       nullptr,
                                       total_rows(before, rows),
                                       {},
                                       false});
}

void run_decoder_attention(OpContext& c) {
  const Problem p = problem_of(c);
  const Tensor q = project(p, p.query, converted(c.input(kQWeight), DataType::float32), 0, p.hidden);
  const bool cross = single_bool(c.input(kStatic), "static_kv");
  const Tensor fresh =
      project(p, cross ? p.key : p.query, converted(c.input(kKvWeight), DataType::float32), p.hidden, 2 * p.hidden);
  const Tensor keys = rows_of(c, p, fresh, 0), values = rows_of(c, p, fresh, 1);
  AttentionProblem<float> a;
  a.batch = p.batch, a.heads = a.kv_heads = p.heads, a.q_len = p.length, a.kv_len = keys.dim(2), a.size = a.v_size = p.size;
  if (values.dim(2) != a.kv_len) c.fail("the caches have {} keys and {} values", a.kv_len, values.dim(2));
  a.q = {static_cast<const float*>(q.data()), p.hidden, p.size, p.batch * p.hidden};
  a.k = view_bnsh(static_cast<const float*>(keys.data()), p.heads, a.kv_len, p.size);
  a.v = view_bnsh(static_cast<const float*>(values.data()), p.heads, a.kv_len, p.size);
  Tensor y(DataType::float32, {p.length, p.batch, p.hidden});
  a.out = static_cast<float*>(y.mutable_data());
  a.out_batch = p.hidden, a.out_head = p.size, a.out_row = p.batch * p.hidden;
  a.scale = 1.0F / std::sqrt(static_cast<float>(p.size));
  a.stop = &c.stop();
  const float filter = parse<DecoderAttentionAttrs>(c).mask_filter_value;
  if (single_bool(c.input(kHasPadding), "has_key_padding_mask")) {
    const Tensor& padding = c.input(kPadding);
    if (padding.shape() != Shape{p.batch, a.kv_len})
      c.fail("key_padding_mask must be [{},{}], received {}", p.batch, a.kv_len, padding.type_string());
    const auto* skip = static_cast<const bool*>(padding.data());
    a.add_bias = [skip, filter, keys = a.kv_len](std::int64_t b, std::int64_t, std::int64_t, float* row) {
      for (std::int64_t j = 0; j < keys; ++j) row[j] += skip[b * keys + j] ? filter : 0.0F;
    };
  }
  attend(a);
  const DataType elem = c.input(kQuery).dtype();
  convert_into(c.output(0, elem, y.shape()), y);
  if (c.wants_output(1)) convert_into(c.output(1, elem, keys.shape()), keys);
  if (c.wants_output(2)) convert_into(c.output(2, elem, values.shape()), values);
}

}  // namespace

void register_decoder_attention(OpTable& t) {
  constexpr TypeSet kFloat = set_of(DataType::float32, DataType::float16);
  OpDef d("com.microsoft", "DecoderAttention", 1);
  d.in("query key q_weight kv_weight bias", "T", kFloat);
  d.in("key_padding_mask", "B", types::boolean, Arity::optional);
  d.in("key_cache value_cache", "T", kFloat, Arity::optional);
  d.in("static_kv use_past has_layer_state has_key_padding_mask", "B", types::boolean);
  d.out("output", "T", kFloat);
  d.out("new_key_cache new_value_cache", "T", kFloat, Arity::optional);
  d.attrs<DecoderAttentionAttrs>();
  t.add(std::move(d).infer_with(infer_decoder_attention).run_with(run_decoder_attention));
}

}  // namespace sdx::ops
