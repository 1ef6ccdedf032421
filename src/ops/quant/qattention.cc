// QAttention: com.microsoft 1. Attention over an input and weights of 8 bits; what follows the projection is in float.

#include <algorithm>
#include <limits>

#include "ops/attention/ms_attention.h"
#include "ops/attention/signatures.h"
#include "ops/op.h"
#include "ops/quant/integer_gemm.h"
#include "ops/quant/quant_codec.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kBytes = set_of(DataType::int8, DataType::uint8);
constexpr TypeSet kReals = set_of(DataType::float32, DataType::float16);

enum In : std::size_t { kInput, kWeight, kBias, kInputScale, kWeightScale, kMask, kInputZero, kWeightZero, kPast };

std::int64_t head_count(const MultiHeadAttrs& attr) {
  const std::int64_t heads = attr.num_heads;
  if (heads < 1 || heads > std::numeric_limits<std::int32_t>::max()) {
    fail(ErrorCode::invalid_model, "num_heads must be positive, received {}", heads);
  }
  return heads;
}

void infer_qattention(InferContext& c) {
  const DataType elem = c.dtype(kBias);
  const std::int64_t heads = head_count(parse<MultiHeadAttrs>(c));
  const SymShape* x = c.shape(kInput);
  const SymShape* w = c.shape(kWeight);
  c.output(0, elem, SymShape(3));
  c.output(1, elem, SymShape(5));
  if (x == nullptr || w == nullptr) return;
  if (x->size() != 3 || w->size() != 2) {
    c.fail("input must be [batch, length, width] and weight [width, 3 * hidden], received {} and {}", to_string(*x),
           to_string(*w));
  }
  const Dim hidden = floor_div((*w)[1], Dim(3));
  c.output(0, elem, SymShape{(*x)[0], (*x)[1], hidden});
  const SymShape* past = c.shape(kPast);
  if (past != nullptr && past->size() != 5) c.fail("past must have 5 axes, received {}", to_string(*past));
  const Dim total = past != nullptr ? (*past)[3] + (*x)[1] : c.has_input(kPast) ? Dim::unknown() : (*x)[1];
  c.output(1, elem, SymShape{2, (*x)[0], heads, total, floor_div(hidden, Dim(heads))});
}

// input * weight + bias: [batch * length, 3 * hidden].
std::vector<float> project(OpContext& c, std::int64_t columns) {
  const Tensor& x = c.input(kInput);
  const Tensor& w = c.input(kWeight);
  const Tensor& ws = c.input(kWeightScale);
  MatMulShapes s = matmul_shapes(x.shape(), w.shape());
  s.plan_batches();
  if (c.input(kInputScale).size() != 1)
    c.fail("input_scale must be one number, received {}", to_string(c.input(kInputScale).shape()));
  if (c.input(kBias).size() != columns) c.fail("bias has {} elements; expected {}", c.input(kBias).size(), columns);
  const QuantParam per = quant_param("weight_scale", ws, columns, 1);
  const float input_scale = decode_floats(c.input(kInputScale))[0];
  const std::vector<float> scales = decode_floats(ws);
  const std::vector<float> bias = decode_floats(c.input(kBias));
  const std::vector<std::int32_t> acc = integer_matmul(c, s, x, c.optional_input(kInputZero), w, c.optional_input(kWeightZero));
  std::vector<float> out(acc.size());
  for (std::size_t i = 0; i < acc.size(); ++i) {
    const auto column = static_cast<std::int64_t>(i) % columns;
    const float scale = input_scale * scales[static_cast<std::size_t>(per.index(0, column))];
    out[i] = static_cast<float>(acc[i]) * scale + bias[static_cast<std::size_t>(column)];
  }
  return out;
}

// Keys and values of the cache and of this call, as [2, batch, heads, past + length, size].
Tensor join_cache(const MsAttention& a, const Tensor* past) {
  Tensor both(DataType::float32, {2, a.batch, a.heads, a.kv_len, a.size});
  const Tensor old = past != nullptr ? converted(*past, DataType::float32) : Tensor();
  const auto* cached = past != nullptr ? static_cast<const float*>(old.data()) : nullptr;
  auto* to = static_cast<float*>(both.mutable_data());
  for (const bool values : {false, true}) {
    CacheParts<float> parts{a.batch, a.heads, a.size,   cached, a.past_len, a.past_len, values ? a.v : a.k,
                            a.q_len, nullptr, a.kv_len, {}};
    if (values && cached != nullptr) parts.past += old.size() / 2;
    const Tensor rows = gather_rows(parts);
    to = std::copy_n(static_cast<const float*>(rows.data()), rows.size(), to);
  }
  return both;
}

void run_qattention(OpContext& c) {
  const auto attr = parse<MultiHeadAttrs>(c);
  const Shape& x = c.input(kInput).shape();
  const Shape& w = c.input(kWeight).shape();
  const std::int64_t heads = head_count(attr);
  if (x.size() != 3 || w.size() != 2 || w[1] % 3 != 0 || w[1] / 3 % heads != 0) {
    c.fail(
        "input must be [batch, length, width] and weight [width, 3 * hidden] with hidden a multiple of {} heads, received {} and "
        "{}",
        heads, to_string(x), to_string(w));
  }
  if (attr.do_rotary || attr.past_present_share_buffer) {
    fail(ErrorCode::not_implemented, "QAttention supports neither do_rotary nor past_present_share_buffer");
  }
  const std::int64_t hidden = w[1] / 3;
  MsAttention a;
  a.batch = x[0], a.heads = heads, a.q_len = x[1];
  a.size = a.v_size = hidden / heads;
  const Tensor* past = c.optional_input(kPast);
  if (past != nullptr) {
    const Shape& p = past->shape();
    if (p.size() != 5 || p[0] != 2 || p[1] != a.batch || p[2] != heads || p[4] != a.size) {
      c.fail("past must be [2,{},{},past,{}], received {}", a.batch, heads, a.size, to_string(p));
    }
    a.past_len = p[3];
  }
  a.capacity = a.kv_len = a.past_len + a.q_len;
  const std::vector<float> qkv = project(c, w[1]);
  a.q = {qkv.data(), a.q_len * w[1], a.size, w[1]};
  a.k = {qkv.data() + hidden, a.q_len * w[1], a.size, w[1]};
  a.v = {qkv.data() + 2 * hidden, a.q_len * w[1], a.size, w[1]};
  Tensor cache;
  if (past != nullptr || c.wants_output(1)) {
    cache = join_cache(a, past);
    const auto* data = static_cast<const float*>(cache.data());
    a.k = view_bnsh(data, heads, a.kv_len, a.size);
    a.v = view_bnsh(data + cache.size() / 2, heads, a.kv_len, a.size);
  }
  a.scale = attr.scale;
  a.filter = attr.mask_filter_value;
  a.causal = attr.unidirectional;
  a.mask = c.optional_input(kMask);
  const Tensor y = run_ms_attention(c, a, nullptr);
  const DataType elem = c.input(kBias).dtype();
  convert_into(c.output(0, elem, y.shape()), y);
  if (c.wants_output(1)) convert_into(c.output(1, elem, cache.shape()), cache);
}

}  // namespace

void register_qattention(OpTable& t) {
  OpDef def("com.microsoft", "QAttention", 1);
  def.in("input", "T1", kBytes).in("weight", "T2", kBytes).in("bias", "T3", kReals);
  def.in("input_scale weight_scale", "T3", kReals);
  def.in("mask_index", "", bit(DataType::int32), Arity::optional).in("input_zero_point", "T1", kBytes, Arity::optional);
  def.in("weight_zero_point", "T2", kBytes, Arity::optional).in("past", "T3", kReals, Arity::optional);
  def.out("output", "T3", kReals).out("present", "T3", kReals, Arity::optional);
  def.attrs<MultiHeadAttrs>();
  t.add(std::move(def).infer_with(infer_qattention).run_with(run_qattention));
}

}  // namespace sdx::ops
