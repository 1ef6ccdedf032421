#include <gtest/gtest.h>

#include <cmath>

#include "support/training_models.h"
#include "train/step/rule.h"

namespace sdx::train {
namespace {

// Plain formulas in double, one element: the gradient is `g` in each step.
struct Plain {
  OptimizerOptions o;
  double w, m = 0, v = 0;

  void step(double g, double lr, int t) {
    const double b1 = double{o.beta1}, b2 = double{o.beta2}, e = double{o.epsilon}, d = double{o.weight_decay};
    const double c1 = o.correct_bias ? 1 - std::pow(b1, t) : 1, c2 = o.correct_bias ? 1 - std::pow(b2, t) : 1;
    const double mom = double{o.momentum};
    switch (o.kind) {
      case OptimizerKind::adamw:
        if (o.adam_mode == 0) w -= lr * d * w;
        m = b1 * m + (1 - b1) * g;
        v = b2 * v + (1 - b2) * g * g;
        if (o.adam_mode == 0) w -= lr * m / c1 / (std::sqrt(v / c2) + e);
        if (o.adam_mode == 1) w -= lr * std::sqrt(c2) / c1 * m / (std::sqrt(v) + e);
        if (o.adam_mode == 1) w -= lr * d * w;
        break;
      case OptimizerKind::adam:
        g += d * w;
        m = b1 * m + (1 - b1) * g;
        v = b2 * v + (1 - b2) * g * g;
        w -= lr * m / c1 / (std::sqrt(v / c2) + e);
        break;
      case OptimizerKind::sgd:
        g += d * w;
        if (mom != 0) {
          m = t == 1 ? g : mom * m + (1 - double{o.dampening}) * g;
          g = o.nesterov ? g + mom * m : m;
        }
        w -= lr * g;
        break;
      case OptimizerKind::rmsprop:
        g += d * w;
        v = double{o.alpha} * v + (1 - double{o.alpha}) * g * g;
        m = mom * m + g / (std::sqrt(v) + e);
        w -= lr * (mom != 0 ? m : g / (std::sqrt(v) + e));
        break;
      case OptimizerKind::adagrad:
        g += d * w;
        v += g * g;
        w -= lr * g / (std::sqrt(v) + e);
        break;
      case OptimizerKind::lion: {
        w -= lr * d * w;
        const double c = b1 * m + (1 - b1) * g;
        w -= lr * ((c > 0) - (c < 0));
        m = b2 * m + (1 - b2) * g;
        break;
      }
    }
  }
};

void expect_like_formula(const OptimizerOptions& options) {
  CheckpointState state = test::state();
  Module module(test::training_model(), state);
  Optimizer optimizer(options, module);
  EXPECT_FLOAT_EQ(optimizer.learning_rate(), 0.001F);
  optimizer.set_learning_rate(0.05F);
  std::vector<Plain> plain;
  for (const Parameter& p : state.parameters) {
    for (const float w : p.value.values<float>()) plain.push_back({options, double{w}, 0, double{options.initial_accumulator}});
  }
  for (int t = 1; t <= 5; ++t) {
    module.lazy_reset_grad();
    module.train_step(test::batch(4, static_cast<unsigned>(t)));
    std::vector<float> gradients;
    double squares = 0;
    for (const Parameter& p : state.parameters) {
      const Tensor gradient = module.gradient(p.name);
      for (const float g : gradient.values<float>()) {
        gradients.push_back(g);
        squares += double{g} * double{g};
      }
    }
    double scale = 1;
    if (options.clip_norm > 0) scale = std::min(1.0, double{options.clip_norm} / (std::sqrt(squares) + 1e-6));
    optimizer.step();
    EXPECT_EQ(optimizer.steps(), t);
    std::size_t at = 0;
    for (const Parameter& p : state.parameters) {
      for (const float w : p.value.values<float>()) {
        plain[at].step(scale * double{gradients[at]}, 0.05, t);
        ASSERT_NEAR(w, plain[at].w, 3e-6 * (1 + std::abs(plain[at].w))) << p.name << " in step " << t;
        plain[at].w = double{w};  // each step by itself: lion's signs would part ways where the sum is about 0
        ++at;
      }
    }
  }
}

OptimizerOptions of(OptimizerKind kind) {
  OptimizerOptions o;
  o.kind = kind;
  o.epsilon = 1e-4F;
  o.weight_decay = 0.1F;
  return o;
}

TEST(Optimizer, AdamWInBothModes) {
  for (const std::int64_t mode : {0, 1}) {
    for (const bool corrects : {true, false}) {
      OptimizerOptions o = of(OptimizerKind::adamw);
      o.adam_mode = mode;
      o.correct_bias = corrects;
      expect_like_formula(o);
    }
  }
}

TEST(Optimizer, Adam) { expect_like_formula(of(OptimizerKind::adam)); }
TEST(Optimizer, Adagrad) {
  OptimizerOptions o = of(OptimizerKind::adagrad);
  o.initial_accumulator = 0.3F;
  expect_like_formula(o);
}
TEST(Optimizer, Lion) { expect_like_formula(of(OptimizerKind::lion)); }

TEST(Optimizer, Sgd) {
  OptimizerOptions o = of(OptimizerKind::sgd);
  expect_like_formula(o);
  o.momentum = 0.9F;
  expect_like_formula(o);
  o.dampening = 0.3F;
  expect_like_formula(o);
  o.dampening = 0;
  o.nesterov = true;
  expect_like_formula(o);
}

TEST(Optimizer, Rmsprop) {
  OptimizerOptions o = of(OptimizerKind::rmsprop);
  expect_like_formula(o);
  o.momentum = 0.5F;
  expect_like_formula(o);
}

TEST(Optimizer, ClipsTheNormOfAllGradients) {
  OptimizerOptions o = of(OptimizerKind::sgd);
  for (const float norm : {0.01F, 100.0F}) {
    o.clip_norm = norm;
    expect_like_formula(o);
  }
}

TEST(Optimizer, KeepsMomentsInTheState) {
  CheckpointState state = test::state();
  Module module(test::training_model(), state);
  Optimizer first(OptimizerOptions{}, module);
  EXPECT_THROW(first.step(), Error);
  module.train_step(test::batch(4, 1));
  first.step();
  const OptimizerState& group = state.optimizers.at("group0");
  EXPECT_EQ(group.step, 1);
  ASSERT_EQ(group.moments.at("w1").size(), 2U);
  EXPECT_NE(group.moments.at("w1").at("momentum1").values<float>()[0], 0);
  const float before = group.moments.at("w1").at("momentum0").values<float>()[0];
  const Optimizer second(OptimizerOptions{}, module);
  EXPECT_EQ(second.steps(), 1);
  EXPECT_EQ(group.moments.at("w1").at("momentum0").values<float>()[0], before);
  state.optimizers["group0"].moments["b2"]["momentum0"] = Tensor::of<float>({1}, {0});
  EXPECT_THROW(Optimizer(OptimizerOptions{}, module), Error);
}

TEST(Optimizer, ReadsOptimizerModels) {
  const auto adamw = test::written(
      "adamw.onnx",
      "opset com.microsoft 1\ninput learning_rate: float32[1]\ninput step: int64[1]\ninput params: sequence(float32)\n"
      "input gradients: sequence(float32)\ninput first_order_moments: sequence(float32)\ninput second_order_moments: "
      "sequence(float32)\n"
      "clipped = com.microsoft.InplaceClipGradNorm(gradients) {max_norm=2.0}\n"
      "flag = com.microsoft.AdamWOptimizer(learning_rate, step, params, clipped, first_order_moments, second_order_moments) "
      "{alpha=0.8, beta=0.99, epsilon=0.001, weight_decay=0.1, adam_mode=1, correct_bias=0}\noutput flag: bool[1]\n");
  const OptimizerOptions o = read_optimizer_model(adamw);
  EXPECT_EQ(o.kind, OptimizerKind::adamw);
  EXPECT_FLOAT_EQ(o.beta1, 0.8F);
  EXPECT_FLOAT_EQ(o.beta2, 0.99F);
  EXPECT_FLOAT_EQ(o.epsilon, 0.001F);
  EXPECT_FLOAT_EQ(o.weight_decay, 0.1F);
  EXPECT_FLOAT_EQ(o.clip_norm, 2);
  EXPECT_FALSE(o.correct_bias);
  EXPECT_EQ(o.adam_mode, 1);
  const auto nothing = test::written("nothing.onnx", "input x: float32[1]\noutput x: float32[1]\n");
  EXPECT_THROW(read_optimizer_model(nothing), Error);
}

TEST(LinearLRScheduler, RisesAndFalls) {
  CheckpointState state = test::state();
  Module module(test::training_model(), state);
  Optimizer optimizer(OptimizerOptions{}, module);
  LinearLRScheduler scheduler(optimizer, 2, 6, 0.1F);
  const float want[] = {0, 0.05F, 0.1F, 0.075F, 0.05F, 0.025F, 0, 0};
  for (const float rate : want) {
    EXPECT_NEAR(optimizer.learning_rate(), rate, 1e-8F);
    scheduler.step();
  }
  EXPECT_FLOAT_EQ(optimizer.initial_learning_rate(), 0.1F);
  EXPECT_THROW(LinearLRScheduler(optimizer, 6, 6), Error);
}

}  // namespace
}  // namespace sdx::train
