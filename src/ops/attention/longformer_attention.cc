// com.microsoft LongformerAttention 1: each token sees a window around itself and the global tokens; those see everything,
// through projections of their own. Source: Beltagy et al., arXiv:2004.05150.

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention/attention_core.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct LongformerAttentionAttrs {
  std::int64_t num_heads = 0;
  std::int64_t window = 0;

  void fields(auto& f) {
    f.required("num_heads", num_heads);
    f.required("window", window);
  }
};

enum In : std::size_t { kInput, kWeight, kBias, kMask, kGlobalWeight, kGlobalBias, kGlobal };

struct Options {
  std::int64_t heads, window;
};

Options options_of(const LongformerAttentionAttrs& attr) {
  const Options o{attr.num_heads, attr.window};
  if (o.heads < 1 || o.heads > (1 << 20)) fail(ErrorCode::invalid_model, "num_heads must be positive, received {}", o.heads);
  if (o.window < 1 || o.window > (1 << 30)) fail(ErrorCode::invalid_model, "window must be positive, received {}", o.window);
  return o;
}

void infer_longformer(InferContext& c) {
  options_of(parse<LongformerAttentionAttrs>(c));
  const SymShape* x = c.shape(kInput);
  if (x == nullptr) return c.output(0, c.dtype(kInput));
  if (x->size() != 3) c.fail("input must have 3 axes, received {}", to_string(*x));
  c.output(0, c.dtype(kInput), *x);
}

// [batch, length, 3 * hidden]: queries, keys and values side by side.
Tensor project(OpContext& c, const Tensor& x, std::size_t weight, std::size_t bias) {
  const std::int64_t hidden = x.dim(2);
  const Tensor w = converted(c.input(weight), DataType::float32), b = converted(c.input(bias), DataType::float32);
  if (w.shape() != Shape{hidden, 3 * hidden} || b.size() != 3 * hidden) {
    c.fail("weights and biases must be [{},{}] and [{}], received {} and {}", hidden, 3 * hidden, 3 * hidden,
           c.input(weight).type_string(), c.input(bias).type_string());
  }
  Tensor y(DataType::float32, {x.dim(0), x.dim(1), 3 * hidden});
  dense(static_cast<const float*>(x.data()), static_cast<const float*>(w.data()), static_cast<const float*>(b.data()),
        static_cast<float*>(y.mutable_data()), x.dim(0) * x.dim(1), hidden, 3 * hidden);
  return y;
}

struct Flags {
  Tensor mask;  // float32 [batch, length]: below 0 is masked
  const std::int32_t* global = nullptr;
  std::int64_t length = 0, window = 0;
  bool is_global(std::int64_t b, std::int64_t i) const { return global[b * length + i] != 0; }
  bool masked(std::int64_t b, std::int64_t i) const { return static_cast<const float*>(mask.data())[b * length + i] < 0; }
  bool sees(std::int64_t b, std::int64_t i, std::int64_t j) const {
    return !masked(b, j) && (is_global(b, i) || is_global(b, j) || std::abs(i - j) <= window);
  }
};

// Attention of all tokens over one set of projections.
Tensor attend_over(OpContext& c, const Tensor& qkv, const Flags& flags, std::int64_t heads) {
  const std::int64_t hidden = qkv.dim(2) / 3, length = qkv.dim(1), size = hidden / heads;
  Tensor y(DataType::float32, {qkv.dim(0), length, hidden});
  const auto* data = static_cast<const float*>(qkv.data());
  AttentionProblem<float> a;
  a.batch = qkv.dim(0), a.heads = a.kv_heads = heads, a.q_len = a.kv_len = length, a.size = a.v_size = size;
  a.q = {data, length * 3 * hidden, size, 3 * hidden};
  a.k = {data + hidden, length * 3 * hidden, size, 3 * hidden};
  a.v = {data + 2 * hidden, length * 3 * hidden, size, 3 * hidden};
  a.out = static_cast<float*>(y.mutable_data());
  a.out_batch = length * hidden, a.out_head = size, a.out_row = hidden;
  a.scale = 1.0F / std::sqrt(static_cast<float>(size));
  a.stop = &c.stop();
  a.add_bias = [&](std::int64_t b, std::int64_t, std::int64_t i, float* row) {
    for (std::int64_t j = 0; j < length; ++j) {
      if (!flags.sees(b, i, j)) row[j] = -std::numeric_limits<float>::infinity();
    }
  };
  attend(a);
  return y;
}

void run_longformer(OpContext& c) {
  const Options o = options_of(parse<LongformerAttentionAttrs>(c));
  const Tensor& input = c.input(kInput);
  if (input.rank() != 3 || input.dim(2) < 1 || input.dim(2) % o.heads != 0) {
    c.fail("input must be [batch,length,features of {} heads], received {}", o.heads, input.type_string());
  }
  const Shape tokens{input.dim(0), input.dim(1)};
  const Tensor &mask = c.input(kMask), &global = c.input(kGlobal);
  if (mask.shape() != tokens || global.shape() != tokens || global.dtype() != DataType::int32) {
    c.fail("mask and global must be {}, received {} and {}", to_string(tokens), mask.type_string(), global.type_string());
  }
  const Tensor x = converted(input, DataType::float32);
  const Flags flags{converted(mask, DataType::float32), static_cast<const std::int32_t*>(global.data()), input.dim(1), o.window};
  Tensor y = attend_over(c, project(c, x, kWeight, kBias), flags, o.heads);
  const auto* flag = flags.global;
  if (std::any_of(flag, flag + global.size(), [](std::int32_t f) { return f != 0; })) {
    const Tensor wide = attend_over(c, project(c, x, kGlobalWeight, kGlobalBias), flags, o.heads);
    const std::int64_t hidden = input.dim(2);
    for (std::int64_t i = 0; i < global.size(); ++i) {
      if (flag[i] == 0) continue;
      std::copy_n(static_cast<const float*>(wide.data()) + i * hidden, hidden,
                  static_cast<float*>(y.mutable_data()) + i * hidden);
    }
  }
  convert_into(c.output(0, input.dtype(), input.shape()), y);
}

}  // namespace

void register_longformer_attention(OpTable& t) {
  constexpr TypeSet kFloat = set_of(DataType::float32, DataType::float16);
  OpDef d("com.microsoft", "LongformerAttention", 1);
  d.in("input weight bias mask global_weight global_bias", "T", kFloat);
  d.in("global", "G", bit(DataType::int32)).out("output", "T", kFloat);
  d.attrs<LongformerAttentionAttrs>();
  t.add(std::move(d).infer_with(infer_longformer).run_with(run_longformer));
}

}  // namespace sdx::ops
