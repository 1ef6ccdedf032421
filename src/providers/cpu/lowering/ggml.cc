// sdx GgmlMatMul and GgmlExperts: float32 activations, and constant weights in ggml's blocks, which are not copied.

#include "kernels/cpu/ggml/ggml.h"

#include <initializer_list>
#include <string>
#include <vector>

#include "base/system/cpu_features.h"
#include "kernels/cpu/ggml/ggml_experts.h"
#include "ops/quant/ggml.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

std::string named(const GgmlFormat& format, GgmlAccuracy accuracy) {
  return std::string(format.name) + (accuracy == GgmlAccuracy::int8 ? "-int8" : "");
}

// Why activations are not rounded to 8 bits for these weights; empty: they are.
std::string why_not_int8(std::initializer_list<const GgmlFormat*> formats, std::int64_t accuracy_level) {
  if (!ops::ggml_may_round(accuracy_level))
    return "accuracy_level " + std::to_string(accuracy_level) + " asks for more than 8 bits of activations";
  for (const GgmlFormat* format : formats) {
    if (!ggml_multiplies_bytes(*format)) {
      return "weights of type " + std::string(format->name) + " are multiplied as floats with the instruction set " +
             std::string(name(cpu_isa()));
    }
  }
  return {};
}

class GgmlKernel : public Kernel {
 public:
  GgmlKernel(const ops::GgmlRows& rows, std::int64_t n, std::int64_t groups, GgmlAccuracy accuracy)
      : rows_(rows), n_(n), groups_(groups), accuracy_(accuracy), name_("matmul-" + named(*rows.format, accuracy)) {}
  std::string_view name() const override { return name_; }
  bool accepts_unaligned(std::size_t i) const override { return i == 1; }

  void run(const KernelContext& c) const override {
    const Tensor& a = c.input(0);
    const std::int64_t width = groups_ * rows_.k;
    if (a.rank() == 0 || a.shape().back() != width) {
      fail(ErrorCode::runtime_failure, "A's last extent must be {}, received {}", width, a.type_string());
    }
    GgmlArgs args;
    args.format = rows_.format;
    args.m = a.size() / width, args.n = n_ / groups_, args.k = rows_.k;
    args.a = c.in<float>(0), args.lda = width;
    args.weights = c.input(1).data();
    args.bias = c.has_input(2) ? c.in<float>(2) : nullptr;
    args.accuracy = accuracy_;
    args.c = c.out<float>(0), args.ldc = n_;
    if (groups_ == 1) return ggml_gemm(args);
    std::vector<GgmlArgs> all(static_cast<std::size_t>(groups_), args);
    for (std::size_t g = 1; g < all.size(); ++g) {
      const auto i = static_cast<std::int64_t>(g);
      all[g].a += i * rows_.k;
      all[g].weights = static_cast<const char*>(args.weights) + i * args.n * rows_.bytes;
      if (args.bias != nullptr) all[g].bias += i * args.n;
      all[g].c += i * args.n;
    }
    ggml_gemms(all);
  }

 private:
  ops::GgmlRows rows_;
  std::int64_t n_, groups_;
  GgmlAccuracy accuracy_;
  std::string name_;
};

template <GgmlAccuracy kAccuracy>
std::unique_ptr<Kernel> make_ggml(LowerContext& c) {
  const auto attr = ops::parse<ops::GgmlProductAttrs>(c);
  const ops::GgmlRows rows = ops::ggml_rows(attr.rows);
  const Tensor* weights = c.constant(1);
  if (weights == nullptr) return c.refuse("the weights are not constant");
  if (weights->dtype() != DataType::uint8 || weights->rank() != 2 || weights->dim(1) != rows.bytes) {
    return c.refuse("the weights are not rows of K elements");
  }
  if (c.has_input(2)) {
    const SymShape* bias = c.shape(2);
    if (bias == nullptr || !all_const(*bias) || element_count(to_shape(*bias)) != weights->dim(0)) {
      return c.refuse("the bias does not have one element for each row of weights");
    }
  }
  if (kAccuracy == GgmlAccuracy::int8) {
    std::string why = why_not_int8({rows.format}, attr.accuracy_level);
    if (!why.empty()) return c.refuse(std::move(why));
  }
  return std::make_unique<GgmlKernel>(rows, weights->dim(0), ops::ggml_groups(attr, weights->dim(0)), kAccuracy);
}

class ExpertsKernel : public Kernel {
 public:
  ExpertsKernel(const ops::GgmlExperts& experts, GgmlAccuracy accuracy)
      : e_(experts), accuracy_(accuracy), name_("experts-" + named(*experts.gate.format, accuracy)) {}
  std::string_view name() const override { return name_; }
  bool accepts_unaligned(std::size_t i) const override { return i >= kWeights; }

  void run(const KernelContext& c) const override {
    const Tensor &x = c.input(0), &scores = c.input(1);
    const std::int64_t k = e_.gate.k, tokens = x.size() / k;
    if (x.rank() == 0 || x.shape().back() != k || scores.size() != tokens * e_.experts) {
      fail(ErrorCode::runtime_failure, "X must be rows of {}, scores as many of {}; received {} and {}", k, e_.experts,
           x.type_string(), scores.type_string());
    }
    std::vector<const Tensor*> weights;
    for (std::size_t i = kWeights; c.has_input(i); ++i) weights.push_back(&c.input(i));
    const auto places = ops::expert_weights(e_, weights);
    if (!places) fail(ErrorCode::internal, "the weights have changed");
    constexpr auto kChoice = static_cast<std::size_t>(ops::GgmlExpertsIn::choice_bias);
    const float* choice = c.has_input(kChoice) ? c.in<float>(kChoice) : nullptr;
    const ops::ExpertRows rows = ops::choose_experts(e_, c.in<float>(1), choice, tokens);
    const auto bias = [&](std::size_t i) { return c.has_input(i) ? c.in<float>(i) : nullptr; };
    ExpertsArgs args;
    args.experts = e_.experts, args.tokens = tokens, args.k = k, args.f = e_.down.k;
    args.gate = {e_.gate.format, places->gate.data(), bias(2)};
    args.up = {e_.up.format, places->up.data(), bias(3)};
    args.down = {e_.down.format, places->down.data(), bias(4)};
    args.begin = rows.begin.data(), args.token = rows.token.data(), args.weight = rows.weight.data();
    args.accuracy = accuracy_;
    args.alpha = e_.alpha, args.beta = e_.beta, args.limit = e_.limit;
    args.x = c.in<float>(0), args.y = c.out<float>(0);
    ggml_experts(args);
  }

  static constexpr auto kWeights = static_cast<std::size_t>(ops::GgmlExpertsIn::weights);

 private:
  ops::GgmlExperts e_;
  GgmlAccuracy accuracy_;
  std::string name_;
};

template <GgmlAccuracy kAccuracy>
std::unique_ptr<Kernel> make_experts(LowerContext& c) {
  const auto attr = ops::parse<ops::GgmlExpertsAttrs>(c);
  const ops::GgmlExperts e = ops::ggml_experts(attr);
  std::vector<const Tensor*> weights;
  for (std::size_t i = ExpertsKernel::kWeights; i < c.node().inputs.size(); ++i) {
    weights.push_back(c.constant(i));
    if (weights.back() == nullptr) return c.refuse("the weights are not constant");
  }
  if (!ops::expert_weights(e, weights)) return c.refuse("the weights are not three matrices for each expert");
  for (const auto& [input, rows] : {std::pair<std::size_t, std::int64_t>(2, e.down.k), {3, e.down.k}, {4, e.gate.k}}) {
    if (!c.has_input(input)) continue;
    const SymShape* bias = c.shape(input);
    if (bias == nullptr || !all_const(*bias) || to_shape(*bias) != Shape{e.experts, rows})
      return c.refuse("a bias does not have a row for each expert");
  }
  if (c.has_input(5)) {
    const SymShape* bias = c.shape(5);
    if (bias == nullptr || !all_const(*bias) || to_shape(*bias) != Shape{e.experts})
      return c.refuse("the choice's bias does not have an element for each expert");
  }
  if (kAccuracy == GgmlAccuracy::int8) {
    std::string why = why_not_int8({e.gate.format, e.up.format, e.down.format}, attr.accuracy_level);
    if (!why.empty()) return c.refuse(std::move(why));
  }
  return std::make_unique<ExpertsKernel>(e, kAccuracy);
}

}  // namespace

void register_kernels_ggml(KernelTable& t) {
  t.add("sdx", "GgmlMatMul", "matmul-ggml-int8", 9, make_ggml<GgmlAccuracy::int8>);
  t.add("sdx", "GgmlMatMul", "matmul-ggml", 10, make_ggml<GgmlAccuracy::float32>);
  t.add("sdx", "GgmlExperts", "experts-ggml-int8", 9, make_experts<GgmlAccuracy::int8>);
  t.add("sdx", "GgmlExperts", "experts-ggml", 10, make_experts<GgmlAccuracy::float32>);
}

}  // namespace sdx::cpu
