// Graphs and numbers that training meets rarely.

#include <gtest/gtest.h>

#include <cmath>

#include "support/errors.h"
#include "support/training_models.h"

namespace sdx::train {
namespace {

constexpr const char* kOpsets = "opset com.microsoft 1\nopset ai.onnx.preview.training 1\n";

OptimizerOptions plain_sgd() {
  OptimizerOptions o;
  o.kind = OptimizerKind::sgd;
  o.weight_decay = 0;
  return o;
}

std::vector<float> floats(const Tensor& t) {
  const auto v = t.values<float>();
  return {v.begin(), v.end()};
}

// The gradient of either parameter is the other one, which must be read before it changes.
TEST(TrainerEdges, AParameterThatIsAnothersGradient) {
  const std::string inputs = std::string(kOpsets) + "input p: float32[n]\ninput q: float32[n]\n";
  for (const std::int64_t n : {std::int64_t{3}, std::int64_t{20'000}}) {  // updated together, and each alone
    for (const std::int64_t accumulate : {1, 2}) {
      std::string sized = inputs;
      for (std::size_t at = 0; (at = sized.find("[n]")) != std::string::npos;) {
        sized.replace(at, 3, "[" + std::to_string(n) + "]");
      }
      const auto model =
          test::written("product_training_model.onnx",
                        test::training_text({"p", "q"}, sized, "m = Mul(p, q)\nloss = ReduceSum(m) {keepdims=0}\n"));
      CheckpointState state;
      const auto filled = [&](float value) {
        Tensor t(DataType::float32, {n});
        for (float& v : t.mutable_values<float>()) v = value;
        return t;
      };
      state.parameters.push_back({"p", filled(2), true});
      state.parameters.push_back({"q", filled(-3), true});
      TrainerOptions options;
      options.optimizer = plain_sgd();
      options.learning_rate = 0.5F;
      options.accumulate = accumulate;
      Trainer trainer(model, state, options);
      for (std::int64_t i = 0; i < accumulate; ++i) trainer.train_step({});
      const auto times = static_cast<float>(accumulate);
      EXPECT_FLOAT_EQ(state.at("p").value.values<float>()[1], 2 - 0.5F * times * -3) << n << ", " << accumulate;
      EXPECT_FLOAT_EQ(state.at("q").value.values<float>()[1], -3 - 0.5F * times * 2) << n << ", " << accumulate;
      CheckpointState again;
      again.parameters.push_back({"p", filled(2), true});
      again.parameters.push_back({"q", filled(-3), true});
      Module module(model, again);
      Optimizer optimizer(plain_sgd(), module);
      optimizer.set_learning_rate(0.5F);
      for (std::int64_t i = 0; i < accumulate; ++i) module.train_step({});
      optimizer.step();
      for (const char* name : {"p", "q"}) EXPECT_EQ(floats(again.at(name).value), floats(state.at(name).value)) << name;
    }
  }
}

// Finite at 0, with a gradient that is not.
std::filesystem::path root_model() {
  return test::written("root_training_model.onnx",
                       test::training_text({"p"}, std::string(kOpsets) + "input x: float32[2]\ninput p: float32[2]\n",
                                           "m = Mul(x, p)\nr = Sqrt(m)\nloss = ReduceSum(r) {keepdims=0}\n"));
}

CheckpointState root_state() {
  CheckpointState state;
  state.parameters.push_back({"p", Tensor::of<float>({2}, {1, 4}), true});
  return state;
}

TEST(TrainerEdges, GoesOnAfterAGradientThatIsNotFinite) {
  const std::vector<Tensor> good{Tensor::of<float>({2}, {1, 1})}, bad{Tensor::of<float>({2}, {0, 1})};
  CheckpointState state = root_state(), expected = root_state();
  TrainerOptions options;
  options.optimizer = plain_sgd();
  options.optimizer->clip_norm = 100;
  options.learning_rate = 0.25F;
  options.accumulate = 2;
  Trainer trainer(root_model(), state, options), undisturbed(root_model(), expected, options);
  trainer.train_step(good);
  testing::expect_error([&] { trainer.train_step(bad); }, {"norm of the gradients"});
  EXPECT_EQ(floats(state.parameters[0].value), (std::vector<float>{1, 4}));
  for (int i = 0; i < 2; ++i) {
    trainer.train_step(good);
    undisturbed.train_step(good);
  }
  EXPECT_EQ(trainer.steps(), 1);
  EXPECT_EQ(floats(state.parameters[0].value), floats(expected.parameters[0].value));
}

// Without clipping too: small parameters, updated together, and large ones.
TEST(TrainerEdges, AGradientThatIsNotFiniteChangesNothing) {
  for (const std::int64_t n : {std::int64_t{2}, std::int64_t{20'000}}) {
    for (const std::int64_t accumulate : {1, 2}) {
      const std::string size = "[" + std::to_string(n) + "]";
      const auto model = test::written(
          "two_roots_training_model.onnx",
          test::training_text(
              {"p", "q"},
              std::string(kOpsets) + "input x: float32" + size + "\ninput p: float32" + size + "\ninput q: float32" + size + "\n",
              "s = Add(p, q)\nm = Mul(x, p)\nr = Sqrt(m)\nt = Add(r, s)\nloss = ReduceSum(t) {keepdims=0}\n"));
      const auto filled = [&](float value) {
        Tensor t(DataType::float32, {n});
        for (float& v : t.mutable_values<float>()) v = value;
        return t;
      };
      CheckpointState state;
      state.parameters.push_back({"p", filled(1), true});
      state.parameters.push_back({"q", filled(2), true});
      TrainerOptions options;
      options.optimizer = plain_sgd();
      options.learning_rate = 0.25F;
      options.accumulate = accumulate;
      Trainer trainer(model, state, options);
      Tensor bad = filled(1);
      bad.mutable_values<float>()[static_cast<std::size_t>(n) - 1] = 0;
      std::string said;
      for (std::int64_t i = 0; i < accumulate; ++i)
        said = testing::error_text([&] { trainer.train_step(std::vector<Tensor>{bad}); });
      EXPECT_NE(said.find("norm of the gradients of step 1"), std::string::npos) << said;
      for (const Parameter& p : state.parameters) EXPECT_EQ(floats(p.value), floats(filled(p.name == "p" ? 1 : 2))) << p.name;
      for (std::int64_t i = 0; i < accumulate; ++i) trainer.train_step(std::vector<Tensor>{filled(1)});
      EXPECT_EQ(floats(state.at("q").value), floats(filled(2 - 0.25F * static_cast<float>(accumulate))));
    }
  }
}

TEST(TrainerEdges, LargeGradientsThatAreFiniteAreTaken) {
  const auto model = test::written("large_training_model.onnx",
                                   test::training_text({"p"}, std::string(kOpsets) + "input x: float32[2]\ninput p: float32[2]\n",
                                                       "m = Mul(x, p)\nloss = ReduceSum(m) {keepdims=0}\n"));
  for (const float clip : {0.0F, 5.0F}) {
    CheckpointState state = root_state();
    TrainerOptions options;
    options.optimizer = plain_sgd();
    options.optimizer->clip_norm = clip;
    options.learning_rate = clip > 0 ? 1.0F : 1e-30F;
    Trainer trainer(model, state, options);
    trainer.train_step(std::vector<Tensor>{Tensor::of<float>({2}, {3e30F, 4e30F})});  // whose squares are infinite
    EXPECT_NEAR(state.parameters[0].value.values<float>()[0], 1 - 3, 1e-3) << clip;
  }
}

TEST(TrainerEdges, AnOptimizerRefusesGradientsThatAreNotFinite) {
  for (const float clip : {0.0F, 1.0F}) {
    CheckpointState state = root_state();
    Module module(root_model(), state);
    OptimizerOptions options = plain_sgd();
    options.clip_norm = clip;
    Optimizer optimizer(options, module);
    module.train_step(std::vector<Tensor>{Tensor::of<float>({2}, {0, 1})});
    testing::expect_error([&] { optimizer.step(); }, {"the gradient of 'p' is not finite"});
    EXPECT_EQ(floats(state.parameters[0].value), (std::vector<float>{1, 4}));
    EXPECT_EQ(optimizer.steps(), 0);
    module.lazy_reset_grad();
    module.train_step(std::vector<Tensor>{Tensor::of<float>({2}, {1, 1})});
    optimizer.step();
    EXPECT_EQ(optimizer.steps(), 1);
  }
}

TEST(TrainerEdges, ParametersThatAreLostAreNotSaved) {
  CheckpointState state = root_state();
  Trainer trainer(root_model(), state);
  state.parameters[0].value.mutable_values<float>()[1] = INFINITY;
  const auto path = root_model().parent_path() / "lost";
  testing::expect_error([&] { trainer.save_checkpoint(path); }, {"'p' is not finite"});
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TrainerEdges, SaysWhenTheParametersAreLost) {
  CheckpointState state = root_state();
  TrainerOptions options;
  options.optimizer = plain_sgd();
  options.refuse_non_finite = true;
  Trainer trainer(root_model(), state, options);
  state.parameters[0].value.mutable_values<float>()[0] = NAN;
  const std::string said = testing::error_text([&] { trainer.train_step(std::vector<Tensor>{Tensor::of<float>({2}, {1, 1})}); });
  EXPECT_NE(said.find("parameter 'p' is not finite"), std::string::npos) << said;
}

TEST(TrainerEdges, ParametersThatWereReplacedMeanwhile) {
  CheckpointState state = test::state();
  Module module(test::training_model(), state);
  Optimizer optimizer(plain_sgd(), module);
  module.train_step(test::batch(4, 1));
  state.parameters[0].value = Tensor::of<float>({1}, {1});
  testing::expect_error([&] { optimizer.step(); }, {"'w1'"});
  state.parameters.clear();
  testing::expect_error([&] { optimizer.step(); }, {"'w1'"});
}

TEST(TrainerEdges, SeedsOfAnySize) {
  for (const char* seed : {"1e30", "-1e30", "0.5"}) {
    const std::string forward = "h = Gemm(x, w1, b1) {transB=1}\nr = RandomUniformLike(h) {seed=" + std::string(seed) +
                                "}\na = Mul(h, r)\nscores = Gemm(a, w2, b2) {transB=1}\n"
                                "loss = SoftmaxCrossEntropyLoss(scores, labels)\n";
    const auto model =
        test::written("seeded_training_model.onnx", test::training_text({"w1", "b1", "w2", "b2"}, test::kInputs, forward));
    std::vector<float> losses;
    for (int run = 0; run < 2; ++run) {
      CheckpointState state = test::state();
      Trainer trainer(model, state);
      losses.push_back(trainer.train_step(test::batch(4, 1)));
    }
    EXPECT_EQ(losses[0], losses[1]) << seed;
  }
}

}  // namespace
}  // namespace sdx::train
