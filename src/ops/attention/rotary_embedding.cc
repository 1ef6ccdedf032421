// com.microsoft RotaryEmbedding 1 and MRotaryEmbedding 1, which takes three positions per token (time, height, width), each for a
// part of the angles. Source of the latter: Qwen2-VL, arXiv:2409.12191.

#include "base/thread_pool.h"
#include "ops/attention/attention_core.h"
#include "ops/attention/signatures.h"
#include "ops/context.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

void infer_rotary(InferContext& c) {
  if (const SymShape* s = c.shape(0)) {
    if (s->size() != 3 && s->size() != 4) c.fail("the input must have 3 or 4 axes, received {}", to_string(*s));
    return c.output(0, c.dtype(0), *s);
  }
  c.output(0, c.dtype(0));
}

struct Geometry {
  std::int64_t batch, heads, length, size, dim;
  HeadView<float> view;
};

Geometry geometry_of(OpContext& c, const Tensor& input, const Tensor& cos, const float* data) {
  const auto attr = parse<RotaryAttrs>(c);
  const Shape& s = input.shape();
  const std::int64_t heads_attr = attr.num_heads;
  const std::int64_t dim_attr = attr.rotary_embedding_dim;
  if (cos.rank() != 2) c.fail("cos_cache must have 2 axes, received {}", cos.type_string());
  if (s.size() != 3 && s.size() != 4) c.fail("the input must have 3 or 4 axes, received {}", input.type_string());
  Geometry g{s[0], 0, 0, 0, 0, {}};
  if (s.size() == 4) {
    g.heads = s[1], g.length = s[2], g.size = s[3];
    g.view = view_bnsh(data, g.heads, g.length, g.size);
  } else {
    g.length = s[1];
    // Without num_heads the caches tell the size of a head.
    g.size = heads_attr > 0 ? s[2] / heads_attr : cos.dim(1) * 2;
    if (g.size <= 0 || s[2] % g.size != 0 || (heads_attr > 0 && s[2] % heads_attr != 0)) {
      c.fail("{} features cannot be split into heads of {}", s[2], g.size);
    }
    g.heads = s[2] / g.size;
    g.view = view_bsd(data, g.heads, g.length, g.size);
  }
  g.dim = dim_attr > 0 ? dim_attr : g.size;
  if (g.dim > g.size || g.dim % 2 != 0 || cos.dim(1) != g.dim / 2) {
    c.fail("rotating {} of {} features per head needs caches with {} columns, received {}", g.dim, g.size, g.dim / 2,
           cos.type_string());
  }
  return g;
}

// The position of every token: given, or counted from the one offset that is given.
std::vector<std::int64_t> positions(OpContext& c, const Tensor& ids, const Geometry& g, std::int64_t limit) {
  const auto count = static_cast<std::size_t>(element_count(Shape{g.batch, g.length}));
  if (ids.size() != 1 && ids.size() != static_cast<std::int64_t>(count)) {
    c.fail("position_ids must be [1] or [{},{}], received {}", g.batch, g.length, ids.type_string());
  }
  const auto given = ids.values<std::int64_t>();
  const bool offset = ids.rank() < 2;
  if (offset && ids.size() != 1) c.fail("position_ids must be [1] or [{},{}], received {}", g.batch, g.length, ids.type_string());
  std::vector<std::int64_t> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t at = offset ? given[0] : given[i];
    if (at < 0 || at >= limit) c.fail("position {} is outside the caches, which have {} rows", at, limit);
    out[i] = offset ? at + static_cast<std::int64_t>(i) % g.length : at;
    if (out[i] >= limit) c.fail("position {} is outside the caches, which have {} rows", out[i], limit);
  }
  return out;
}

// Pointers to each token's cosines and sines; `mixed` holds those that have to be assembled.
struct Angles {
  std::vector<const float*> cos, sin;
  std::vector<float> mixed;
};

Angles plain_angles(OpContext& c, const Geometry& g, const Tensor& cos, const Tensor& sin) {
  Angles a;
  for (const std::int64_t at : positions(c, c.input(1), g, cos.dim(0))) {
    a.cos.push_back(static_cast<const float*>(cos.data()) + at * (g.dim / 2));
    a.sin.push_back(static_cast<const float*>(sin.data()) + at * (g.dim / 2));
  }
  return a;
}

// The one of the three positions that angle `i` follows.
std::vector<std::size_t> streams_of(const RotaryAttrs& attr, std::int64_t half) {
  const IntList parts = attr.mrope_section;
  std::int64_t sum = 0;
  for (const std::int64_t part : parts) {
    if (part < 0 || part > half) fail(ErrorCode::invalid_model, "mrope_section holds {}; expected 0 to {}", part, half);
    sum += part;
  }
  if (parts.size() != 3 || sum != half) {
    fail(ErrorCode::invalid_model, "mrope_section must be 3 numbers that add up to {}, received {}", half, to_string(parts));
  }
  const std::int64_t layout = attr.mrope_layout;
  if (layout != 0 && layout != 1) fail(ErrorCode::invalid_model, "mrope_layout must be 0 or 1, received {}", layout);
  std::vector<std::size_t> streams(static_cast<std::size_t>(half));
  for (std::int64_t i = 0; i < half; ++i) {
    const auto third = static_cast<std::size_t>(i % 3);
    const bool taken = third > 0 && i < 3 * parts[third];
    streams[static_cast<std::size_t>(i)] = layout == 1 ? (taken ? third : 0) : i < parts[0] ? 0 : i < parts[0] + parts[1] ? 1 : 2;
  }
  return streams;
}

Angles mixed_angles(OpContext& c, const Geometry& g, const Tensor& cos, const Tensor& sin) {
  const Tensor& ids = c.input(1);
  const std::int64_t tokens = g.batch * g.length, half = g.dim / 2;
  if (ids.shape() != Shape{3, g.batch, g.length})
    c.fail("position_ids must be [3,{},{}], received {}", g.batch, g.length, ids.type_string());
  const std::vector<std::size_t> streams = streams_of(parse<RotaryAttrs>(c), half);
  const auto* at = static_cast<const std::int64_t*>(ids.data());
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    if (at[i] < 0 || at[i] >= cos.dim(0)) c.fail("position {} is outside the caches, which have {} rows", at[i], cos.dim(0));
  }
  Angles a;
  a.mixed.reserve(static_cast<std::size_t>(2 * tokens * half));
  for (const Tensor* table : {&cos, &sin}) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      (table == &cos ? a.cos : a.sin).push_back(a.mixed.data() + a.mixed.size());
      for (std::int64_t i = 0; i < half; ++i) {
        const std::int64_t row = at[static_cast<std::int64_t>(streams[static_cast<std::size_t>(i)]) * tokens + t];
        a.mixed.push_back(static_cast<const float*>(table->data())[row * half + i]);
      }
    }
  }
  return a;
}

void run_rotary(OpContext& c) {
  const Tensor& input = c.input(0);
  const Tensor x = converted(input, DataType::float32);
  const Tensor cos = converted(c.input(2), DataType::float32);
  const Tensor sin = converted(c.input(3), DataType::float32);
  const auto* data = static_cast<const float*>(x.data());
  const Geometry g = geometry_of(c, x, cos, data);
  if (sin.shape() != cos.shape()) c.fail("cos_cache and sin_cache differ: {} and {}", cos.type_string(), sin.type_string());
  Tensor y(DataType::float32, x.shape());
  if (x.size() > 0) {
    const Angles angles = c.node().op_type == "RotaryEmbedding" ? plain_angles(c, g, cos, sin) : mixed_angles(c, g, cos, sin);
    const bool interleaved = parse<RotaryAttrs>(c).interleaved;
    auto* out = static_cast<float*>(y.mutable_data());
    parallel_for(g.batch * g.length, 16, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const auto token = static_cast<std::size_t>(i);
        for (std::int64_t h = 0; h < g.heads; ++h) {
          const float* from = g.view.at(i / g.length, h, i % g.length);
          float* to = out + (from - data);
          rotate(from, to, g.dim, angles.cos[token], angles.sin[token], interleaved);
          std::copy(from + g.dim, from + g.size, to + g.dim);
        }
      }
    });
  }
  convert_into(c.output(0, input.dtype(), input.shape()), y);
}

}  // namespace

void register_rotary_embedding(OpTable& t) {
  for (const char* name : {"RotaryEmbedding", "MRotaryEmbedding"}) {
    OpDef d("com.microsoft", name, 1);
    d.in("input", "T", types::floats).in("position_ids", "M", types::int64);
    d.in("cos_cache sin_cache", "T", types::floats);
    d.out("output", "T", types::floats);
    d.attrs<RotaryAttrs>();
    t.add(std::move(d).infer_with(infer_rotary).run_with(run_rotary));
  }
}

}  // namespace sdx::ops
