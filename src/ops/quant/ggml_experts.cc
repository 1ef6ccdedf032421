// sdx 1: GgmlExperts: mixtures of experts with weights in ggml's blocks. Source: Shazeer et al., arXiv:1701.06538.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/thread_pool.h"
#include "ops/attention/attention_core.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/quant/ggml.h"

namespace sdx::ops {
namespace {

constexpr auto at(GgmlExpertsIn i) { return static_cast<std::size_t>(i); }

void infer_ggml_experts(InferContext& c) {
  const GgmlExperts e = ggml_experts(parse<GgmlExpertsAttrs>(c));
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, DataType::float32);
  if (x->empty()) c.fail("X must have at least one axis");
  if (x->back().is_const() && x->back().value() != e.gate.k)
    c.fail("X's last extent is {}; expected K = {}", x->back().value(), e.gate.k);
  c.output(0, DataType::float32, *x);
}

// out[rows, n] = in[rows, k] * weights' + bias
std::vector<float> multiply(OpContext& c, const GgmlRows& w, const char* weights, std::int64_t n, const float* bias,
                            const std::vector<float>& in) {
  const std::int64_t rows = static_cast<std::int64_t>(in.size()) / w.k;
  std::vector<float> out(static_cast<std::size_t>(rows * n));
  parallel_for(n, 8, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> row(static_cast<std::size_t>(w.k));
    for (std::int64_t j = begin; j < end; ++j) {
      c.stop().check();
      ggml_dequantize(*w.format, weights + j * w.bytes, w.k / w.format->block, row.data());
      for (std::int64_t i = 0; i < rows; ++i) {
        out[static_cast<std::size_t>(i * n + j)] = (bias != nullptr ? bias[j] : 0.0F) + dot(in.data() + i * w.k, row.data(), w.k);
      }
    }
  });
  return out;
}

const float* bias_of(OpContext& c, GgmlExpertsIn input, std::int64_t experts, std::int64_t rows) {
  const Tensor* t = c.optional_input(at(input));
  if (t == nullptr) return nullptr;
  if (t->shape() != Shape{experts, rows}) c.fail("a bias must be [{},{}], received {}", experts, rows, t->type_string());
  return static_cast<const float*>(t->data());
}

void run_ggml_experts(OpContext& c) {
  const GgmlExperts e = ggml_experts(parse<GgmlExpertsAttrs>(c));
  const Tensor &x = c.input(0), &scores = c.input(1);
  const std::int64_t k = e.gate.k, f = e.down.k;
  if (x.rank() == 0 || x.shape().back() != k) c.fail("X's last extent must be K = {}, received {}", k, x.type_string());
  const std::int64_t tokens = x.size() / k;
  if (scores.size() != tokens * e.experts || (scores.rank() > 0 && scores.shape().back() != e.experts))
    c.fail("scores must be {} rows of {} experts, received {}", tokens, e.experts, scores.type_string());
  std::vector<const Tensor*> given;
  for (std::size_t i = at(GgmlExpertsIn::weights); i < c.node().inputs.size(); ++i) given.push_back(&c.input(i));
  const auto weights = expert_weights(e, given);
  if (!weights) c.fail("the weights are not three matrices for each of {} experts", e.experts);
  const float* biases[3] = {bias_of(c, GgmlExpertsIn::gate_bias, e.experts, f), bias_of(c, GgmlExpertsIn::up_bias, e.experts, f),
                            bias_of(c, GgmlExpertsIn::down_bias, e.experts, k)};
  const Tensor* choice = c.optional_input(at(GgmlExpertsIn::choice_bias));
  if (choice != nullptr && choice->shape() != Shape{e.experts})
    c.fail("choice_bias must be [{}], received {}", e.experts, choice->type_string());
  const auto* bias_of_choice = choice != nullptr ? static_cast<const float*>(choice->data()) : nullptr;
  const ExpertRows rows = choose_experts(e, static_cast<const float*>(scores.data()), bias_of_choice, tokens);
  auto* y = static_cast<float*>(c.output(0, DataType::float32, x.shape()).mutable_data());
  std::fill_n(y, x.size(), 0.0F);
  for (std::int64_t expert = 0; expert < e.experts; ++expert) {
    const auto number = static_cast<std::size_t>(expert);
    const auto begin = static_cast<std::size_t>(rows.begin[number]), end = static_cast<std::size_t>(rows.begin[number + 1]);
    if (begin == end) continue;
    const auto bias = [&](int which, std::int64_t n) { return biases[which] == nullptr ? nullptr : biases[which] + expert * n; };
    std::vector<float> in;
    for (std::size_t i = begin; i < end; ++i) {
      const float* from = static_cast<const float*>(x.data()) + rows.token[i] * k;
      in.insert(in.end(), from, from + k);
    }
    std::vector<float> gate = multiply(c, e.gate, weights->gate[number], f, bias(0, f), in);
    const std::vector<float> up = multiply(c, e.up, weights->up[number], f, bias(1, f), in);
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const float g = std::min(gate[i], e.limit), u = std::max(std::min(up[i], e.limit), -e.limit);
      gate[i] = g / (1.0F + std::exp(-e.alpha * g)) * (u + e.beta);
    }
    const std::vector<float> out = multiply(c, e.down, weights->down[number], k, bias(2, k), gate);
    for (std::size_t i = begin; i < end; ++i) {
      for (std::int64_t j = 0; j < k; ++j) {
        y[rows.token[i] * k + j] += rows.weight[i] * out[(i - begin) * static_cast<std::size_t>(k) + static_cast<std::size_t>(j)];
      }
    }
  }
}

}  // namespace

GgmlExperts ggml_experts(const GgmlExpertsAttrs& a) {
  if (a.experts < 1 || a.experts > 1 << 16 || a.top_k < 1 || a.top_k > a.experts) {
    fail(ErrorCode::invalid_model, "{} of {} experts cannot be chosen", a.top_k, a.experts);
  }
  GgmlExperts e{a.experts,
                a.top_k,
                ggml_rows({a.gate_type, a.k}),
                ggml_rows({a.up_type, a.k}),
                ggml_rows({a.down_type, a.f}),
                a.normalize,
                a.scale,
                a.alpha,
                a.beta,
                a.limit,
                a.sigmoid,
                a.groups,
                a.groups_used};
  if (e.groups < 1 || e.experts % e.groups != 0 || e.groups_used < 1 || e.groups_used > e.groups ||
      e.groups_used * (e.experts / e.groups) < e.top_k) {
    fail(ErrorCode::invalid_model, "{} of {} experts cannot be chosen from {} of {} groups", e.top_k, e.experts, e.groups_used,
         e.groups);
  }
  if (!(e.limit > 0.0F)) fail(ErrorCode::invalid_model, "swiglu_limit must be greater than 0, received {}", e.limit);
  return e;
}

namespace {

// The choice of experts for one token after the other.
class Router {
 public:
  Router(const GgmlExperts& e, const float* bias)
      : e_(e), bias_(bias), order_(static_cast<std::size_t>(e.experts)), p_(order_.size()), wanted_(order_.size()) {}

  // Writes the chosen experts, and the weights of their answers.
  void choose(const float* scores, std::size_t* chosen, float* weights) {
    const auto top = static_cast<std::size_t>(e_.top_k);
    std::transform(scores, scores + e_.experts, p_.begin(),
                   [](float s) { return std::isnan(s) ? std::numeric_limits<float>::lowest() : s; });
    if (e_.sigmoid) {
      for (float& v : p_) v = 1.0F / (1.0F + std::exp(-v));
    }
    wanted_ = p_;  // shares are in the order of scores
    float all = 1.0F;
    if (!e_.sigmoid) {
      const float most = *std::max_element(p_.begin(), p_.end());
      all = 0.0F;
      for (float& v : p_) all += v = std::exp(v - most);
    }
    for (std::size_t i = 0; bias_ != nullptr && i < wanted_.size(); ++i) wanted_[i] = p_[i] / all + bias_[i];
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    if (e_.groups_used < e_.groups) keep_groups();
    const auto better = [&](std::size_t a, std::size_t b) { return wanted_[a] != wanted_[b] ? wanted_[a] > wanted_[b] : a < b; };
    std::partial_sort(order_.begin(), order_.begin() + e_.top_k, order_.end(), better);
    float some = 0.0F;
    for (std::size_t i = 0; i < top; ++i) some += p_[order_[i]];
    const float whole = e_.normalize ? std::max(some, std::numeric_limits<float>::min()) : all;
    for (std::size_t i = 0; i < top; ++i) {
      chosen[i] = order_[i];
      weights[i] = p_[order_[i]] / whole * e_.scale;
    }
  }

 private:
  // Makes the experts of all groups but the best ones worse than any other.
  void keep_groups() {
    const auto groups = static_cast<std::size_t>(e_.groups), size = wanted_.size() / groups;
    std::vector<float> value(groups);
    std::vector<std::size_t> best(groups);
    std::iota(best.begin(), best.end(), std::size_t{0});
    for (std::size_t g = 0; g < groups; ++g) {
      std::vector<float> of(wanted_.begin() + static_cast<std::ptrdiff_t>(g * size),
                            wanted_.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
      const std::size_t counted = e_.sigmoid ? std::min<std::size_t>(2, size) : 1;
      std::partial_sort(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(counted), of.end(), std::greater<>());
      value[g] = std::accumulate(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(counted), 0.0F);
    }
    std::sort(best.begin(), best.end(),
              [&](std::size_t a, std::size_t b) { return value[a] != value[b] ? value[a] > value[b] : a < b; });
    for (std::size_t g = static_cast<std::size_t>(e_.groups_used); g < groups; ++g) {
      std::fill_n(wanted_.begin() + static_cast<std::ptrdiff_t>(best[g] * size), size, -std::numeric_limits<float>::infinity());
    }
  }

  const GgmlExperts& e_;
  const float* bias_;
  std::vector<std::size_t> order_;
  std::vector<float> p_, wanted_;
};

}  // namespace

ExpertRows choose_experts(const GgmlExperts& e, const float* scores, const float* choice_bias, std::int64_t tokens) {
  const auto experts = static_cast<std::size_t>(e.experts), top = static_cast<std::size_t>(e.top_k);
  std::vector<std::size_t> chosen(static_cast<std::size_t>(tokens) * top);
  std::vector<float> weights(chosen.size());
  ExpertRows rows;
  rows.begin.assign(experts + 1, 0);
  Router router(e, choice_bias);
  for (std::size_t t = 0; t < static_cast<std::size_t>(tokens); ++t)
    router.choose(scores + t * experts, chosen.data() + t * top, weights.data() + t * top);
  for (const std::size_t expert : chosen) ++rows.begin[expert + 1];
  std::partial_sum(rows.begin.begin(), rows.begin.end(), rows.begin.begin());
  rows.token.resize(chosen.size());
  rows.weight.resize(chosen.size());
  std::vector<std::int64_t> next(rows.begin.begin(), rows.begin.end() - 1);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto to = static_cast<std::size_t>(next[chosen[i]]++);
    rows.token[to] = static_cast<std::int64_t>(i / top);
    rows.weight[to] = weights[i];
  }
  return rows;
}

std::optional<ExpertWeights> expert_weights(const GgmlExperts& e, const std::vector<const Tensor*>& weights) {
  const auto parts = static_cast<std::int64_t>(weights.size() / 3);
  if (weights.size() % 3 != 0 || (parts != 1 && parts != e.experts)) return std::nullopt;
  ExpertWeights out;
  const auto place = [&](std::int64_t which, const GgmlRows& rows, std::int64_t n, std::vector<const char*>& to) {
    for (std::int64_t expert = 0; expert < e.experts; ++expert) {
      const Tensor* t = weights[static_cast<std::size_t>(which * parts + (parts == 1 ? 0 : expert))];
      if (t == nullptr || t->dtype() != DataType::uint8 || t->rank() != 2 || t->dim(0) != e.experts / parts * n ||
          t->dim(1) != rows.bytes) {
        return false;
      }
      to.push_back(static_cast<const char*>(t->data()) + (parts == 1 ? expert * n * rows.bytes : 0));
    }
    return true;
  };
  const std::int64_t k = e.gate.k, f = e.down.k;
  if (!place(0, e.gate, f, out.gate) || !place(1, e.up, f, out.up) || !place(2, e.down, k, out.down)) return std::nullopt;
  return out;
}

void register_ggml_experts(OpTable& t) {
  constexpr TypeSet kFloat = bit(DataType::float32);
  t.add(OpDef("sdx", "GgmlExperts", 1)
            .in("X scores", "T", kFloat)
            .in("gate_bias up_bias down_bias choice_bias", "T", kFloat, Arity::optional)
            .in("weights", "B", bit(DataType::uint8), Arity::variadic)
            .out("Y", "T", kFloat)
            .attrs<GgmlExpertsAttrs>()
            .infer_with(infer_ggml_experts)
            .run_with(run_ggml_experts));
}

}  // namespace sdx::ops
