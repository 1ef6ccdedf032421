// com.microsoft 1: Attention: input projection, then multi-head self-attention; DecoderMaskedSelfAttention: the same for one new
// token, where beams may share the rows of the cache.

#include <cmath>

#include "base/thread_pool.h"
#include "ops/attention/ms_attention.h"
#include "ops/attention/signatures.h"
#include "ops/control/subgraphs.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

using enum ProjectedAttentionIn::Slot;

struct Widths {
  Dim q, k, v;
};

Widths widths_of(const MultiHeadAttrs& attr, const Dim& columns) {
  const IntList given = attr.qkv_hidden_sizes;
  if (given.empty()) {
    if (columns.is_const() && columns.value() % 3 != 0) {
      fail(ErrorCode::invalid_model, "weights have {} columns, which is not a multiple of 3; set qkv_hidden_sizes",
           columns.value());
    }
    const Dim third = floor_div(columns, Dim(3));
    return {third, third, third};
  }
  const std::int64_t heads = checked_heads(attr.num_heads);
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (given.size() != 3 || given[0] != given[1]) {
    fail(ErrorCode::invalid_model, "qkv_hidden_sizes must hold three sizes, of which the first two are equal");
  }
  for (const std::int64_t w : given) {
    if (w < 1 || w > kMost || w % heads != 0) {
      fail(ErrorCode::invalid_model, "qkv_hidden_sizes holds {}, which cannot be split into {} heads", w, heads);
    }
  }
  if (columns.is_const() && columns.value() != given[0] + given[1] + given[2]) {
    fail(ErrorCode::invalid_model, "weights have {} columns; qkv_hidden_sizes add up to {}", columns.value(),
         given[0] + given[1] + given[2]);
  }
  return {given[0], given[1], given[2]};
}

void infer_attention(InferContext& c) {
  const auto attr = parse<MultiHeadAttrs>(c);
  const Dim heads = checked_heads(attr.num_heads);
  const SymShape* x = c.shape(kInput);
  const SymShape* w = c.shape(kWeights);
  if (x != nullptr && x->size() != 3) c.fail("input must have 3 axes, received {}", to_string(*x));
  if (w != nullptr && w->size() != 2) c.fail("weights must have 2 axes, received {}", to_string(*w));
  const Widths widths = widths_of(attr, w != nullptr ? (*w)[1] : Dim());
  const Dim batch = x != nullptr ? (*x)[0] : Dim(), length = x != nullptr ? (*x)[1] : Dim();
  c.output(0, c.dtype(kInput), {batch, length, widths.v});
  Dim total = length;
  if (c.has_input(kPast)) {
    const SymShape* past = c.shape(kPast);
    if (past != nullptr && past->size() != 5) c.fail("past must have 5 axes, received {}", to_string(*past));
    const bool shared = attr.past_present_share_buffer;
    total = past == nullptr ? Dim() : shared ? (*past)[3] : (*past)[3] + length;
  }
  c.output(1, c.dtype(kInput), {Dim(2), batch, heads, total, floor_div(widths.k, heads)});
}

struct Projected {
  std::int64_t batch = 0, length = 0, q = 0, v = 0;  // q and v: widths
  Tensor qkv;                                        // float32 [batch, length, 2q + v]
};

Projected project(OpContext& c) {
  const auto attr = parse<MultiHeadAttrs>(c);
  const Tensor& input = c.input(kInput);
  const Tensor& weights = c.input(kWeights);
  if (input.rank() != 3 || weights.rank() != 2 || input.dim(2) != weights.dim(0)) {
    c.fail("input and weights must be [batch,length,features] and [features,columns], received {} and {}", input.type_string(),
           weights.type_string());
  }
  const std::int64_t heads = checked_heads(attr.num_heads);
  const Widths widths = widths_of(attr, weights.dim(1));
  Projected p{input.dim(0), input.dim(1), widths.q.value(), widths.v.value(), {}};
  if (p.q < heads || p.v < heads || p.q % heads != 0 || p.v % heads != 0) {
    c.fail("widths {} and {} cannot be split into {} heads", p.q, p.v, heads);
  }
  const Tensor x = converted(input, DataType::float32);
  const Tensor w = converted(weights, DataType::float32);
  Tensor bias;
  if (const Tensor* b = c.optional_input(kBias)) {
    if (b->size() != weights.dim(1)) c.fail("bias must have {} elements, received {}", weights.dim(1), b->type_string());
    bias = converted(*b, DataType::float32);
  }
  p.qkv = Tensor(DataType::float32, {p.batch, p.length, weights.dim(1)});
  dense(static_cast<const float*>(x.data()), static_cast<const float*>(w.data()),
        bias.defined() ? static_cast<const float*>(bias.data()) : nullptr, static_cast<float*>(p.qkv.mutable_data()),
        p.batch * p.length, weights.dim(0), weights.dim(1));
  return p;
}

// do_rotary: angles position / 10000^(2i/dim), halves paired. Source: RoFormer, arXiv:2104.09864.
void rotate_in_place(OpContext& c, Projected& p, std::int64_t heads, std::int64_t past_len) {
  const std::int64_t size = p.q / heads;
  std::int64_t dim = parse<MultiHeadAttrs>(c).rotary_embedding_dim;
  if (dim == 0) dim = size;
  if (dim < 0 || dim > size || dim % 2 != 0) c.fail("rotary_embedding_dim is {}; expected an even number up to {}", dim, size);
  const std::int64_t columns = p.qkv.dim(2);
  auto* data = static_cast<float*>(p.qkv.mutable_data());
  parallel_for(p.batch * p.length, 8, [&](std::int64_t first, std::int64_t last) {
    std::vector<float> cos(static_cast<std::size_t>(dim / 2)), sin(cos.size());
    for (std::int64_t r = first; r < last; ++r) {
      const auto position = static_cast<double>(past_len + r % p.length);
      for (std::size_t i = 0; i < cos.size(); ++i) {
        const double angle = position / std::pow(10000.0, 2.0 * static_cast<double>(i) / static_cast<double>(dim));
        cos[i] = static_cast<float>(std::cos(angle));
        sin[i] = static_cast<float>(std::sin(angle));
      }
      for (std::int64_t h = 0; h < 2 * heads; ++h) {  // queries, then keys
        float* at = data + r * columns + h * size;
        rotate(at, at, dim, cos.data(), sin.data(), false);
      }
    }
  });
}

struct Past {
  Tensor data;  // float32 [2, batch, heads, capacity, size]
  std::int64_t len = 0, capacity = 0;
  bool shared = false;
};

Past past_of(OpContext& c, const Projected& p, std::int64_t heads) {
  Past past;
  const Tensor* t = c.optional_input(kPast);
  if (t == nullptr) return past;
  const std::int64_t size = p.q / heads;
  if (t->rank() != 5 || t->dim(0) != 2 || t->dim(1) != p.batch || t->dim(2) != heads || t->dim(4) != size || p.q != p.v) {
    c.fail("past must be [2,{},{},past,{}] with keys and values of one width, received {}", p.batch, heads, size,
           t->type_string());
  }
  past.data = converted(*t, DataType::float32);
  past.len = past.capacity = t->dim(3);
  past.shared = parse<MultiHeadAttrs>(c).past_present_share_buffer;
  if (past.shared) {
    past.len = single_int(c.input(kPastLength), "past_sequence_length");
    if (past.len < 0 || p.length > past.capacity - past.len) {
      c.fail("past_sequence_length is {}: with {} new tokens it exceeds the cache's {} rows", past.len, p.length, past.capacity);
    }
  }
  return past;
}

// The beam that each cached row comes from; nothing if each beam has its own rows.
Indirection indirection_of(OpContext& c, std::int64_t rows, std::int64_t past_len) {
  const Tensor* t = c.optional_input(kIndirection);
  if (t == nullptr || c.node().op_type == "Attention") return {};
  const std::int64_t beams = t->rank() == 3 ? t->dim(1) : 0;
  if (t->dtype() != DataType::int32 || beams < 1 || t->dim(0) * beams != rows || t->dim(2) < past_len) {
    c.fail("cache_indirection must be int32[batch,beams,at least {}] for {} rows in all, received {}", past_len, rows,
           t->type_string());
  }
  return {static_cast<const std::int32_t*>(t->data()), beams, t->dim(2)};
}

void run_attention(OpContext& c) {
  const auto attr = parse<MultiHeadAttrs>(c);
  const std::int64_t heads = checked_heads(attr.num_heads);
  Projected p = project(c);
  const Past past = past_of(c, p, heads);
  if (attr.do_rotary) rotate_in_place(c, p, heads, past.len);
  MsAttention a;
  a.batch = p.batch, a.heads = heads, a.q_len = p.length, a.past_len = past.len, a.kv_len = total_rows(past.len, p.length);
  a.capacity = past.shared ? past.capacity : a.kv_len;
  a.size = p.q / heads, a.v_size = p.v / heads;
  const auto* data = static_cast<const float*>(p.qkv.data());
  const std::int64_t columns = p.qkv.dim(2);
  a.q = {data, p.length * columns, a.size, columns};
  a.k = {data + p.q, p.length * columns, a.size, columns};
  a.v = {data + 2 * p.q, p.length * columns, a.v_size, columns};
  const bool present = c.wants_output(1);
  if (present && a.size != a.v_size) c.fail("present needs keys and values of one width, received {} and {}", p.q, p.v);
  Tensor keys, values, seen_keys, seen_values;
  if (present || past.data.defined()) {
    const auto* cached = past.data.defined() ? static_cast<const float*>(past.data.data()) : nullptr;
    CacheParts<float> parts{p.batch,  heads,   a.size,     cached, past.capacity, past.len, a.k,
                            p.length, nullptr, a.capacity, {},     past.shared};
    CacheParts<float> value_parts = parts;
    value_parts.fresh = a.v;
    if (cached != nullptr) value_parts.past += past.data.size() / 2;
    keys = seen_keys = gather_rows(parts);
    values = seen_values = gather_rows(value_parts);
    parts.indirection = value_parts.indirection = indirection_of(c, p.batch, past.len);
    if (parts.indirection.data != nullptr) seen_keys = gather_rows(parts), seen_values = gather_rows(value_parts);
    a.k = view_bnsh(static_cast<const float*>(seen_keys.data()), heads, a.capacity, a.size);
    a.v = view_bnsh(static_cast<const float*>(seen_values.data()), heads, a.capacity, a.v_size);
  }
  a.scale = attr.scale;
  a.filter = attr.mask_filter_value;
  a.causal = attr.unidirectional;
  a.mask = c.optional_input(kMask);
  a.bias = c.optional_input(kAttentionBias);
  const Tensor y = run_ms_attention(c, a, nullptr);
  const DataType elem = c.input(kInput).dtype();
  convert_into(c.output(0, elem, y.shape()), y);
  if (!present) return;
  Tensor both(DataType::float32, {2, p.batch, heads, a.capacity, a.size});
  auto* to = static_cast<float*>(both.mutable_data());
  std::copy_n(static_cast<const float*>(keys.data()), keys.size(), to);
  std::copy_n(static_cast<const float*>(values.data()), values.size(), to + keys.size());
  convert_into(c.output(1, elem, both.shape()), both);
}

}  // namespace

void register_attention_ms(OpTable& t) {
  constexpr TypeSet kInt = bit(DataType::int32);
  constexpr Arity kOptional = Arity::optional;
  for (const bool decoder : {false, true}) {
    OpDef def("com.microsoft", decoder ? "DecoderMaskedSelfAttention" : "Attention", 1);
    def.in("input weights", "T", types::floats).in("bias", "T", types::floats, kOptional);
    def.in("mask_index", "M", kInt, kOptional).in("past", "T", types::floats, kOptional);
    def.in("attention_bias", "T", types::floats, kOptional).in("past_sequence_length", "M", kInt, kOptional);
    if (decoder) def.in("beam_width cache_indirection", "M", kInt, kOptional);
    def.out("output", "T", types::floats).out("present", "T", types::floats, kOptional);
    def.attrs<MultiHeadAttrs>();
    t.add(std::move(def).infer_with(infer_attention).run_with(run_attention));
  }
}

}  // namespace sdx::ops
