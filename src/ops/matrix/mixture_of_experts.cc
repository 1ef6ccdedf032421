// com.microsoft 1: MoE and QMoE: each token goes through the k experts (two or three matrix products) that its router scores
// pick. Source: Shazeer et al., arXiv:1701.06538; gated activations: Shazeer, arXiv:2002.05202.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/thread_pool.h"
#include "ops/attention/attention_core.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "tensor/types.h"

namespace sdx::ops {
namespace {

struct Inputs {  // where the operators keep what belongs to a projection; 0: nowhere
  std::size_t weights, scales, bias, zero_points;
};
constexpr Inputs kPlain[3] = {{2, 0, 3, 0}, {4, 0, 5, 0}, {6, 0, 7, 0}};
constexpr Inputs kQuantised[3] = {{2, 3, 4, 11}, {5, 6, 7, 12}, {8, 9, 10, 13}};
constexpr std::size_t kRouterWeights = 14;

enum class Activation : std::uint8_t { relu, gelu, silu, swiglu, identity };

struct ExpertsAttrs {
  std::int64_t k = 1, swiglu_fusion = 0;
  bool normalize_routing_weights = false, use_sparse_mixer = false;
  float activation_alpha = 1, activation_beta = 0, swiglu_limit = std::numeric_limits<float>::infinity();
  std::string_view activation_type = "relu";
  // QMoE:
  std::string_view quant_type = "int";
  std::int64_t block_size = 0, expert_weight_bits = 4, weights_prepacked = -1;
  std::optional<std::int64_t> bits[3];  // of each layer's weights; else expert_weight_bits

  void fields(auto& f, const OpId& op) {
    f("k", k);
    f("normalize_routing_weights", normalize_routing_weights);
    f("swiglu_fusion", swiglu_fusion);
    f("use_sparse_mixer", use_sparse_mixer);
    f("activation_alpha", activation_alpha);
    f("activation_beta", activation_beta);
    f("swiglu_limit", swiglu_limit);
    f("activation_type", activation_type);
    if (op.name != "QMoE") return;
    f.unread("accuracy_level", AttrKind::i);
    f("block_size", block_size);
    f("expert_weight_bits", expert_weight_bits);
    f("fc1_expert_weight_bits", bits[0]);
    f("fc2_expert_weight_bits", bits[1]);
    f("fc3_expert_weight_bits", bits[2]);
    f("weights_prepacked", weights_prepacked);
    f("quant_type", quant_type);
  }
};

struct Options {
  std::int64_t k = 0, fusion = 0;
  bool normalize = false;
  Activation activation = Activation::relu;
  float alpha = 0, beta = 0, limit = 0;
  bool quantised = false;
  std::int64_t block = 0, bits[3] = {4, 4, 4};
  bool fused() const { return activation == Activation::swiglu && fusion != 0; }
};

Activation activation_of(std::string_view word) {
  if (word == "relu") return Activation::relu;
  if (word == "gelu") return Activation::gelu;
  if (word == "silu") return Activation::silu;
  if (word == "swiglu") return Activation::swiglu;
  if (word == "identity") return Activation::identity;
  fail(ErrorCode::invalid_model, "activation_type must be relu, gelu, silu, swiglu or identity, received '{}'", word);
}

void read_quantisation(const ExpertsAttrs& attr, Options& o) {
  const std::string_view type = attr.quant_type;
  if (type != "int") fail(ErrorCode::not_implemented, "QMoE with quant_type '{}' is not supported; 'int' is", type);
  if (attr.weights_prepacked > 0) {
    fail(ErrorCode::not_implemented,
         "weights packed beforehand for one device cannot be read: export with weights_prepacked = 0");
  }
  o.block = attr.block_size;
  if (o.block < 0 || (o.block > 0 && (o.block < 16 || o.block > (1 << 30) || (o.block & (o.block - 1)) != 0))) {
    fail(ErrorCode::invalid_model, "block_size must be a power of two from 16, received {}", o.block);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    o.bits[i] = attr.bits[i].value_or(attr.expert_weight_bits);
    if (o.bits[i] != 2 && o.bits[i] != 4 && o.bits[i] != 8) {
      fail(ErrorCode::invalid_model, "experts' weights must have 2, 4 or 8 bits, received {}", o.bits[i]);
    }
  }
}

Options options_of(const Node& node) {
  const auto attr = parse<ExpertsAttrs>(node);
  Options o;
  o.k = attr.k;
  o.normalize = attr.normalize_routing_weights;
  o.activation = activation_of(attr.activation_type);
  o.fusion = attr.swiglu_fusion;
  o.alpha = attr.activation_alpha;
  o.beta = attr.activation_beta;
  o.limit = attr.swiglu_limit;
  o.quantised = node.op_type == "QMoE";
  if (o.fusion < 0 || o.fusion > 2) fail(ErrorCode::invalid_model, "swiglu_fusion must be 0, 1 or 2, received {}", o.fusion);
  if (o.k < 1) fail(ErrorCode::invalid_model, "k must be positive, received {}", o.k);
  if (attr.use_sparse_mixer) {
    fail(ErrorCode::not_implemented, "{} with use_sparse_mixer is not supported", node.op_type);
  }
  if (o.quantised) read_quantisation(attr, o);
  return o;
}

void infer_moe(InferContext& c) {
  options_of(c.node());
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, c.dtype(0));
  if (x->size() != 2 && x->size() != 3) c.fail("the input must have 2 or 3 axes, received {}", to_string(*x));
  c.output(0, c.dtype(0), *x);
}

// The weights [experts, rows, columns] and biases [experts, rows] of one of the products.
struct Projection {
  std::int64_t rows = 0, columns = 0;
  Tensor floats, scales, bias;  // float32
  const std::uint8_t* packed = nullptr;
  const std::uint8_t* zero_points = nullptr;
  std::int64_t bits = 0, block = 0, blocks = 1, row_bytes = 0, zero_bytes = 0;

  // Row `row` of expert `e`; `scratch` has `columns` elements.
  const float* weights(std::int64_t e, std::int64_t row, float* scratch) const {
    const std::int64_t at = e * rows + row;
    if (packed == nullptr) return static_cast<const float*>(floats.data()) + at * columns;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const float scale = static_cast<const float*>(scales.data())[at * blocks + b];
      const float zero = zero_point(e, row, b);
      const std::int64_t end = std::min(columns, (b + 1) * block);
      for (std::int64_t i = b * block; i < end; ++i) {
        scratch[i] = (static_cast<float>(get_packed(packed + at * row_bytes, static_cast<int>(bits), i)) - zero) * scale;
      }
    }
    return scratch;
  }
  float start(std::int64_t e, std::int64_t row) const {
    return bias.defined() ? static_cast<const float*>(bias.data())[e * rows + row] : 0.0F;
  }

 private:
  float zero_point(std::int64_t e, std::int64_t row, std::int64_t b) const {
    if (zero_points == nullptr) return static_cast<float>(1 << (bits - 1));
    const bool by_row = zero_bytes > 0;  // else all rows of an expert are packed together
    const std::uint8_t* from = zero_points + (by_row ? (e * rows + row) * zero_bytes : e * ceil_div(rows * bits, 8));
    return static_cast<float>(get_packed(from, static_cast<int>(bits), by_row ? b : row));
  }
  static std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
};

void read_quantised(OpContext& c, const Options& o, std::size_t number, std::int64_t experts, Projection& p) {
  const Inputs& at = kQuantised[number];
  const Tensor& w = c.input(at.weights);
  p.bits = o.bits[number];
  p.row_bytes = w.dim(2);
  p.columns = p.row_bytes * 8 / p.bits;
  p.block = o.block > 0 ? o.block : std::max<std::int64_t>(1, p.columns);
  if (p.columns % p.block != 0) c.fail("{} features do not divide into blocks of {}", p.columns, p.block);
  p.blocks = p.columns / p.block;
  p.packed = static_cast<const std::uint8_t*>(w.data());
  p.scales = converted(c.input(at.scales), DataType::float32);
  if (p.scales.size() != element_count(Shape{experts, p.rows, p.blocks})) {
    c.fail("scales must be [{},{},{}], received {}", experts, p.rows, p.blocks, p.scales.type_string());
  }
  if (const Tensor* z = c.optional_input(at.zero_points)) {
    p.zero_bytes = o.block > 0 ? (p.blocks * p.bits + 7) / 8 : 0;
    const std::int64_t expected = o.block > 0 ? experts * p.rows * p.zero_bytes : experts * ((p.rows * p.bits + 7) / 8);
    if (z->dtype() != DataType::uint8 || z->size() != expected) {
      c.fail("zero points must have {} bytes, received {}", expected, z->type_string());
    }
    p.zero_points = static_cast<const std::uint8_t*>(z->data());
  }
}

Projection projection_of(OpContext& c, const Options& o, std::size_t number, std::int64_t experts) {
  const Inputs& at = (o.quantised ? kQuantised : kPlain)[number];
  const Tensor& w = c.input(at.weights);
  if (w.rank() != 3 || w.dim(0) != experts || (o.quantised && w.dtype() != DataType::uint8)) {
    c.fail("the weights of FC{} must be {}[{},rows,columns], received {}", number + 1, o.quantised ? "uint8" : "", experts,
           w.type_string());
  }
  Projection p;
  p.rows = w.dim(1);
  constexpr std::int64_t kWidest = std::int64_t{1} << 31;
  if (p.rows > kWidest || w.dim(2) > kWidest) c.fail("weights {} are too wide", w.type_string());
  if (o.quantised) {
    read_quantised(c, o, number, experts, p);
  } else {
    p.columns = w.dim(2);
    p.floats = converted(w, DataType::float32);
  }
  if (const Tensor* b = c.optional_input(at.bias)) {
    if (b->size() != element_count(Shape{experts, p.rows}))
      c.fail("the bias of FC{} must be [{},{}], received {}", number + 1, experts, p.rows, b->type_string());
    p.bias = converted(*b, DataType::float32);
  }
  return p;
}

// The tokens of an expert, and the weights of its answers.
struct Route {
  std::int64_t token;
  float weight;
};

std::vector<std::vector<Route>> routes_of(OpContext& c, const Options& o, std::int64_t tokens, std::int64_t experts) {
  const Tensor scores = converted(c.input(1), DataType::float32);
  Tensor mixing;
  if (o.quantised && c.has_input(kRouterWeights)) {
    mixing = converted(c.input(kRouterWeights), DataType::float32);
    if (mixing.shape() != scores.shape())
      c.fail("router_weights must be {}, received {}", to_string(scores.shape()), mixing.type_string());
  }
  std::vector<std::vector<Route>> routes(static_cast<std::size_t>(experts));
  std::vector<float> p(static_cast<std::size_t>(experts));
  std::vector<std::size_t> order(p.size());
  for (std::int64_t t = 0; t < tokens; ++t) {
    const float* row = static_cast<const float*>(scores.data()) + t * experts;
    std::transform(row, row + experts, p.begin(),
                   [](float s) { return std::isnan(s) ? std::numeric_limits<float>::lowest() : s; });
    const float top = *std::max_element(p.begin(), p.end());
    float sum = 0;
    for (float& x : p) sum += x = std::exp(x - top);
    for (float& x : p) x /= sum;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + o.k, order.end(),
                      [&](std::size_t a, std::size_t b) { return p[a] != p[b] ? p[a] > p[b] : a > b; });
    if (mixing.defined()) std::copy_n(static_cast<const float*>(mixing.data()) + t * experts, experts, p.begin());
    float chosen = 0;
    for (std::int64_t i = 0; i < o.k; ++i) chosen += p[order[static_cast<std::size_t>(i)]];
    for (std::int64_t i = 0; i < o.k; ++i) {
      const std::size_t e = order[static_cast<std::size_t>(i)];
      // QMoE's own scores are a softmax over the chosen experts alone (as in ONNX Runtime's CPU kernel): they are normalised.
      const bool normalize = o.normalize || (o.quantised && !mixing.defined());
      const float weight = normalize && chosen != 0 ? p[e] / chosen : p[e];
      if (weight != 0) routes[e].push_back({t, weight});
    }
  }
  return routes;
}

float activated(Activation kind, float x) {
  switch (kind) {
    case Activation::relu: return std::max(x, 0.0F);
    case Activation::gelu: return 0.5F * x * (1 + std::tanh(0.79788456F * (x + 0.044715F * x * x * x)));
    case Activation::silu: return x / (1 + std::exp(-x));
    default: return x;
  }
}

float swiglu(const Options& o, float gate, float linear) {
  const float g = std::min(gate, o.limit);
  const float l = std::max(std::min(linear, o.limit), -o.limit);
  return g / (1 + std::exp(-o.alpha * g)) * (l + o.beta);
}

struct Experts {
  Projection fc1, fc2, fc3;
  bool has_fc3 = false;
};

// out[tokens, rows] = in[tokens, columns] * weights' + bias.
std::vector<float> multiply(OpContext& c, const Projection& p, std::int64_t expert, const std::vector<float>& in,
                            std::int64_t tokens) {
  std::vector<float> out(static_cast<std::size_t>(tokens * p.rows));
  parallel_for(p.rows, 1 + 16384 / (1 + tokens * p.columns), [&](std::int64_t first, std::int64_t last) {
    std::vector<float> scratch(static_cast<std::size_t>(p.columns));
    for (std::int64_t row = first; row < last; ++row) {
      c.stop().check();
      const float* w = p.weights(expert, row, scratch.data());
      const float start = p.start(expert, row);
      for (std::int64_t t = 0; t < tokens; ++t)
        out[static_cast<std::size_t>(t * p.rows + row)] = start + dot(in.data() + t * p.columns, w, p.columns);
    }
  });
  return out;
}

// The input of the last product.
std::vector<float> gated(const Options& o, const Experts& x, const std::vector<float>& first, const std::vector<float>& third) {
  const auto inter = static_cast<std::size_t>(x.fc2.columns);
  const auto wide = static_cast<std::size_t>(x.fc1.rows);
  std::vector<float> out(first.size() / wide * inter);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t t = i / inter, j = i % inter;
    const float* row = first.data() + t * wide;
    if (o.fused()) {
      out[i] = o.fusion == 1 ? swiglu(o, row[2 * j], row[2 * j + 1]) : swiglu(o, row[j], row[inter + j]);
    } else if (o.activation == Activation::swiglu) {
      out[i] = swiglu(o, row[j], third[i]);
    } else {
      out[i] = activated(o.activation, row[j]) * (x.has_fc3 ? third[i] : 1.0F);
    }
  }
  return out;
}

Experts experts_of(OpContext& c, const Options& o, std::int64_t experts, std::int64_t hidden) {
  Experts x;
  x.has_fc3 = c.has_input((o.quantised ? kQuantised : kPlain)[2].weights);
  x.fc1 = projection_of(c, o, 0, experts);
  x.fc2 = projection_of(c, o, 1, experts);
  if (x.has_fc3) x.fc3 = projection_of(c, o, 2, experts);
  const std::int64_t inter = x.fc2.columns;
  if (x.fc1.columns != hidden || x.fc2.rows != hidden || x.fc1.rows != inter * (o.fused() ? 2 : 1)) {
    c.fail("FC1 is [{},{}] and FC2 [{},{}], which do not fit {} features", x.fc1.rows, x.fc1.columns, x.fc2.rows, inter, hidden);
  }
  if (x.has_fc3 && (o.fused() || x.fc3.rows != inter || x.fc3.columns != hidden)) {
    c.fail("FC3 is [{},{}]; expected {}", x.fc3.rows, x.fc3.columns,
           o.fused() ? "no FC3, because it is fused into FC1" : "FC1's shape");
  }
  if (o.activation == Activation::swiglu && !o.fused() && !x.has_fc3) c.fail("swiglu without fusion needs FC3");
  return x;
}

void run_moe(OpContext& c) {
  const Options o = options_of(c.node());
  const Tensor& input = c.input(0);
  if (input.rank() != 2 && input.rank() != 3) c.fail("the input must have 2 or 3 axes, received {}", input.type_string());
  const std::int64_t hidden = input.shape().back();
  const std::int64_t tokens = element_count(Shape(input.shape().begin(), input.shape().end() - 1));
  const Tensor& router = c.input(1);
  if (router.rank() != 2 || router.dim(0) != tokens || router.dim(1) < o.k) {
    c.fail("router_probs must be [{},experts] with at least {} experts, received {}", tokens, o.k, router.type_string());
  }
  const std::int64_t experts = router.dim(1);
  const Experts x = experts_of(c, o, experts, hidden);
  const std::vector<std::vector<Route>> routes = routes_of(c, o, input.size() == 0 ? 0 : tokens, experts);
  const Tensor in = converted(input, DataType::float32);
  Tensor y(DataType::float32, input.shape());
  auto* to = static_cast<float*>(y.mutable_data());
  std::fill_n(to, y.size(), 0.0F);
  for (std::int64_t e = 0; e < experts; ++e) {
    const std::vector<Route>& mine = routes[static_cast<std::size_t>(e)];
    if (mine.empty()) continue;
    std::vector<float> rows;
    for (const Route& r : mine) {
      const float* from = static_cast<const float*>(in.data()) + r.token * hidden;
      rows.insert(rows.end(), from, from + hidden);
    }
    const auto count = static_cast<std::int64_t>(mine.size());
    const std::vector<float> first = multiply(c, x.fc1, e, rows, count);
    const std::vector<float> third = x.has_fc3 ? multiply(c, x.fc3, e, rows, count) : std::vector<float>();
    const std::vector<float> answer = multiply(c, x.fc2, e, gated(o, x, first, third), count);
    for (std::int64_t i = 0; i < count; ++i) {
      const Route& r = mine[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < hidden; ++j)
        to[r.token * hidden + j] += r.weight * answer[static_cast<std::size_t>(i * hidden + j)];
    }
  }
  convert_into(c.output(0, input.dtype(), input.shape()), y);
}

}  // namespace

void register_mixture_of_experts(OpTable& t) {
  constexpr TypeSet kFloat = set_of(DataType::float32, DataType::float16, DataType::bfloat16);
  constexpr TypeSet kWeight = set_of(DataType::uint8, DataType::float8e4m3fn);
  constexpr TypeSet kScale = kFloat | set_of(DataType::float8e8m0, DataType::float8e4m3fn);
  constexpr Arity kOptional = Arity::optional;
  OpDef moe("com.microsoft", "MoE", 1);
  moe.in("input router_probs", "T", kFloat);
  moe.in("fc1_experts_weights", "T", kFloat).in("fc1_experts_bias", "T", kFloat, kOptional);
  moe.in("fc2_experts_weights", "T", kFloat).in("fc2_experts_bias", "T", kFloat, kOptional);
  moe.in("fc3_experts_weights fc3_experts_bias", "T", kFloat, kOptional);
  moe.out("output", "T", kFloat).attrs<ExpertsAttrs>();
  t.add(std::move(moe).infer_with(infer_moe).run_with(run_moe));

  OpDef q("com.microsoft", "QMoE", 1);
  q.in("input router_probs", "T", kFloat);
  for (const std::string fc : {"fc1", "fc2", "fc3"}) {
    const Arity arity = fc == "fc3" ? kOptional : Arity::required;
    q.in(fc + "_experts_weights", "T1", kWeight, arity).in(fc + "_scales", "T2", kScale, kOptional);
    q.in(fc + "_experts_bias", "T", kFloat, kOptional);
  }
  q.in("fc1_zero_points fc2_zero_points fc3_zero_points", "T1", kWeight, kOptional);
  q.in("router_weights", "T", kFloat, kOptional);
  q.in("fc1_global_scale fc2_global_scale fc1_act_scale fc2_act_scale", "T4", bit(DataType::float32), kOptional);
  q.in("fc1_act_block_scale fc2_act_block_scale", "T2", kScale, kOptional);
  q.out("output", "T", kFloat).attrs<ExpertsAttrs>();
  t.add(std::move(q).infer_with(infer_moe).run_with(run_moe));
}

}  // namespace sdx::ops
