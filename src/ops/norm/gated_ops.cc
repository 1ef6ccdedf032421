// com.microsoft 1: GatedAdd, ScaledSiLU, GatedRMSNorm, BranchwiseRMSNorm, LinearAttentionGate, HyperConnectionPreMix,
// HyperConnectionPostMix: what surrounds the layers of recent language models.

#include <cmath>

#include "ops/context.h"
#include "ops/math/convert.h"
#include "ops/math/elementwise.h"
#include "ops/norm/norm_reference.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "tensor/dispatch.h"

namespace sdx::ops {
namespace {

struct ScaledSiluAttrs {
  float alpha = 1;

  void fields(auto& f) { f("alpha", alpha); }
};

struct GatedNormAttrs {  // GatedRMSNorm, BranchwiseRMSNorm
  float epsilon = 1e-5F;
  std::string_view activation = "silu";  // of the gate
  std::int64_t num_branches = 0;         // 0: an axis of their own

  void fields(auto& f, const OpId& op) {
    f("epsilon", epsilon);
    if (op.name == "GatedRMSNorm") {
      f("activation", activation);
    } else {
      f("num_branches", num_branches);
    }
  }
};

struct HyperConnectionAttrs {
  std::int64_t num_branches = 0;  // 0: an axis of their own
  float reduction_scale = 1;

  void fields(auto& f, const OpId& op) {
    f("num_branches", num_branches);
    if (op.name == "HyperConnectionPreMix") f("reduction_scale", reduction_scale);
  }
};

constexpr TypeSet kFloat = set_of(DataType::float32, DataType::float16, DataType::bfloat16);

Tensor floats(const Tensor& t) { return converted(t, DataType::float32); }
const float* data(const Tensor& t) { return static_cast<const float*>(t.data()); }
float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

void infer_like_first(InferContext& c) {
  for (std::size_t i = 0; i < c.num_outputs(); ++i) {
    if (c.shape(0) != nullptr) {
      c.output(i, c.dtype(0), *c.shape(0));
    } else {
      c.output(i, c.dtype(0));
    }
  }
}

// The result of a float computation in the type of input 0.
void write(OpContext& c, std::size_t i, const Tensor& y) {
  const DataType type = c.input(0).dtype();
  c.set_output(i, type == DataType::float32 ? y : converted(y, type));
}

// Rounds to T as a separate operator would.
template <class T>
float rounded(float x) {
  return static_cast<float>(static_cast<ComputeType<T>>(T(static_cast<ComputeType<T>>(x))));
}

void run_gated_add(OpContext& c) {
  const Tensor &x = c.input(0), &y = c.input(1), &gate = c.input(2);
  Shape rows = x.shape();
  if (!rows.empty()) rows.back() = 1;
  if (x.rank() == 0 || y.shape() != x.shape() || gate.shape() != rows) {
    c.fail("X and Y must be alike and the gate have a last extent of 1, received {}, {} and {}", x.type_string(), y.type_string(),
           gate.type_string());
  }
  const Tensor fx = floats(x), fy = floats(y), fg = floats(gate);
  Tensor out(DataType::float32, x.shape());
  auto* to = static_cast<float*>(out.mutable_data());
  dispatch(x.dtype(), FloatTypes{}, "GatedAdd", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int64_t width = x.shape().back();
    for (std::int64_t i = 0; i < x.size(); ++i) to[i] = data(fx)[i] + rounded<T>(data(fy)[i] * data(fg)[i / width]);
  });
  write(c, 0, out);
}

void run_scaled_silu(OpContext& c) {
  const Tensor x = floats(c.input(0));
  float scale = parse<ScaledSiluAttrs>(c).alpha;
  if (const Tensor* s = c.optional_input(1)) {
    if (s->size() != 1) c.fail("the scale must be one number, received {}", s->type_string());
    scale = data(floats(*s))[0];
  }
  Tensor out(DataType::float32, x.shape());
  auto* to = static_cast<float*>(out.mutable_data());
  dispatch(c.input(0).dtype(), FloatTypes{}, "ScaledSiLU", [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const float z = rounded<T>(scale * data(x)[i]);
      to[i] = z * rounded<T>(sigmoid(z));
    }
  });
  write(c, 0, out);
}

float epsilon_of(const GatedNormAttrs& attr) {
  const float epsilon = attr.epsilon;
  if (!(epsilon >= 0)) fail(ErrorCode::invalid_model, "attribute 'epsilon' is {}; it must not be negative", epsilon);
  return epsilon;
}

void run_gated_rms_norm(OpContext& c) {
  const auto attr = parse<GatedNormAttrs>(c);
  const std::string_view word = attr.activation;
  const bool silu = word == "silu" || word == "swish";
  if (!silu && word != "sigmoid") c.fail("attribute 'activation' is '{}'; permitted: silu, swish, sigmoid", word);
  const float epsilon = epsilon_of(attr);
  const Tensor x = floats(c.input(0)), scale = floats(c.input(1)), gate = floats(c.input(2));
  const std::int64_t n = scale.size();
  if (x.rank() == 0 || gate.shape() != x.shape() || scale.rank() != 1 || n < 1 || x.shape().back() % n != 0) {
    c.fail("X and the gate must be alike, and their last extent a multiple of the scale's {}, received {} and {}", n,
           c.input(0).type_string(), c.input(2).type_string());
  }
  Tensor out(DataType::float32, x.shape());
  auto* to = static_cast<float*>(out.mutable_data());
  for (std::int64_t i = 0; i < x.size(); i += n) {
    const float factor = inverse_rms(data(x) + i, n, epsilon);
    for (std::int64_t k = 0; k < n; ++k) {
      const float z = data(gate)[i + k];
      to[i + k] = data(x)[i + k] * factor * data(scale)[k] * (silu ? z * sigmoid(z) : sigmoid(z));
    }
  }
  write(c, 0, out);
}

// (..., C, H), or (..., C * H) with attribute num_branches = C.
struct Branches {
  std::int64_t rows = 0, count = 0, width = 0;
};

Branches branches_of(OpContext& c, const Tensor& x) {
  Branches b;
  b.count = parse<HyperConnectionAttrs>(c).num_branches;  // BranchwiseRMSNorm calls it the same
  const Shape& s = x.shape();
  if (b.count < 0 || s.size() < (b.count > 0 ? 1U : 2U))
    c.fail("num_branches = {} does not fit the shape {}", b.count, to_string(s));
  if (b.count > 0) {
    if (s.back() % b.count != 0) c.fail("{} features do not divide into {} branches", s.back(), b.count);
    b.width = s.back() / b.count;
    b.rows = element_count(Shape(s.begin(), s.end() - 1));
  } else {
    b.count = s[s.size() - 2], b.width = s.back();
    b.rows = element_count(Shape(s.begin(), s.end() - 2));
  }
  return b;
}

void run_branchwise_rms_norm(OpContext& c) {
  const Tensor x = floats(c.input(0));
  const Branches b = branches_of(c, x);
  const float epsilon = epsilon_of(parse<GatedNormAttrs>(c));
  Tensor scale;
  std::int64_t each = 0;  // elements of the scale
  if (const Tensor* s = c.optional_input(1)) {
    scale = floats(*s);
    each = s->size();
    if (each != b.width && each != b.count * b.width)
      c.fail("the scale must have {} or {} elements, received {}", b.width, b.count * b.width, s->type_string());
  }
  Tensor out(DataType::float32, x.shape());
  auto* to = static_cast<float*>(out.mutable_data());
  for (std::int64_t i = 0; b.width > 0 && i < x.size(); i += b.width) {
    const float factor = inverse_rms(data(x) + i, b.width, epsilon);
    for (std::int64_t k = 0; k < b.width; ++k)
      to[i + k] = data(x)[i + k] * factor * (each > 0 ? data(scale)[(i + k) % each] : 1.0F);
  }
  write(c, 0, out);
}

void run_linear_attention_gate(OpContext& c) {
  const Tensor a = floats(c.input(0)), &bias = c.input(1), &scale = c.input(2);
  const std::int64_t heads = a.rank() > 0 ? a.shape().back() : 0;
  if (a.rank() == 0 || bias.size() != heads || scale.size() != heads) {
    c.fail("dt_bias and decay_scale must have {} elements, received {} and {}", heads, bias.type_string(), scale.type_string());
  }
  Tensor decay(DataType::float32, a.shape());
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const float x = data(a)[i] + data(bias)[i % heads];
    static_cast<float*>(decay.mutable_data())[i] = data(scale)[i % heads] * softplus(x);
  }
  write(c, 0, decay);
  if (!c.wants_output(1)) return;
  const Tensor b = floats(c.input(3));
  if (b.shape() != a.shape()) c.fail("b must have a's shape {}, received {}", to_string(a.shape()), c.input(3).type_string());
  Tensor beta(DataType::float32, a.shape());
  for (std::int64_t i = 0; i < b.size(); ++i) static_cast<float*>(beta.mutable_data())[i] = sigmoid(data(b)[i]);
  write(c, 1, beta);
}

// Gates per branch or per feature: element (row, branch, feature).
struct Gates {
  Tensor values;
  bool by_feature = false;
  float at(const Branches& b, std::int64_t row, std::int64_t branch, std::int64_t k) const {
    const std::int64_t i = row * b.count + branch;
    return data(values)[by_feature ? i * b.width + k : i];
  }
};

Gates gates_of(OpContext& c, std::size_t input, const Branches& b) {
  Gates g{floats(c.input(input)), false};
  const std::int64_t few = element_count(Shape{b.rows, b.count}), many = element_count(Shape{b.rows, b.count, b.width});
  g.by_feature = g.values.size() != few;
  if (g.by_feature && g.values.size() != many)
    c.fail("the gates must have {} or {} elements, received {}", few, many, c.input(input).type_string());
  return g;
}

void infer_pre_mix(InferContext& c) {
  const SymShape* s = c.shape(0);
  const std::int64_t count = parse<HyperConnectionAttrs>(c).num_branches;
  if (s == nullptr || s->size() < (count > 0 ? 1U : 2U) || count < 0) return c.output(0, c.dtype(0));
  SymShape out = *s;
  if (count > 0) {
    out.back() = floor_div(out.back(), Dim(count));
  } else {
    out.erase(out.end() - 2);
  }
  c.output(0, c.dtype(0), std::move(out));
}

void run_pre_mix(OpContext& c) {
  const Tensor x = floats(c.input(0));
  const Branches b = branches_of(c, x);
  const Gates gates = gates_of(c, 1, b);
  const auto attr = parse<HyperConnectionAttrs>(c);
  const float scale = attr.reduction_scale;
  Shape shape = x.shape();
  if (attr.num_branches == 0) shape.pop_back();
  shape.back() = b.width;
  Tensor out(DataType::float32, shape);
  auto* to = static_cast<float*>(out.mutable_data());
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const std::int64_t row = i / b.width, k = i % b.width;
    float sum = 0;
    for (std::int64_t n = 0; n < b.count; ++n) sum += data(x)[(row * b.count + n) * b.width + k] * gates.at(b, row, n, k);
    to[i] = scale * sum;
  }
  write(c, 0, out);
}

void run_post_mix(OpContext& c) {
  const Tensor x = floats(c.input(0)), block = floats(c.input(1));
  const Branches b = branches_of(c, x);
  if (block.size() != element_count(Shape{b.rows, b.width}))
    c.fail("block_output must have {} x {} elements, received {}", b.rows, b.width, c.input(1).type_string());
  const Gates gates = gates_of(c, 2, b);
  Tensor mix;
  if (const Tensor* m = c.optional_input(3)) {
    mix = floats(*m);
    if (m->size() != element_count(Shape{b.rows, b.count, b.count}))
      c.fail("stream_mix must have {} x {} x {} elements, received {}", b.rows, b.count, b.count, m->type_string());
  }
  Tensor out(DataType::float32, x.shape());
  auto* to = static_cast<float*>(out.mutable_data());
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const std::int64_t k = i % b.width, branch = i / b.width % b.count, row = i / b.width / b.count;
    float sum = mix.defined() ? 0 : data(x)[i];
    for (std::int64_t n = 0; mix.defined() && n < b.count; ++n) {
      sum += data(mix)[(row * b.count + n) * b.count + branch] * data(x)[(row * b.count + n) * b.width + k];
    }
    to[i] = sum + gates.at(b, row, branch, k) * data(block)[row * b.width + k];
  }
  write(c, 0, out);
}

OpDef def(const char* name) { return OpDef("com.microsoft", name, 1); }

}  // namespace

void register_gated_ops(OpTable& t) {
  constexpr Arity kOptional = Arity::optional;
  OpDef gated_add = def("GatedAdd");
  gated_add.in("X Y gate", "T", kFloat).out("output", "T", kFloat);
  t.add(std::move(gated_add).infer_with(infer_like_first).run_with(run_gated_add));
  OpDef scaled_silu = def("ScaledSiLU");
  scaled_silu.in("X", "T", kFloat).in("scale", "M", kFloat, kOptional).out("Y", "T", kFloat).attrs<ScaledSiluAttrs>();
  t.add(std::move(scaled_silu).infer_with(infer_like_first).run_with(run_scaled_silu));
  OpDef gated_rms_norm = def("GatedRMSNorm");
  gated_rms_norm.in("X scale gate", "T", kFloat).out("Y", "T", kFloat);
  gated_rms_norm.attrs<GatedNormAttrs>();
  t.add(std::move(gated_rms_norm).infer_with(infer_like_first).run_with(run_gated_rms_norm));
  OpDef branchwise_rms_norm = def("BranchwiseRMSNorm");
  branchwise_rms_norm.in("X", "T", kFloat).in("scale", "M", kFloat, kOptional).out("Y", "T", kFloat).attrs<GatedNormAttrs>();
  t.add(std::move(branchwise_rms_norm).infer_with(infer_like_first).run_with(run_branchwise_rms_norm));
  OpDef linear_attention_gate = def("LinearAttentionGate");
  linear_attention_gate.in("a", "T", kFloat).in("dt_bias", "TF", bit(DataType::float32));
  linear_attention_gate.in("decay_scale", "TF", bit(DataType::float32)).in("b", "T", kFloat, kOptional);
  linear_attention_gate.out("decay", "T", kFloat).out("beta", "T", kFloat, kOptional);
  t.add(std::move(linear_attention_gate).infer_with(infer_like_first).run_with(run_linear_attention_gate));
  OpDef hyper_connection_pre_mix = def("HyperConnectionPreMix");
  hyper_connection_pre_mix.in("streams", "T", kFloat).in("pre_mix", "M", kFloat).out("output", "T", kFloat);
  hyper_connection_pre_mix.attrs<HyperConnectionAttrs>();
  t.add(std::move(hyper_connection_pre_mix).infer_with(infer_pre_mix).run_with(run_pre_mix));
  OpDef hyper_connection_post_mix = def("HyperConnectionPostMix");
  hyper_connection_post_mix.in("streams block_output", "T", kFloat).in("post_mix", "M", kFloat);
  hyper_connection_post_mix.in("stream_mix", "M", kFloat, kOptional).out("output", "T", kFloat);
  hyper_connection_post_mix.attrs<HyperConnectionAttrs>();
  t.add(std::move(hyper_connection_post_mix).infer_with(infer_like_first).run_with(run_post_mix));
}

}  // namespace sdx::ops
