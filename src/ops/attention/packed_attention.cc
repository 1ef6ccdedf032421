// com.microsoft PackedAttention 1, PackedMultiHeadAttention 1: attention over sequences stored without their padding.

#include <algorithm>
#include <cmath>

#include "ops/attention/ms_attention.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct PackedAttrs {
  std::int64_t num_heads = 0;
  IntList qkv_hidden_sizes;  // of PackedAttention
  float scale = 0;           // 0: 1 / sqrt(size)

  void fields(auto& f, const OpId& op) {
    f.required("num_heads", num_heads);
    if (op.name == "PackedAttention") {
      f("qkv_hidden_sizes", qkv_hidden_sizes);
    } else {
      f.unread("mask_filter_value", AttrKind::f);
    }
    f("scale", scale);
  }
};

bool projects(const Node& node) { return node.op_type == "PackedAttention"; }

void infer_packed(InferContext& c) {
  const SymShape* x = c.shape(0);
  const Dim tokens = x != nullptr && !x->empty() ? (*x)[0] : Dim();
  Dim width;
  const IntList sizes = parse<PackedAttrs>(c).qkv_hidden_sizes;
  if (sizes.size() == 3) {
    width = sizes[2];
  } else if (projects(c.node())) {
    if (const SymShape* w = c.shape(1); w != nullptr && w->size() == 2) width = floor_div((*w)[1], Dim(3));
  } else if (x != nullptr && x->size() == 4) {
    width = (*x)[1] * (*x)[3];
  } else if (const SymShape* v = c.shape(2); v != nullptr && v->size() == 2) {
    width = (*v)[1];
  }
  c.output(0, c.dtype(0), {tokens, width});
}

// Queries, keys and values of all tokens as float32 rows, and where to find them.
struct Rows {
  Tensor q, k, v;
  HeadView<float> qs, ks, vs;  // batch step unused
  std::int64_t tokens = 0, size = 0, v_size = 0;
};

HeadView<float> rows_at(const Tensor& t, std::int64_t offset, std::int64_t head, std::int64_t row) {
  return {static_cast<const float*>(t.data()) + offset, 0, head, row};
}

Rows project(OpContext& c, std::int64_t heads) {
  const Tensor &x = c.input(0), &w = c.input(1), &b = c.input(2);
  if (x.rank() != 2 || w.rank() != 2 || x.dim(1) != w.dim(0) || b.size() != w.dim(1)) {
    c.fail("input, weights and bias do not fit together: {}, {} and {}", x.type_string(), w.type_string(), b.type_string());
  }
  std::vector<std::int64_t> sizes = to_vector(parse<PackedAttrs>(c).qkv_hidden_sizes);
  if (sizes.empty()) sizes.assign(3, w.dim(1) / 3);
  bool fits = sizes.size() == 3 && sizes[0] == sizes[1];
  for (std::size_t i = 0; fits && i < 3; ++i) fits = sizes[i] > 0 && sizes[i] <= w.dim(1) && sizes[i] % heads == 0;
  if (!fits || sizes[0] + sizes[1] + sizes[2] != w.dim(1))
    c.fail("weights {} cannot be split into {} heads", w.type_string(), heads);
  const Tensor xf = converted(x, DataType::float32), wf = converted(w, DataType::float32), bf = converted(b, DataType::float32);
  Rows r;
  r.tokens = x.dim(0), r.size = sizes[0] / heads, r.v_size = sizes[2] / heads;
  r.q = Tensor(DataType::float32, {x.dim(0), w.dim(1)});
  dense(static_cast<const float*>(xf.data()), static_cast<const float*>(wf.data()), static_cast<const float*>(bf.data()),
        static_cast<float*>(r.q.mutable_data()), x.dim(0), w.dim(0), w.dim(1));
  r.qs = rows_at(r.q, 0, r.size, w.dim(1));
  r.ks = rows_at(r.q, sizes[0], r.size, w.dim(1));
  r.vs = rows_at(r.q, 2 * sizes[0], r.v_size, w.dim(1));
  return r;
}

void add_bias(Rows& r, const Tensor& bias, std::int64_t heads) {
  const auto* b = static_cast<const float*>(bias.data());
  const auto added = [&](HeadView<float>& view, Tensor& held, const float* add, std::int64_t size) {
    held = gather_rows(CacheParts<float>{1, heads, size, nullptr, 0, 0, view, r.tokens, add, r.tokens, {}});
    view = rows_at(held, 0, r.tokens * size, size);
  };
  Tensor q, k, v;
  added(r.qs, q, b, r.size);
  added(r.ks, k, b + heads * r.size, r.size);
  added(r.vs, v, b + 2 * heads * r.size, r.v_size);
  r.q = q, r.k = k, r.v = v;
}

Rows read_rows(OpContext& c, std::int64_t heads) {
  const Tensor& query = c.input(0);
  Rows r;
  r.tokens = query.rank() > 0 ? query.dim(0) : 0;
  r.q = converted(query, DataType::float32);
  if (query.rank() == 4) {
    r.size = r.v_size = query.dim(3);
    if (query.shape() != Shape{r.tokens, heads, 3, r.size})
      c.fail("packed query must be [tokens,{},3,size], received {}", heads, query.type_string());
    r.qs = rows_at(r.q, 0, 3 * r.size, heads * 3 * r.size);
    r.ks = rows_at(r.q, r.size, 3 * r.size, heads * 3 * r.size);
    r.vs = rows_at(r.q, 2 * r.size, 3 * r.size, heads * 3 * r.size);
  } else {
    const Tensor &key = c.input(1), &value = c.input(2);
    if (query.rank() != 2 || key.shape() != query.shape() || value.rank() != 2 || value.dim(0) != r.tokens ||
        query.dim(1) % heads != 0 || value.dim(1) % heads != 0) {
      c.fail("query, key and value do not fit together: {}, {} and {}", query.type_string(), key.type_string(),
             value.type_string());
    }
    r.k = converted(key, DataType::float32);
    r.v = converted(value, DataType::float32);
    r.size = query.dim(1) / heads, r.v_size = value.dim(1) / heads;
    r.qs = rows_at(r.q, 0, r.size, query.dim(1));
    r.ks = rows_at(r.k, 0, r.size, query.dim(1));
    r.vs = rows_at(r.v, 0, r.v_size, value.dim(1));
  }
  if (const Tensor* b = c.optional_input(3)) {
    if (b->size() != heads * (2 * r.size + r.v_size)) c.fail("bias has {} elements", b->size());
    add_bias(r, converted(*b, DataType::float32), heads);
  }
  return r;
}

void run_packed(OpContext& c) {
  const std::int64_t heads = checked_heads(parse<PackedAttrs>(c).num_heads);
  const bool projected = projects(c.node());
  const Rows r = projected ? project(c, heads) : read_rows(c, heads);
  const Tensor& offsets = c.input(projected ? 3 : 4);
  const Tensor& ends = c.input(projected ? 4 : 5);
  if (offsets.rank() != 2 || ends.dtype() != DataType::int32 || ends.shape() != Shape{offsets.dim(0) + 1}) {
    c.fail("expected token_offset [batch,length] and int32[batch + 1] cumulative lengths, received {} and {}",
           offsets.type_string(), ends.type_string());
  }
  const auto cumulative = ends.values<std::int32_t>();
  const std::int64_t batch = offsets.dim(0), length = offsets.dim(1);
  Tensor bias;
  if (const Tensor* t = c.optional_input(projected ? 5 : 6)) {
    const Shape& s = t->shape();
    if (s.size() != 4 || (s[0] != 1 && s[0] != batch) || (s[1] != 1 && s[1] != heads) || s[2] != length || s[3] != length) {
      c.fail("attention_bias must be [1 or {},1 or {},{},{}], received {}", batch, heads, length, length, t->type_string());
    }
    bias = converted(*t, DataType::float32);
  }
  Tensor y(DataType::float32, {r.tokens, heads * r.v_size});
  std::fill_n(static_cast<float*>(y.mutable_data()), y.size(), 0.0F);
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t first = cumulative[static_cast<std::size_t>(b)], last = cumulative[static_cast<std::size_t>(b) + 1];
    if (first < 0 || last < first || last > r.tokens || last - first > length) {
      c.fail("cumulative_sequence_length goes from {} to {}; there are {} tokens, at most {} a sequence", first, last, r.tokens,
             length);
    }
    AttentionProblem<float> p;
    p.batch = 1, p.heads = p.kv_heads = heads, p.q_len = p.kv_len = last - first, p.size = r.size, p.v_size = r.v_size;
    p.q = r.qs, p.k = r.ks, p.v = r.vs;
    p.q.data = r.qs.at(0, 0, first), p.k.data = r.ks.at(0, 0, first), p.v.data = r.vs.at(0, 0, first);
    p.out = static_cast<float*>(y.mutable_data()) + first * heads * r.v_size;
    p.out_head = r.v_size, p.out_row = heads * r.v_size;
    const float scale = parse<PackedAttrs>(c).scale;
    p.scale = scale != 0.0F ? scale : 1.0F / std::sqrt(static_cast<float>(std::max<std::int64_t>(1, r.size)));
    p.stop = &c.stop();
    if (bias.defined()) {
      const HeadView<float> view{static_cast<const float*>(bias.data()), bias.dim(0) == 1 ? 0 : bias.dim(1) * length * length,
                                 bias.dim(1) == 1 ? 0 : length * length, length};
      p.add_bias = [view, b, n = last - first](std::int64_t, std::int64_t h, std::int64_t i, float* row) {
        const float* add = view.at(b, h, i);
        for (std::int64_t j = 0; j < n; ++j) row[j] += add[j];
      };
    }
    if (p.q_len > 0) attend(p);
  }
  convert_into(c.output(0, c.input(0).dtype(), y.shape()), y);
}

}  // namespace

void register_packed_attention(OpTable& t) {
  constexpr TypeSet kInt = bit(DataType::int32);
  t.add(OpDef("com.microsoft", "PackedAttention", 1)
            .in("input weights bias", "T", types::floats)
            .in("token_offset cumulative_sequence_length", "M", kInt)
            .in("attention_bias", "T", types::floats, Arity::optional)
            .out("output", "T", types::floats)
            .attrs<PackedAttrs>()
            .infer_with(infer_packed)
            .run_with(run_packed));
  t.add(OpDef("com.microsoft", "PackedMultiHeadAttention", 1)
            .in("query", "T", types::floats)
            .in("key value bias", "T", types::floats, Arity::optional)
            .in("token_offset cumulative_sequence_length", "M", kInt)
            .in("attention_bias", "T", types::floats, Arity::optional)
            .out("output", "T", types::floats)
            .attrs<PackedAttrs>()
            .infer_with(infer_packed)
            .run_with(run_packed));
}

}  // namespace sdx::ops
