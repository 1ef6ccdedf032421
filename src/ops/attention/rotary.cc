// RotaryEmbedding: ai.onnx 23.

#include "base/thread_pool.h"
#include "ops/attention/attention_core.h"
#include "ops/attention/signatures.h"
#include "ops/context.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

void infer_rotary(InferContext& c) {
  const SymShape* s = c.shape(0);
  if (s == nullptr) return c.output(0, c.dtype(0));
  if (s->size() != 3 && s->size() != 4) c.fail("X must have 3 or 4 axes, received {}", to_string(*s));
  c.output(0, c.dtype(0), *s);
}

struct Geometry {
  std::int64_t batch, heads, length, size, dim;
  HeadView<float> view;
};

Geometry geometry_of(OpContext& c, const Tensor& x) {
  const auto attr = parse<RotaryAttrs>(c);
  const Shape& s = x.shape();
  const auto* data = static_cast<const float*>(x.data());
  Geometry g{};
  if (s.size() == 4) {
    g = {s[0], s[1], s[2], s[3], 0, view_bnsh(data, s[1], s[2], s[3])};
  } else if (s.size() == 3) {
    const std::int64_t heads = attr.num_heads;
    if (heads < 1 || s[2] % heads != 0)
      c.fail("num_heads is {}, but X {} cannot be split into that many heads", heads, x.type_string());
    g = {s[0], heads, s[1], s[2] / heads, 0, view_bsd(data, heads, s[1], s[2] / heads)};
  } else {
    c.fail("X must have 3 or 4 axes, received {}", x.type_string());
  }
  const std::int64_t dim = attr.rotary_embedding_dim;
  g.dim = dim == 0 ? g.size : dim;
  if (g.dim < 0 || g.dim > g.size || g.dim % 2 != 0) {
    c.fail("rotary_embedding_dim is {}; expected an even number up to {}", g.dim, g.size);
  }
  return g;
}

// Row of the caches for every token: looked up by position, or one row per token when the caches are [batch, length, …].
std::vector<std::int64_t> cache_rows(OpContext& c, const Geometry& g, const Tensor& cos) {
  const std::int64_t tokens = element_count(Shape{g.batch, g.length});
  const Tensor* ids = c.optional_input(3);
  const bool fits = ids != nullptr ? cos.rank() == 2 : cos.rank() == 3 && cos.dim(0) == g.batch && cos.dim(1) == g.length;
  if (!fits || cos.shape().back() != g.dim / 2) {
    c.fail("cos_cache and sin_cache must be {}, received {}",
           ids != nullptr ? fmt::format("[positions,{}]", g.dim / 2) : fmt::format("[{},{},{}]", g.batch, g.length, g.dim / 2),
           cos.type_string());
  }
  if (ids != nullptr && (ids->dtype() != DataType::int64 || ids->shape() != Shape{g.batch, g.length})) {
    c.fail("position_ids must be int64[{},{}], received {}", g.batch, g.length, ids->type_string());
  }
  std::vector<std::int64_t> rows(static_cast<std::size_t>(tokens));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = ids != nullptr ? ids->values<std::int64_t>()[i] : static_cast<std::int64_t>(i);
    if (ids == nullptr) continue;
    if (rows[i] < 0) rows[i] += cos.dim(0);  // positions are indices into the caches, which count from the end when negative
    if (rows[i] < 0 || rows[i] >= cos.dim(0)) c.fail("a position lies outside the caches, which have {} rows", cos.dim(0));
  }
  return rows;
}

void run_rotary(OpContext& c) {
  const Tensor& input = c.input(0);
  const Tensor x = converted(input, DataType::float32);
  const Tensor cos = converted(c.input(1), DataType::float32);
  const Tensor sin = converted(c.input(2), DataType::float32);
  if (sin.shape() != cos.shape()) c.fail("cos_cache and sin_cache differ: {} and {}", cos.type_string(), sin.type_string());
  const Geometry g = geometry_of(c, x);
  Tensor y(DataType::float32, x.shape());
  if (x.size() > 0) {
    const std::vector<std::int64_t> rows = cache_rows(c, g, cos);
    const bool interleaved = parse<RotaryAttrs>(c).interleaved;
    const auto* from = static_cast<const float*>(x.data());
    auto* to = static_cast<float*>(y.mutable_data());
    parallel_for(g.batch * g.length, 16, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t row = rows[static_cast<std::size_t>(i)] * (g.dim / 2);
        for (std::int64_t h = 0; h < g.heads; ++h) {
          const float* in = g.view.at(i / g.length, h, i % g.length);
          float* out = to + (in - from);
          rotate(in, out, g.dim, static_cast<const float*>(cos.data()) + row, static_cast<const float*>(sin.data()) + row,
                 interleaved);
          std::copy(in + g.dim, in + g.size, out + g.dim);
        }
      }
    });
  }
  convert_into(c.output(0, input.dtype(), input.shape()), y);
}

}  // namespace

void register_rotary(OpTable& t) {
  // The operator of domain sdx is made by passes/fuse/rotary.cc in models of any opset.
  for (const bool ours : {false, true}) {
    OpDef def = ours ? OpDef("sdx", "RotaryEmbedding", 1) : OpDef("RotaryEmbedding", 23);
    def.in("X cos_cache sin_cache", "T", types::floats);
    def.in("position_ids", "M", types::int64, Arity::optional).out("Y", "T", types::floats);
    def.attrs<RotaryAttrs>();
    t.add(std::move(def).infer_with(infer_rotary).run_with(run_rotary));
  }
}

}  // namespace sdx::ops
