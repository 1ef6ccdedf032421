// com.microsoft PagedAttention 1: attention of packed tokens over a cache whose rows lie in blocks that a table assigns to
// sequences. Source: Kwon et al., arXiv:2309.06180.

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/attention/attention_core.h"
#include "ops/attention/grouped_query.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct PagedAttentionAttrs {
  std::int64_t num_heads;
  std::int64_t kv_num_heads;
  bool do_rotary = false;
  bool is_causal = true;
  std::int64_t local_window_size = -1;
  bool rotary_interleaved = false;
  std::int64_t rotary_offset = 0;
  std::int64_t v_head_size = 0;
  float scale = 0;
  float softcap = 0;
  float qk_norm_epsilon = 1e-6F;
  std::string_view kv_cache_layout = "SEPARATE";
  std::string_view k_quant_type = "NONE", v_quant_type = "NONE";

  void fields(auto& f) {
    f.required("num_heads", num_heads);
    f.required("kv_num_heads", kv_num_heads);
    f("do_rotary", do_rotary);
    f("is_causal", is_causal);
    f("local_window_size", local_window_size);
    f("rotary_interleaved", rotary_interleaved);
    f("rotary_offset", rotary_offset);
    f("v_head_size", v_head_size);
    f("scale", scale);
    f("softcap", softcap);
    f("qk_norm_epsilon", qk_norm_epsilon);
    f("kv_cache_layout", kv_cache_layout);
    f.unread("k_cache_dtype", AttrKind::s);
    f.unread("v_cache_dtype", AttrKind::s);
    f("k_quant_type", k_quant_type);
    f("v_quant_type", v_quant_type);
  }
};

enum In : std::size_t {
  kQuery,
  kKey,
  kValue,
  kKeyCache,
  kValueCache,
  kStarts,
  kPast,
  kTable,
  kCos,
  kSin,
  kSlots,
  kSink,
  kQNorm,
  kKNorm,
  kKScale,
  kVScale
};

struct Options {
  std::int64_t heads, kv_heads, window, v_size, rotary_offset;
  bool latent, causal, rotary, interleaved;
  float scale, softcap, epsilon;
};

Options options_of(const Attributes& attrs) {
  const auto attr = parse<PagedAttentionAttrs>(attrs);
  const std::string_view layout = attr.kv_cache_layout;
  const HeadCounts counts = head_counts(attrs);
  Options o{counts.q,       counts.kv,      attr.local_window_size,  attr.v_head_size, attr.rotary_offset, layout == "LATENT",
            attr.is_causal, attr.do_rotary, attr.rotary_interleaved, attr.scale,       attr.softcap,       attr.qk_norm_epsilon};
  if (!o.latent && layout != "SEPARATE")
    fail(ErrorCode::invalid_model, "kv_cache_layout must be SEPARATE or LATENT, received '{}'", layout);
  if (o.latent && o.kv_heads != 1) fail(ErrorCode::invalid_model, "a LATENT cache has one head; kv_num_heads is {}", o.kv_heads);
  if (o.v_size < 0 || (o.v_size > 0 && !o.latent))
    fail(ErrorCode::invalid_model, "v_head_size is {}; it goes with a LATENT cache", o.v_size);
  if (o.rotary_offset < 0) fail(ErrorCode::invalid_model, "rotary_offset is {}; it must not be negative", o.rotary_offset);
  if (attr.k_quant_type != "NONE" || attr.v_quant_type != "NONE")
    fail(ErrorCode::not_implemented, "PagedAttention with a quantised cache is not supported");
  return o;
}

void infer_paged(InferContext& c) {
  const Options o = options_of(c.attrs());
  const SymShape* q = c.shape(kQuery);
  const SymShape* cache = c.shape(kKeyCache);
  if (q != nullptr && q->size() != 2) c.fail("query must have 2 axes, received {}", to_string(*q));
  if (cache != nullptr && cache->size() != 4) c.fail("key_cache must have 4 axes, received {}", to_string(*cache));
  const Dim size = cache != nullptr ? (*cache)[3] : Dim();
  c.output(0, c.dtype(kQuery), {q != nullptr ? (*q)[0] : Dim(), Dim(o.heads) * (o.v_size > 0 ? Dim(o.v_size) : size)});
  for (const std::size_t i : {kKeyCache, kValueCache}) {
    if (c.shape(i) != nullptr) {
      c.output(i - kKeyCache + 1, c.dtype(i), *c.shape(i));
    } else {
      c.output(i - kKeyCache + 1, c.dtype(i));
    }
  }
}

struct Problem {
  Options o{};
  std::int64_t tokens = 0, batch = 0, size = 0, v_size = 0, blocks = 0, block = 0, most = 0;  // most: blocks of a sequence
  std::vector<std::int64_t> starts, past;
  std::vector<std::int64_t> position, slot;  // of each token; slot -1: not cached
  const std::int32_t* table = nullptr;
  Tensor q, k, v, keys, values;  // float32

  std::int64_t length(std::int64_t b) const {
    return starts[static_cast<std::size_t>(b) + 1] - starts[static_cast<std::size_t>(b)];
  }
  std::int64_t row(std::int64_t b, std::int64_t at) const { return table[b * most + at / block] * block + at % block; }
};

std::vector<std::int64_t> ints(OpContext& c, std::size_t i, std::int64_t count, const char* what) {
  const Tensor& t = c.input(i);
  if (t.dtype() != DataType::int32 || t.rank() != 1 || (count >= 0 && t.size() != count))
    c.fail("{} must be int32[{}], received {}", what, count, t.type_string());
  const auto v = t.values<std::int32_t>();
  return {v.begin(), v.end()};
}

void read_sequences(OpContext& c, Problem& p) {
  p.starts = ints(c, kStarts, -1, "cumulative_sequence_length");
  p.batch = static_cast<std::int64_t>(p.starts.size()) - 1;
  p.past = ints(c, kPast, std::max<std::int64_t>(0, p.batch), "past_seqlens");
  const Tensor& table = c.input(kTable);
  if (p.batch < 0 || p.starts.front() != 0 || p.starts.back() != p.tokens || !std::is_sorted(p.starts.begin(), p.starts.end())) {
    c.fail("cumulative_sequence_length must rise from 0 to {}", p.tokens);
  }
  if (table.dtype() != DataType::int32 || table.rank() != 2 || table.dim(0) != p.batch)
    c.fail("block_table must be int32[{},blocks], received {}", p.batch, table.type_string());
  p.most = table.dim(1);
  p.table = static_cast<const std::int32_t*>(table.data());
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t past = p.past[static_cast<std::size_t>(b)], total = past + p.length(b);
    if (past < 0 || total > p.most * p.block)
      c.fail("a sequence of {} tokens needs more than {} blocks of {}", total, p.most, p.block);
    for (std::int64_t i = 0; i < (total + p.block - 1) / p.block; ++i) {
      const std::int32_t at = p.table[b * p.most + i];
      if (at < 0 || at >= p.blocks) c.fail("block_table names block {}; the cache has {}", at, p.blocks);
    }
    for (std::int64_t s = 0; s < p.length(b); ++s) {
      p.position.push_back(past + s);
      p.slot.push_back(p.row(b, past + s));
    }
  }
  if (!c.has_input(kSlots)) return;
  p.slot = ints(c, kSlots, p.tokens, "slot_mapping");
  for (const std::int64_t s : p.slot) {
    if (s < -1 || s >= p.blocks * p.block) c.fail("slot_mapping holds {}; the cache has {} rows", s, p.blocks * p.block);
  }
}

// [tokens, heads * size] taken out of rows of `width`, as float32.
Tensor columns(const Tensor& from, std::int64_t first, std::int64_t count) {
  const std::int64_t width = from.dim(1);
  Tensor out(DataType::float32, {from.dim(0), count});
  auto* to = static_cast<float*>(out.mutable_data());
  for (std::int64_t t = 0; t < from.dim(0); ++t)
    to = std::copy_n(static_cast<const float*>(from.data()) + t * width + first, count, to);
  return out;
}

Problem problem_of(OpContext& c) {
  Problem p;
  p.o = options_of(c.attrs());
  const Tensor &query = c.input(kQuery), &cache = c.input(kKeyCache);
  if (query.rank() != 2 || cache.rank() != 4 || cache.dim(2) != p.o.kv_heads || cache.dim(1) < 1 || cache.dim(3) < 1) {
    c.fail("query must be [tokens,features] and key_cache [blocks,rows,{},size], received {} and {}", p.o.kv_heads,
           query.type_string(), cache.type_string());
  }
  if (c.has_input(kValueCache) == p.o.latent || (!p.o.latent && c.input(kValueCache).shape() != cache.shape())) {
    if (p.o.latent) c.fail("a LATENT cache holds the values too: value_cache must be left out");
    c.fail("value_cache must have key_cache's shape {}", to_string(cache.shape()));
  }
  p.tokens = query.dim(0), p.blocks = cache.dim(0), p.block = cache.dim(1), p.size = cache.dim(3);
  p.v_size = p.o.v_size > 0 ? p.o.v_size : p.size;
  if (p.v_size > p.size) c.fail("v_head_size is {}; the cache's rows have {}", p.v_size, p.size);
  const bool packed = !c.has_input(kKey);
  const std::int64_t wide = p.o.heads * p.size, narrow = p.o.kv_heads * p.size;
  if (query.dim(1) != wide + (packed ? 2 * narrow : 0) || (packed && p.o.latent))
    c.fail("query has {} features; expected {}", query.dim(1), wide + (packed ? 2 * narrow : 0));
  const Tensor all = converted(query, DataType::float32);
  if (packed) {
    p.q = columns(all, 0, wide), p.k = columns(all, wide, narrow), p.v = columns(all, wide + narrow, narrow);
  } else {
    p.q = all.clone(), p.k = converted(c.input(kKey), DataType::float32).clone();
    if (!p.o.latent) p.v = converted(c.input(kValue), DataType::float32);
    const Shape expected{p.tokens, narrow};
    if (p.k.shape() != expected || (!p.o.latent && p.v.shape() != expected))
      c.fail("key and value must be {}", to_string(expected));
  }
  p.keys = converted(cache, DataType::float32).clone();
  if (!p.o.latent) p.values = converted(c.input(kValueCache), DataType::float32).clone();
  read_sequences(c, p);
  return p;
}

void normalise(OpContext& c, const Problem& p, std::size_t weight, std::int64_t heads, Tensor& x) {
  if (!c.has_input(weight)) return;
  const Tensor w = converted(c.input(weight), DataType::float32);
  if (w.size() != p.size) c.fail("q_norm_weight and k_norm_weight must have {} elements, received {}", p.size, w.type_string());
  auto* row = static_cast<float*>(x.mutable_data());
  for (std::int64_t i = 0; i < p.tokens * heads; ++i, row += p.size) {
    const float factor = 1.0F / std::sqrt(dot(row, row, p.size) / static_cast<float>(p.size) + p.o.epsilon);
    for (std::int64_t d = 0; d < p.size; ++d) row[d] *= factor * static_cast<const float*>(w.data())[d];
  }
}

void turn(OpContext& c, const Problem& p, std::int64_t heads, Tensor& x) {
  if (!p.o.rotary) return;
  const Tensor cos = converted(c.input(kCos), DataType::float32), sin = converted(c.input(kSin), DataType::float32);
  if (cos.rank() != 2 || cos.shape() != sin.shape() || cos.dim(1) > p.size || p.o.rotary_offset > p.size - 2 * cos.dim(1)) {
    c.fail("cos_cache and sin_cache must be [positions, up to {}], received {} and {}", p.size / 2, cos.type_string(),
           sin.type_string());
  }
  const std::int64_t half = cos.dim(1);
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const std::int64_t at = p.position[static_cast<std::size_t>(t)];
    if (at >= cos.dim(0)) c.fail("position {} is outside cos_cache, which has {} rows", at, cos.dim(0));
    for (std::int64_t h = 0; h < heads; ++h) {
      float* row = static_cast<float*>(x.mutable_data()) + (t * heads + h) * p.size + p.o.rotary_offset;
      rotate(row, row, 2 * half, static_cast<const float*>(cos.data()) + at * half,
             static_cast<const float*>(sin.data()) + at * half, p.o.interleaved);
    }
  }
}

void store(const Problem& p, const Tensor& fresh, Tensor& cache) {
  const std::int64_t width = p.o.kv_heads * p.size;
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const std::int64_t slot = p.slot[static_cast<std::size_t>(t)];
    if (slot >= 0)
      std::copy_n(static_cast<const float*>(fresh.data()) + t * width, width,
                  static_cast<float*>(cache.mutable_data()) + slot * width);
  }
}

// One sequence: its rows are brought together, then attended to.
void attend_sequence(OpContext& c, const Problem& p, std::int64_t b, const float* sink, float* out) {
  const std::int64_t total = p.past[static_cast<std::size_t>(b)] + p.length(b), width = p.o.kv_heads * p.size;
  const std::int64_t first = p.starts[static_cast<std::size_t>(b)], past = p.past[static_cast<std::size_t>(b)];
  const Tensor& from = p.o.latent ? p.keys : p.values;
  std::vector<float> keys, values;
  for (std::int64_t i = 0; i < total; ++i) {
    const float* k = static_cast<const float*>(p.keys.data()) + p.row(b, i) * width;
    const float* v = static_cast<const float*>(from.data()) + p.row(b, i) * width;
    keys.insert(keys.end(), k, k + width);
    values.insert(values.end(), v, v + width);
  }
  AttentionProblem<float> a;
  a.batch = 1, a.heads = p.o.heads, a.kv_heads = p.o.kv_heads, a.q_len = p.length(b), a.kv_len = total;
  a.size = p.size, a.v_size = p.v_size;
  a.q = {static_cast<const float*>(p.q.data()) + first * p.o.heads * p.size, 0, p.size, p.o.heads * p.size};
  a.k = {keys.data(), 0, p.size, width};
  a.v = {values.data(), 0, p.size, width};
  a.out = out + first * p.o.heads * p.v_size;
  a.out_head = p.v_size, a.out_row = p.o.heads * p.v_size;
  a.scale = p.o.scale != 0 ? p.o.scale : 1.0F / std::sqrt(static_cast<float>(p.size));
  a.softcap = p.o.softcap;
  a.sink = sink;
  a.stop = &c.stop();
  a.visible = [&p, past, total](std::int64_t, std::int64_t i) {
    const std::int64_t begin = p.o.window >= 0 ? std::max<std::int64_t>(0, past + i + 1 - p.o.window) : 0;
    return std::pair<std::int64_t, std::int64_t>(begin, p.o.causal ? past + i + 1 : total);
  };
  attend(a);
}

void run_paged(OpContext& c) {
  Problem p = problem_of(c);
  normalise(c, p, kQNorm, p.o.heads, p.q);
  normalise(c, p, kKNorm, p.o.kv_heads, p.k);
  turn(c, p, p.o.heads, p.q);
  turn(c, p, p.o.kv_heads, p.k);
  store(p, p.k, p.keys);
  if (!p.o.latent) store(p, p.v, p.values);
  Tensor sink;
  if (const Tensor* t = c.optional_input(kSink)) {
    if (t->size() != p.o.heads) c.fail("head_sink must have {} elements, received {}", p.o.heads, t->type_string());
    sink = converted(*t, DataType::float32);
  }
  Tensor y(DataType::float32, {p.tokens, p.o.heads * p.v_size});
  for (std::int64_t b = 0; b < p.batch; ++b) {
    attend_sequence(c, p, b, sink.defined() ? static_cast<const float*>(sink.data()) : nullptr,
                    static_cast<float*>(y.mutable_data()));
  }
  convert_into(c.output(0, c.input(kQuery).dtype(), y.shape()), y);
  if (c.wants_output(1)) convert_into(c.output(1, c.input(kKeyCache).dtype(), p.keys.shape()), p.keys);
  if (c.wants_output(2)) {
    if (p.o.latent) c.fail("a LATENT cache has no value_cache_out");
    convert_into(c.output(2, c.input(kValueCache).dtype(), p.values.shape()), p.values);
  }
}

}  // namespace

void register_paged_attention(OpTable& t) {
  constexpr TypeSet kFloat = set_of(DataType::float32, DataType::float16, DataType::bfloat16), kInt = bit(DataType::int32);
  constexpr Arity kOptional = Arity::optional;
  OpDef d("com.microsoft", "PagedAttention", 1);
  d.in("query", "T", kFloat).in("key value", "T", kFloat, kOptional);
  d.in("key_cache", "T_CACHE", kFloat).in("value_cache", "T_CACHE", kFloat, kOptional);
  d.in("cumulative_sequence_length past_seqlens block_table", "S", kInt);
  d.in("cos_cache sin_cache", "T", kFloat, kOptional);
  d.in("slot_mapping", "S", kInt, kOptional);
  d.in("head_sink q_norm_weight k_norm_weight", "T", kFloat, kOptional);
  d.in("k_scale v_scale", "T_KV_SCALE", bit(DataType::float32), kOptional);
  d.in("attention_metadata", "S", kInt, kOptional);
  d.out("output", "T", kFloat).out("key_cache_out value_cache_out", "T_CACHE", kFloat, kOptional);
  d.attrs<PagedAttentionAttrs>();
  t.add(std::move(d).infer_with(infer_paged).run_with(run_paged));
}

}  // namespace sdx::ops
