// com.microsoft GroupQueryAttention 1.

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "ops/attention/attention_core.h"
#include "ops/attention/grouped_query.h"
#include "ops/attention/signatures.h"
#include "ops/context.h"
#include "ops/control/subgraphs.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

using enum GroupQueryIn::Slot;

void refuse_unknown_modes(const GroupQueryAttrs& attr) {
  if (attr.quantised()) {
    fail(ErrorCode::not_implemented, "GroupQueryAttention with a quantised cache is not supported");
  }
  if (attr.sliding_window_cache) {
    fail(ErrorCode::not_implemented, "GroupQueryAttention with sliding_window_cache is not supported");
  }
}

// total_sequence_length, as far as it is known: as an extent, or (while a run settles its shapes) as the number itself.
Dim known_total(const InferContext& c) {
  const std::vector<Dim>* total = c.sym(kTotal);
  if (total != nullptr && total->size() == 1) return (*total)[0];
  const Tensor* value = c.has_input(kTotal) ? c.value(kTotal) : nullptr;
  if (value != nullptr && value->dtype() == DataType::int32 && value->size() == 1) {
    return std::max<std::int64_t>(0, value->values<std::int32_t>()[0]);
  }
  return {};
}

void infer_gqa(InferContext& c) {
  refuse_unknown_modes(parse<GroupQueryAttrs>(c));
  const HeadCounts h = head_counts(c.attrs());
  const DataType elem = c.dtype(kQuery);
  const SymShape* q = c.shape(kQuery);
  if (q != nullptr && q->size() != 3) c.fail("query must have 3 axes, received {}", to_string(*q));
  Dim batch, length, size;
  if (q != nullptr) {
    batch = (*q)[0], length = (*q)[1];
    size = floor_div((*q)[2], Dim(c.has_input(kKey) ? h.q : h.q + 2 * h.kv));
  }
  c.output(0, elem, {batch, length, size * Dim(h.q)});
  Dim present;
  const Dim total = known_total(c);
  const SymShape* past = c.shape(kPastKey);
  if (!c.has_input(kPastKey)) {
    present = total;
  } else if (past != nullptr && past->size() == 4) {
    present = max(total, (*past)[2]);
  }
  const DataType cache = c.has_input(kPastKey) && c.dtype(kPastKey) != DataType::undefined ? c.dtype(kPastKey) : elem;
  for (std::size_t i = 1; i < 3; ++i) c.output(i, cache, {batch, Dim(h.kv), present, size});
  c.output(3, elem, {batch, Dim(h.q), length, total});
}

struct Problem {
  HeadCounts heads;
  std::int64_t batch = 0, length = 0, size = 0, total = 0, past_capacity = 0, capacity = 0;
  std::vector<std::int64_t> total_of, past_of;  // per batch entry
  GroupedQuery rows;                            // of the new tokens
};

void check_lengths(OpContext& c, Problem& p) {
  const Tensor& seqlens = c.input(kSeqlens);
  if (seqlens.dtype() != DataType::int32 || seqlens.size() != p.batch) {
    c.fail("seqlens_k must be int32[{}], received {}", p.batch, seqlens.type_string());
  }
  p.total = single_int(c.input(kTotal), "total_sequence_length");
  if (p.total < p.length || p.total > (std::int64_t{1} << 40)) {
    c.fail("total_sequence_length is {}, less than the {} new tokens", p.total, p.length);
  }
  p.capacity = std::max(p.total, p.past_capacity);
  const bool prompt = p.length == p.total;
  for (const std::int32_t last : seqlens.values<std::int32_t>()) {
    const std::int64_t total = std::int64_t{last} + 1;
    const std::int64_t past = prompt ? 0 : total - p.length;
    if (total < 1 || total > p.total || past < 0 || past > p.past_capacity) {
      c.fail("seqlens_k holds {}, which does not fit {} new tokens, a total of {} and {} cached rows", last, p.length, p.total,
             p.past_capacity);
    }
    p.total_of.push_back(total);
    p.past_of.push_back(past);
  }
}

Problem problem_of(OpContext& c) {
  refuse_unknown_modes(parse<GroupQueryAttrs>(c));
  Problem p;
  p.heads = head_counts(c.attrs());
  const Tensor& query = c.input(kQuery);
  if (query.rank() != 3) c.fail("query must have 3 axes, received {}", query.type_string());
  const bool packed = !c.has_input(kKey);
  const std::int64_t parts = packed ? p.heads.q + 2 * p.heads.kv : p.heads.q;
  p.batch = query.dim(0), p.length = query.dim(1), p.size = query.dim(2) / parts;
  if (query.dim(2) != p.size * parts) c.fail("query is {}: its features do not divide into {} heads", query.type_string(), parts);
  if (p.size < 1) c.fail("query is {}: its heads are empty", query.type_string());
  p.rows = grouped_query(c, p.heads, p.size);
  if (c.has_input(kPastKey) != c.has_input(kPastValue)) c.fail("past_key and past_value go together");
  if (const Tensor* past = c.optional_input(kPastKey)) {
    p.past_capacity = past->rank() == 4 ? past->dim(2) : 0;
    const Shape expected{p.batch, p.heads.kv, p.past_capacity, p.size};
    if (past->shape() != expected || c.input(kPastValue).shape() != expected) {
      c.fail("past_key and past_value must be [{},{},past,{}], received {} and {}", p.batch, p.heads.kv, p.size,
             past->type_string(), c.input(kPastValue).type_string());
    }
  }
  check_lengths(c, p);
  return p;
}

struct Angles {
  Tensor cos, sin;
  std::int64_t dim = 0;
  std::vector<std::int64_t> at;  // row of the caches, per token
  bool interleaved = false;
};

Angles angles_of(OpContext& c, const Problem& p) {
  const auto attr = parse<GroupQueryAttrs>(c);
  Angles a;
  if (!attr.do_rotary) return a;
  a.cos = converted(c.input(kCos), DataType::float32);
  a.sin = converted(c.input(kSin), DataType::float32);
  a.interleaved = attr.rotary_interleaved;
  if (a.cos.rank() != 2 || a.cos.shape() != a.sin.shape() || a.cos.dim(1) * 2 > p.size) {
    c.fail("cos_cache and sin_cache must be [positions, up to {}], received {} and {}", p.size / 2, a.cos.type_string(),
           a.sin.type_string());
  }
  a.dim = a.cos.dim(1) * 2;
  const Tensor* ids = c.optional_input(kPositions);
  const bool prompt = p.length == p.total;
  if (ids != nullptr && (ids->dtype() != DataType::int64 || ids->size() < (prompt ? 1 : p.batch * p.length))) {
    c.fail("position_ids must be int64[{},{}], received {}", p.batch, p.length, ids->type_string());
  }
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t s = 0; s < p.length; ++s) {
      std::int64_t at = p.past_of[static_cast<std::size_t>(b)] + s;
      // The first prompt only takes its starting position from position_ids; later steps take every token's.
      if (ids != nullptr)
        at =
            prompt ? ids->values<std::int64_t>()[0] + s : ids->values<std::int64_t>()[static_cast<std::size_t>(b * p.length + s)];
      if (at < 0 || at >= a.cos.dim(0)) c.fail("position {} is outside cos_cache, which has {} rows", at, a.cos.dim(0));
      a.at.push_back(at);
    }
  }
  return a;
}

// The new rows of queries or keys as [batch, heads, length, size]: normalised and rotated as far as the node asks for it.
Tensor prepared(const Problem& p, const HeadView<float>& in, std::int64_t heads, const Angles& a, const Tensor* norm,
                float epsilon) {
  Tensor out(DataType::float32, {p.batch, heads, p.length, p.size});
  auto* to = static_cast<float*>(out.mutable_data());
  parallel_for(p.batch * heads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t b = i / heads;
      for (std::int64_t s = 0; s < p.length; ++s) {
        float* y = to + (i * p.length + s) * p.size;
        std::copy_n(in.at(b, i % heads, s), p.size, y);
        if (norm != nullptr) {
          const float square = dot(y, y, p.size) / static_cast<float>(p.size);
          const float factor = 1.0F / std::sqrt(square + epsilon);
          const auto* weight = static_cast<const float*>(norm->data());
          for (std::int64_t d = 0; d < p.size; ++d) y[d] *= factor * weight[d];
        }
        if (a.dim == 0) continue;
        const std::int64_t row = a.at[static_cast<std::size_t>(b * p.length + s)] * (a.dim / 2);
        rotate(y, y, a.dim, static_cast<const float*>(a.cos.data()) + row, static_cast<const float*>(a.sin.data()) + row,
               a.interleaved);
      }
    }
  });
  return out;
}

// [batch, kv heads, capacity, size]: per batch entry its cached rows, its new rows, zeros.
Tensor updated_cache(OpContext& c, const Problem& p, std::size_t past_input, const HeadView<float>& fresh) {
  Tensor past;
  if (const Tensor* t = c.optional_input(past_input)) past = converted(*t, DataType::float32);
  const std::int64_t plane = p.heads.kv * p.capacity * p.size;
  Tensor out(DataType::float32, {p.batch, p.heads.kv, p.capacity, p.size});
  for (std::int64_t b = 0; b < p.batch; ++b) {
    CacheParts<float> parts{
        1,        p.heads.kv, p.size,     nullptr, p.past_capacity, p.past_of[static_cast<std::size_t>(b)], fresh,
        p.length, nullptr,    p.capacity, {}};
    parts.fresh.data = fresh.at(b, 0, 0);
    if (past.defined()) parts.past = static_cast<const float*>(past.data()) + b * p.heads.kv * p.past_capacity * p.size;
    const Tensor one = gather_rows(parts);
    std::copy_n(static_cast<const float*>(one.data()), plane, static_cast<float*>(out.mutable_data()) + b * plane);
  }
  return out;
}

// attention_bias [1 or batch, 1 or heads, length, total] added to the scores.
void add_bias(OpContext& c, const Problem& p, AttentionProblem<float>& a, Tensor& held) {
  const Tensor* bias = c.optional_input(kBias);
  if (bias == nullptr) return;
  const Shape& s = bias->shape();
  if (s.size() != 4 || (s[0] != 1 && s[0] != p.batch) || (s[1] != 1 && s[1] != p.heads.q) || s[2] != p.length || s[3] < p.total) {
    c.fail("attention_bias must be [1 or {},1 or {},{},{}], received {}", p.batch, p.heads.q, p.length, p.total,
           bias->type_string());
  }
  held = converted(*bias, DataType::float32);
  const auto* data = static_cast<const float*>(held.data());
  const HeadView<float> view{data, s[0] == 1 ? 0 : s[1] * s[2] * s[3], s[1] == 1 ? 0 : s[2] * s[3], s[3]};
  a.add_bias = [view, total = std::min(p.total, a.kv_len)](std::int64_t b, std::int64_t h, std::int64_t i, float* row) {
    const float* add = view.at(b, h, i);
    for (std::int64_t j = 0; j < total; ++j) row[j] += add[j];
  };
}

// Logits of the keys that no value belongs to: given per head, or 0 for "smooth" softmax.
Tensor sink_of(OpContext& c, const Problem& p) {
  if (const Tensor* sink = c.optional_input(kSink)) {
    if (sink->size() != p.heads.q) c.fail("head_sink must have {} elements, received {}", p.heads.q, sink->type_string());
    return converted(*sink, DataType::float32);
  }
  if (parse<GroupQueryAttrs>(c).smooth_softmax <= 0) return {};
  Tensor zeros(DataType::float32, {p.heads.q});
  std::fill_n(static_cast<float*>(zeros.mutable_data()), p.heads.q, 0.0F);
  return zeros;
}

void watch_scores(OpContext& c, const Problem& p, AttentionProblem<float>& a, Tensor& scores) {
  const std::int64_t mode = parse<GroupQueryAttrs>(c).qk_output;
  if (mode < 0 || mode > 2) c.fail("qk_output must be 0, 1 or 2, received {}", mode);
  if (mode == 0 || !c.wants_output(3)) return;
  scores = Tensor(DataType::float32, {p.batch, p.heads.q, p.length, p.total});
  auto* to = static_cast<float*>(scores.mutable_data());
  // Hidden keys count as 0, before softmax, too.
  const auto hook = [to, &p, visible = a.visible](std::int64_t b, std::int64_t h, std::int64_t i, const float* row) {
    const auto [begin, end] = visible(b, i);
    float* at = to + ((b * p.heads.q + h) * p.length + i) * p.total;
    std::fill_n(at, p.total, 0.0F);
    if (begin < end) std::copy(row + begin, row + end, at + begin);
  };
  (mode == 1 ? a.see_masked : a.see_probabilities) = hook;
}

void limit_keys(OpContext& c, const Problem& p, AttentionProblem<float>& a) {
  const auto attr = parse<GroupQueryAttrs>(c);
  const std::int64_t window = attr.local_window_size;
  const bool causal = attr.causal;
  a.visible = [&p, window, causal](std::int64_t b, std::int64_t i) -> std::pair<std::int64_t, std::int64_t> {
    const auto at = static_cast<std::size_t>(b);
    const std::int64_t end = causal ? std::min(p.past_of[at] + i + 1, p.total_of[at]) : p.total_of[at];
    return {window >= 0 ? std::max<std::int64_t>(0, p.past_of[at] + i + 1 - window) : 0, end};
  };
}

const Tensor* norm_weight(OpContext& c, const Problem& p, std::size_t input, Tensor& held) {
  const Tensor* t = c.optional_input(input);
  if (t == nullptr) return nullptr;
  if (t->size() != p.size) c.fail("q_norm_weight and k_norm_weight must have {} elements, received {}", p.size, t->type_string());
  held = converted(*t, DataType::float32);
  return &held;
}

void run_gqa(OpContext& c) {
  const auto attr = parse<GroupQueryAttrs>(c);
  const Problem p = problem_of(c);
  const Angles angles = angles_of(c, p);
  Tensor q_norm, k_norm;
  const float epsilon = attr.qk_norm_epsilon;
  const Tensor q = prepared(p, p.rows.q, p.heads.q, angles, norm_weight(c, p, kQNorm, q_norm), epsilon);
  const Tensor fresh = prepared(p, p.rows.k, p.heads.kv, angles, norm_weight(c, p, kKNorm, k_norm), epsilon);
  const Tensor keys =
      updated_cache(c, p, kPastKey, view_bnsh(static_cast<const float*>(fresh.data()), p.heads.kv, p.length, p.size));
  const Tensor values = updated_cache(c, p, kPastValue, p.rows.v);

  AttentionProblem<float> a;
  a.batch = p.batch, a.heads = p.heads.q, a.kv_heads = p.heads.kv;
  a.q_len = p.length, a.kv_len = p.capacity, a.size = a.v_size = p.size;
  a.q = view_bnsh(static_cast<const float*>(q.data()), p.heads.q, p.length, p.size);
  a.k = view_bnsh(static_cast<const float*>(keys.data()), p.heads.kv, p.capacity, p.size);
  a.v = view_bnsh(static_cast<const float*>(values.data()), p.heads.kv, p.capacity, p.size);
  Tensor y(DataType::float32, {p.batch, p.length, p.heads.q * p.size});
  a.out = static_cast<float*>(y.mutable_data());
  a.out_batch = p.length * p.heads.q * p.size, a.out_head = p.size, a.out_row = p.heads.q * p.size;
  const float scale = attr.scale;
  a.scale = scale != 0.0F ? scale : 1.0F / std::sqrt(static_cast<float>(std::max<std::int64_t>(1, p.size)));
  a.softcap = attr.softcap;
  a.stop = &c.stop();
  limit_keys(c, p, a);
  Tensor bias, scores;
  add_bias(c, p, a, bias);
  const Tensor sink = sink_of(c, p);
  if (sink.defined()) a.sink = static_cast<const float*>(sink.data());
  watch_scores(c, p, a, scores);
  attend(a);

  const DataType elem = c.input(kQuery).dtype();
  convert_into(c.output(0, elem, y.shape()), y);
  const DataType cache = c.has_input(kPastKey) ? c.input(kPastKey).dtype() : elem;
  if (c.wants_output(1)) convert_into(c.output(1, cache, keys.shape()), keys);
  if (c.wants_output(2)) convert_into(c.output(2, cache, values.shape()), values);
  if (scores.defined()) convert_into(c.output(3, elem, scores.shape()), scores);
}

}  // namespace

void register_group_query_attention(OpTable& t) {
  OpDef def("com.microsoft", "GroupQueryAttention", 1);
  def.in("query", "T", types::floats)
      .in("key value", "T", types::floats, Arity::optional)
      .in("past_key past_value", "T_CACHE", types::floats, Arity::optional)
      .in("seqlens_k total_sequence_length", "M", bit(DataType::int32))
      .in("cos_cache sin_cache", "T", types::floats, Arity::optional)
      .in("position_ids", "", types::int64, Arity::optional)
      .in("attention_bias head_sink", "T", types::floats, Arity::optional)
      .in("k_scale v_scale", "", types::floats, Arity::optional)
      .in("q_norm_weight k_norm_weight", "T", types::floats, Arity::optional);
  def.out("output", "T", types::floats)
      .out("present_key present_value", "T_CACHE", types::floats, Arity::optional)
      .out("output_qk", "T", types::floats, Arity::optional);
  def.attrs<GroupQueryAttrs>();
  t.add(std::move(def).infer_with(infer_gqa).run_with(run_gqa));
}

}  // namespace sdx::ops
