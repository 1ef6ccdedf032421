// sdx PagedAttention 1: attention of the tokens of several texts, flat behind each other, over caches whose rows lie in blocks
// that a table assigns to texts. Source of the layout: Kwon et al., arXiv:2309.06180.

#include <cmath>
#include <cstring>
#include <utility>

#include "ops/attention/attention_core.h"
#include "ops/attention/paged_cache.h"
#include "ops/context.h"
#include "ops/op.h"
#include "tensor/dispatch.h"

namespace sdx::ops {
namespace {

using enum PagedIn::Slot;

void infer_paged(InferContext& c) {
  const HeadCounts h = head_counts(c.attrs());
  const SymShape *q = c.shape(kQuery), *cache = c.shape(kKeyCache);
  if (q != nullptr && q->size() != 3) c.fail("query must have 3 axes, received {}", to_string(*q));
  if (cache != nullptr && cache->size() != 4) c.fail("key_cache must have 4 axes, received {}", to_string(*cache));
  const Dim size = cache != nullptr ? (*cache)[3] : Dim();
  c.output(0, c.dtype(kQuery), {Dim(1), q != nullptr ? (*q)[1] : Dim(), Dim(h.q) * size});
  for (const std::size_t i : {kKeyCache, kValueCache, kKeyScales, kValueScales}) {
    if (!c.has_input(i)) continue;
    if (c.shape(i) != nullptr) {
      c.output(i - kKeyCache + 1, c.dtype(i), *c.shape(i));
    } else {
      c.output(i - kKeyCache + 1, c.dtype(i));
    }
  }
}

// Returns the cache that takes the new rows: a copy, unless the output is bound to the input's memory.
Tensor& taken_over(OpContext& c, std::size_t input) {
  const Tensor& from = c.input(input);
  Tensor& to = c.output(input - kKeyCache + 1, from.dtype(), from.shape());
  if (to.data() != from.data() && from.bytes() != 0) std::memcpy(to.mutable_data(), from.data(), from.bytes());
  return to;
}

// One of the two caches, with its scales.
struct Rows {
  const PagedShapes& s;
  Tensor& cache;
  Tensor* scales;

  void write(std::int64_t row, const float* from) {
    if (scales != nullptr) {
      float& scale = static_cast<float*>(scales->mutable_data())[row];
      scale = quantize_row(from, s.size, static_cast<std::int8_t*>(cache.mutable_data()) + row * s.size);
      return;
    }
    dispatch(cache.dtype(), FloatTypes{}, "PagedAttention", [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto* to = static_cast<T*>(cache.mutable_data()) + row * s.size;
      for (std::int64_t i = 0; i < s.size; ++i) to[i] = T(static_cast<ComputeType<T>>(from[i]));
    });
  }
  void read(std::int64_t row, float* to) const {
    if (scales != nullptr) {
      const float scale = static_cast<const float*>(scales->data())[row];
      const auto* from = static_cast<const std::int8_t*>(cache.data()) + row * s.size;
      for (std::int64_t i = 0; i < s.size; ++i) to[i] = static_cast<float>(from[i]) * scale;
      return;
    }
    dispatch(cache.dtype(), FloatTypes{}, "PagedAttention", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto* from = static_cast<const T*>(cache.data()) + row * s.size;
      for (std::int64_t i = 0; i < s.size; ++i) to[i] = static_cast<float>(static_cast<ComputeType<T>>(from[i]));
    });
  }
};

struct Angles {
  Tensor cos, sin;
};

// A vector of a query or key, normalised and rotated as far as the node asks for it.
void prepare(const PagedAttrs& attr, const PagedShapes& s, const Angles& angles, const Tensor& norm, std::int64_t position,
             const float* from, float* to) {
  std::copy_n(from, s.size, to);
  if (norm.defined()) {
    const float factor = 1.0F / std::sqrt(dot(to, to, s.size) / static_cast<float>(s.size) + attr.qk_norm_epsilon);
    for (std::int64_t d = 0; d < s.size; ++d) to[d] *= factor * static_cast<const float*>(norm.data())[d];
  }
  if (s.angles == 0) return;
  rotate(to, to, 2 * s.angles, static_cast<const float*>(angles.cos.data()) + position * s.angles,
         static_cast<const float*>(angles.sin.data()) + position * s.angles, attr.rotary_interleaved);
}

// Keys or values of a sequence as [kv_heads, total, size]; those in front of a window stay zero.
Tensor gathered(const PagedShapes& s, const PagedBatch& b, const Rows& rows, std::int64_t sequence) {
  const std::int64_t total = b.total(sequence), past = b.past[sequence];
  const std::int64_t from = s.window < 0 ? 0 : std::max<std::int64_t>(0, std::min(past, past + 1 - s.window));
  Tensor out(DataType::float32, {s.heads.kv, total, s.size});
  auto* to = static_cast<float*>(out.mutable_data());
  std::fill_n(to, out.size(), 0.0F);
  for (std::int64_t h = 0; h < s.heads.kv; ++h) {
    for (std::int64_t i = from; i < total; ++i) {
      rows.read(s.cache_row(b.block(sequence, i), h, i % s.block_size), to + (h * total + i) * s.size);
    }
  }
  return out;
}

Tensor floats(OpContext& c, std::size_t i) {
  const Tensor* t = c.optional_input(i);
  return t != nullptr ? converted(*t, DataType::float32) : Tensor();
}

Tensor sinks(OpContext& c, const PagedAttrs& attr, const PagedShapes& s) {
  Tensor sink = floats(c, kSink);
  if (sink.defined() || attr.smooth_softmax <= 0) return sink;
  sink = Tensor(DataType::float32, {s.heads.q});
  std::fill_n(static_cast<float*>(sink.mutable_data()), s.heads.q, 0.0F);
  return sink;
}

void check_types(OpContext& c, const PagedShapes& s) {
  const DataType type = c.input(kKeyCache).dtype();
  if (s.quantised != (type == DataType::int8) || c.input(kValueCache).dtype() != type)
    c.fail("scales go with caches of int8; received {} and {} {} scales", c.input(kKeyCache).type_string(),
           c.input(kValueCache).type_string(), s.quantised ? "with" : "without");
}

void run_paged(OpContext& c) {
  const auto attr = parse<PagedAttrs>(c);
  PagedInputShapes shapes;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (const Tensor* t = c.optional_input(i)) shapes[i] = t->shape();
  }
  const PagedShapes s = paged_shapes(attr, head_counts(c.attrs()), shapes);
  check_types(c, s);
  const PagedBatch b = checked_batch(s, c.data<std::int64_t>(kStarts), c.data<std::int64_t>(kPast), c.data<std::int32_t>(kTable));
  const GroupedQuery fresh = grouped_query(c, s.heads, s.size);
  const Angles angles = s.angles > 0 ? Angles{floats(c, kCos), floats(c, kSin)} : Angles{};
  const Tensor q_norm = floats(c, kQNorm), k_norm = floats(c, kKNorm), sink = sinks(c, attr, s);
  Rows keys{s, taken_over(c, kKeyCache), s.quantised ? &taken_over(c, kKeyScales) : nullptr};
  Rows values{s, taken_over(c, kValueCache), s.quantised ? &taken_over(c, kValueScales) : nullptr};
  // All rows are written first, because a text may read rows that another one writes in this step.
  std::vector<float> row(static_cast<std::size_t>(s.size));
  Tensor q(DataType::float32, {s.tokens, s.heads.q, s.size});
  auto* queries = static_cast<float*>(q.mutable_data());
  for (std::int64_t n = 0; n < s.sequences; ++n) {
    for (std::int64_t t = b.starts[n]; t < b.starts[n + 1]; ++t) {
      const std::int64_t at = b.past[n] + t - b.starts[n];
      for (std::int64_t h = 0; h < s.heads.q; ++h) {
        prepare(attr, s, angles, q_norm, at, fresh.q.at(0, h, t), queries + (t * s.heads.q + h) * s.size);
      }
      for (std::int64_t h = 0; h < s.heads.kv; ++h) {
        const std::int64_t to = s.cache_row(b.block(n, at), h, at % s.block_size);
        prepare(attr, s, angles, k_norm, at, fresh.k.at(0, h, t), row.data());
        keys.write(to, row.data());
        values.write(to, fresh.v.at(0, h, t));
      }
    }
  }
  Tensor y(DataType::float32, {1, s.tokens, s.heads.q * s.size});
  for (std::int64_t n = 0; n < s.sequences; ++n) {
    if (b.length(n) == 0) continue;
    const Tensor k = gathered(s, b, keys, n), v = gathered(s, b, values, n);
    const std::int64_t past = b.past[n], width = s.heads.q * s.size;
    AttentionProblem<float> a;
    a.batch = 1, a.heads = s.heads.q, a.kv_heads = s.heads.kv, a.q_len = b.length(n), a.kv_len = b.total(n);
    a.size = a.v_size = s.size;
    a.q = {queries + b.starts[n] * width, 0, s.size, width};
    a.k = view_bnsh(static_cast<const float*>(k.data()), s.heads.kv, a.kv_len, s.size);
    a.v = view_bnsh(static_cast<const float*>(v.data()), s.heads.kv, a.kv_len, s.size);
    a.out = static_cast<float*>(y.mutable_data()) + b.starts[n] * width;
    a.out_head = s.size, a.out_row = width;
    a.scale = attr.scale != 0.0F ? attr.scale : 1.0F / std::sqrt(static_cast<float>(s.size));
    a.softcap = attr.softcap;
    a.stop = &c.stop();
    a.visible = [past, window = s.window](std::int64_t, std::int64_t i) -> std::pair<std::int64_t, std::int64_t> {
      return {window >= 0 ? std::max<std::int64_t>(0, past + i + 1 - window) : 0, past + i + 1};
    };
    if (sink.defined()) a.sink = static_cast<const float*>(sink.data());
    attend(a);
  }
  convert_into(c.output(0, c.input(kQuery).dtype(), y.shape()), y);
}

}  // namespace

void register_paged_blocks(OpTable& t) {
  constexpr TypeSet kFloat = set_of(DataType::float32, DataType::float16, DataType::bfloat16);
  constexpr TypeSet kCache = kFloat | bit(DataType::int8), kScale = bit(DataType::float32);
  constexpr Arity kOptional = Arity::optional;
  OpDef d("sdx", "PagedAttention", 1);
  d.in("query", "T", kFloat).in("key value", "T", kFloat, kOptional);
  d.in("key_cache value_cache", "T_CACHE", kCache);
  d.in("key_scales value_scales", "T_SCALE", kScale, kOptional);
  d.in("sequence_starts past_lengths", "", types::int64);
  d.in("block_table", "", bit(DataType::int32));
  d.in("cos_cache sin_cache", "T_ANGLE", kFloat, kOptional);
  d.in("head_sink q_norm_weight k_norm_weight", "T", kFloat, kOptional);
  d.out("output", "T", kFloat);
  d.out("key_cache_out value_cache_out", "T_CACHE", kCache, kOptional);
  d.out("key_scales_out value_scales_out", "T_SCALE", kScale, kOptional);
  d.attrs<PagedAttrs>();
  t.add(std::move(d).infer_with(infer_paged).run_with(run_paged));
}

}  // namespace sdx::ops
