// com.microsoft MultiHeadAttention 1 and DecoderMaskedMultiHeadAttention 1.

#include <array>

#include "ops/attention/ms_attention.h"
#include "ops/attention/signatures.h"
#include "ops/control/subgraphs.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

// --- inference -----------------------------------------------------------------------------------------------------------

struct Extents {
  Dim batch, length, new_keys, size, v_size;
  bool cross = false;  // keys and values come as a whole cache
};

Extents extents_of(InferContext& c, const Dim& heads) {
  Extents e;
  const SymShape* q = c.shape(0);
  const SymShape* k = c.shape(1);
  const SymShape* v = c.shape(2);
  if (q != nullptr) {
    if (q->size() != 3 && q->size() != 5) c.fail("query must have 3 or 5 axes, received {}", to_string(*q));
    e.batch = (*q)[0], e.length = (*q)[1];
    if (q->size() == 5) {
      e.new_keys = e.length;
      e.size = e.v_size = (*q)[4];
      return e;
    }
    e.size = floor_div((*q)[2], c.has_input(1) ? heads : heads * Dim(3));
  }
  if (!c.has_input(1)) {
    e.new_keys = e.length;
    e.v_size = e.size;
  } else if (k != nullptr && k->size() == 5) {
    e.new_keys = (*k)[1];
    e.v_size = e.size;
  } else if (k != nullptr && k->size() == 4) {
    e.new_keys = (*k)[2];
    e.cross = true;
    if (v != nullptr && v->size() == 4) e.v_size = (*v)[3];
  } else if (k != nullptr && k->size() == 3) {
    e.new_keys = (*k)[1];
    if (v != nullptr && v->size() == 3) e.v_size = floor_div((*v)[2], heads);
  } else if (k != nullptr) {
    c.fail("key must have 3, 4 or 5 axes, received {}", to_string(*k));
  }
  return e;
}

void infer_mha(InferContext& c) {
  const auto slots = MultiHeadIn::of(c.node().op_type);
  const Dim heads = checked_heads(parse<MultiHeadAttrs>(c).num_heads);
  const Extents e = extents_of(c, heads);
  Dim total = e.new_keys, capacity = e.new_keys;
  if (c.has_input(slots.past_key) && !e.cross) {
    const SymShape* past = c.shape(slots.past_key);
    if (past != nullptr && past->size() != 4) c.fail("past_key must have 4 axes, received {}", to_string(*past));
    const Dim rows = past != nullptr ? (*past)[2] : Dim();
    total = capacity = rows + e.new_keys;
    if (c.has_input(slots.past_length)) {
      const std::vector<Dim>* len = c.sym(slots.past_length);
      capacity = rows;
      total = len != nullptr && len->size() == 1 ? (*len)[0] + e.new_keys : Dim();
    }
  }
  const DataType elem = c.dtype(0);
  c.output(0, elem, {e.batch, e.length, heads * e.v_size});
  c.output(1, elem, {e.batch, heads, capacity, e.size});
  c.output(2, elem, {e.batch, heads, capacity, e.v_size});
  c.output(3, elem, {e.batch, heads, e.length, total});
}

// --- execution -----------------------------------------------------------------------------------------------------------

struct Inputs {
  MsAttention a;
  std::array<Tensor, 3> held;  // query, key and value as float32
  std::int64_t new_keys = 0;
  bool cross = false;
};

// Views array number `index` of `parts` interleaved arrays, each with [heads, size] per token.
HeadView<float> part_of(const float* data, std::int64_t rows, std::int64_t heads, std::int64_t size, std::int64_t parts,
                        std::int64_t index) {
  // Memory is [batch, row, head, part, size].
  return {data + index * size, element_count(Shape{rows, heads, parts, size}), parts * size, heads * parts * size};
}

void read_key_value(OpContext& c, Inputs& in) {
  MsAttention& a = in.a;
  const Tensor& key = c.input(1);
  in.held[1] = converted(key, DataType::float32);
  const auto* k = static_cast<const float*>(in.held[1].data());
  if (key.rank() == 5) {
    if (key.shape() != Shape{a.batch, key.dim(1), a.heads, 2, a.size}) {
      c.fail("packed key and value must be [{},keys,{},2,{}], received {}", a.batch, a.heads, a.size, key.type_string());
    }
    if (c.has_input(2)) c.fail("value must be left out when key holds both");
    in.new_keys = key.dim(1);
    a.v_size = a.size;
    a.k = part_of(k, in.new_keys, a.heads, a.size, 2, 0);
    a.v = part_of(k, in.new_keys, a.heads, a.size, 2, 1);
    return;
  }
  const Tensor& value = c.input(2);
  in.held[2] = converted(value, DataType::float32);
  const auto* v = static_cast<const float*>(in.held[2].data());
  if (key.rank() == 4) {
    in.cross = true;
    in.new_keys = key.dim(2);
    a.v_size = value.rank() == 4 ? value.dim(3) : 0;
    if (key.shape() != Shape{a.batch, a.heads, in.new_keys, a.size} ||
        value.shape() != Shape{a.batch, a.heads, in.new_keys, a.v_size}) {
      c.fail("key and value must be [{},{},keys,{}], received {} and {}", a.batch, a.heads, a.size, key.type_string(),
             value.type_string());
    }
    a.k = view_bnsh(k, a.heads, in.new_keys, a.size);
    a.v = view_bnsh(v, a.heads, in.new_keys, a.v_size);
    return;
  }
  in.new_keys = key.rank() == 3 ? key.dim(1) : 0;
  a.v_size = value.rank() == 3 ? value.dim(2) / a.heads : 0;
  if (key.shape() != Shape{a.batch, in.new_keys, a.heads * a.size} ||
      value.shape() != Shape{a.batch, in.new_keys, a.heads * a.v_size}) {
    c.fail("key and value must be [{},keys,{}] and [{},keys,width], received {} and {}", a.batch, a.heads * a.size, a.batch,
           key.type_string(), value.type_string());
  }
  a.k = view_bsd(k, a.heads, in.new_keys, a.size);
  a.v = view_bsd(v, a.heads, in.new_keys, a.v_size);
}

Inputs read_inputs(OpContext& c) {
  Inputs in;
  MsAttention& a = in.a;
  a.heads = checked_heads(parse<MultiHeadAttrs>(c).num_heads);
  const Tensor& query = c.input(0);
  if (query.rank() != 3 && query.rank() != 5) c.fail("query must have 3 or 5 axes, received {}", query.type_string());
  a.batch = query.dim(0), a.q_len = query.dim(1);
  in.held[0] = converted(query, DataType::float32);
  const auto* q = static_cast<const float*>(in.held[0].data());
  const bool packed = query.rank() == 5;
  const std::int64_t parts = c.has_input(1) ? 1 : 3;
  a.size = packed ? query.dim(4) : query.dim(2) / (a.heads * parts);
  const Shape expected = packed ? Shape{a.batch, a.q_len, a.heads, 3, a.size} : Shape{a.batch, a.q_len, a.heads * parts * a.size};
  if (query.shape() != expected || a.size < 1 || (packed && c.has_input(1))) {
    c.fail("query must be {}, received {}", to_string(expected), query.type_string());
  }
  if (packed) {
    a.q = part_of(q, a.q_len, a.heads, a.size, 3, 0);
    a.k = part_of(q, a.q_len, a.heads, a.size, 3, 1);
    a.v = part_of(q, a.q_len, a.heads, a.size, 3, 2);
  } else {
    const std::int64_t row = a.heads * parts * a.size;
    const std::int64_t step = element_count(Shape{a.q_len, row});
    a.q = {q, step, a.size, row};
    a.k = {q + a.heads * a.size, step, a.size, row};
    a.v = {q + 2 * a.heads * a.size, step, a.size, row};
  }
  in.new_keys = a.q_len;
  a.v_size = a.size;
  if (c.has_input(1)) read_key_value(c, in);
  return in;
}

const Tensor* optional(OpContext& c, std::size_t slot) { return slot == MultiHeadIn::kNone ? nullptr : c.optional_input(slot); }

// Reads the cached rows, and the capacity of the present cache.
void read_past(OpContext& c, const MultiHeadIn& slots, Inputs& in, std::array<Tensor, 2>& past) {
  MsAttention& a = in.a;
  a.kv_len = a.capacity = in.new_keys;
  const Tensor* key = optional(c, slots.past_key);
  const Tensor* value = optional(c, slots.past_value);
  if ((key == nullptr) != (value == nullptr)) c.fail("past_key and past_value go together");
  if (key == nullptr || in.cross) return;
  const std::int64_t rows = key->rank() == 4 ? key->dim(2) : 0;
  if (key->shape() != Shape{a.batch, a.heads, rows, a.size} || value->shape() != Shape{a.batch, a.heads, rows, a.v_size}) {
    c.fail("past_key and past_value must be [{},{},past,{}] and [{},{},past,{}], received {} and {}", a.batch, a.heads, a.size,
           a.batch, a.heads, a.v_size, key->type_string(), value->type_string());
  }
  past = {converted(*key, DataType::float32), converted(*value, DataType::float32)};
  a.past_len = rows;
  a.kv_len = a.capacity = total_rows(rows, in.new_keys);
  if (const Tensor* len = optional(c, slots.past_length)) {
    a.past_len = single_int(*len, "past_sequence_length");
    if (a.past_len < 0 || a.past_len > rows || in.new_keys > rows - a.past_len) {
      c.fail("past_sequence_length is {}: with {} new tokens it exceeds the cache's {} rows", a.past_len, in.new_keys, rows);
    }
    a.kv_len = a.past_len + in.new_keys;
    a.capacity = rows;
  }
}

Indirection indirection_of(OpContext& c, const MultiHeadIn& slots, const MsAttention& a) {
  const Tensor* t = optional(c, slots.indirection);
  if (t == nullptr) return {};
  const std::int64_t beams = t->rank() == 3 ? t->dim(1) : 0;
  if (t->dtype() != DataType::int32 || beams < 1 || t->dim(0) * beams != a.batch || t->dim(2) < a.past_len) {
    c.fail("cache_indirection must be int32[batch,beams,at least {}] for {} rows in all, received {}", a.past_len, a.batch,
           t->type_string());
  }
  return {static_cast<const std::int32_t*>(t->data()), beams, t->dim(2)};
}

void run_mha(OpContext& c) {
  const auto attr = parse<MultiHeadAttrs>(c);
  const auto slots = MultiHeadIn::of(c.node().op_type);
  Inputs in = read_inputs(c);
  MsAttention& a = in.a;
  std::array<Tensor, 2> past;
  read_past(c, slots, in, past);
  // Empty inputs may claim any extent; these enter products below.
  constexpr std::int64_t kWidest = std::int64_t{1} << 31;
  if (a.size > kWidest || a.v_size > kWidest) c.fail("heads of {} and {} features are too wide", a.size, a.v_size);
  Tensor bias;
  const float* b = nullptr;
  if (const Tensor* t = optional(c, slots.bias)) {
    if (t->size() != a.heads * (2 * a.size + a.v_size)) {
      c.fail("bias must have {} elements, received {}", a.heads * (2 * a.size + a.v_size), t->type_string());
    }
    bias = converted(*t, DataType::float32);
    b = static_cast<const float*>(bias.data());
  }
  Tensor q, keys, values;
  std::array<Tensor, 2> present;
  if (b != nullptr) {
    q = gather_rows(CacheParts<float>{a.batch, a.heads, a.size, nullptr, 0, 0, a.q, a.q_len, b, a.q_len, {}});
    a.q = view_bnsh(static_cast<const float*>(q.data()), a.heads, a.q_len, a.size);
  }
  const bool cached = past[0].defined();
  const bool add = b != nullptr && !in.cross;  // a ready-made cache has its bias already
  if (cached || add || c.wants_output(1) || c.wants_output(2)) {
    const auto* old = cached ? static_cast<const float*>(past[0].data()) : nullptr;
    CacheParts<float> key_parts{a.batch,
                                a.heads,
                                a.size,
                                old,
                                cached ? past[0].dim(2) : 0,
                                a.past_len,
                                a.k,
                                in.new_keys,
                                add ? b + a.heads * a.size : nullptr,
                                a.capacity,
                                {},
                                true};
    CacheParts<float> value_parts = key_parts;
    value_parts.size = a.v_size;
    value_parts.past = cached ? static_cast<const float*>(past[1].data()) : nullptr;
    value_parts.fresh = a.v;
    value_parts.bias = add ? b + 2 * a.heads * a.size : nullptr;
    present = {gather_rows(key_parts), gather_rows(value_parts)};
    keys = present[0], values = present[1];
    // Beams share history: the present cache keeps each beam's own rows, attention reads those the indirection names.
    key_parts.indirection = value_parts.indirection = indirection_of(c, slots, a);
    if (key_parts.indirection.data != nullptr) {
      keys = gather_rows(key_parts);
      values = gather_rows(value_parts);
    }
    a.k = view_bnsh(static_cast<const float*>(keys.data()), a.heads, a.capacity, a.size);
    a.v = view_bnsh(static_cast<const float*>(values.data()), a.heads, a.capacity, a.v_size);
  }
  a.scale = attr.scale;
  a.filter = attr.mask_filter_value;
  a.causal = attr.unidirectional;
  a.mask = optional(c, slots.mask);
  a.bias = optional(c, slots.attention_bias);
  Tensor scores;
  const Tensor y = run_ms_attention(c, a, c.wants_output(3) ? &scores : nullptr);
  const DataType elem = c.input(0).dtype();
  convert_into(c.output(0, elem, y.shape()), y);
  if (c.wants_output(1)) convert_into(c.output(1, elem, present[0].shape()), present[0]);
  if (c.wants_output(2)) convert_into(c.output(2, elem, present[1].shape()), present[1]);
  if (scores.defined()) convert_into(c.output(3, elem, scores.shape()), scores);
}

OpDef common_part(const char* name) {
  OpDef def("com.microsoft", name, 1);
  def.in("query", "T", types::floats).in("key value", "T", types::floats, Arity::optional);
  def.out("output", "T", types::floats)
      .out("present_key present_value", "T", types::floats, Arity::optional)
      .out("qk", "QK", types::floats, Arity::optional);
  def.attrs<MultiHeadAttrs>();
  return def;
}

}  // namespace

void register_multi_head_attention(OpTable& t) {
  constexpr TypeSet kInt = bit(DataType::int32);
  OpDef multi = common_part("MultiHeadAttention");
  multi.in("bias", "T", types::floats, Arity::optional)
      .in("key_padding_mask", "M", kInt, Arity::optional)
      .in("attention_bias past_key past_value", "T", types::floats, Arity::optional)
      .in("past_sequence_length cache_indirection", "M", kInt, Arity::optional);
  t.add(std::move(multi).infer_with(infer_mha).run_with(run_mha));
  OpDef decoder = common_part("DecoderMaskedMultiHeadAttention");
  decoder.in("mask_index", "M", kInt, Arity::optional)
      .in("attention_bias past_key past_value", "T", types::floats, Arity::optional)
      .in("past_sequence_length beam_width cache_indirection", "M", kInt, Arity::optional)
      .in("bias", "T", types::floats, Arity::optional);
  t.add(std::move(decoder).infer_with(infer_mha).run_with(run_mha));
}

}  // namespace sdx::ops
