#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/errors.h"
#include "support/training_models.h"

namespace sdx::train {
namespace {

std::filesystem::path artifacts() {
  test::training_model();
  return test::eval_model().parent_path();
}

OptimizerOptions of(OptimizerKind kind, float clip = 0) {
  OptimizerOptions o;
  o.kind = kind;
  o.momentum = kind == OptimizerKind::sgd || kind == OptimizerKind::rmsprop ? 0.9F : 0;
  o.clip_norm = clip;
  return o;
}

void expect_same(const CheckpointState& a, const CheckpointState& b, float tolerance = 0) {
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (std::size_t p = 0; p < a.parameters.size(); ++p) {
    const auto x = a.parameters[p].value.values<float>(), y = b.parameters[p].value.values<float>();
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance) << a.parameters[p].name << "[" << i << "]";
  }
}

// The trainer's one program does what module and optimizer do one after the other.
void expect_like_module(const OptimizerOptions& optimizer, std::int64_t accumulate) {
  CheckpointState ours = test::state(), theirs = test::state();
  TrainerOptions options;
  options.optimizer = optimizer;
  options.learning_rate = 0.02F;
  options.accumulate = accumulate;
  Trainer trainer(artifacts(), ours, options);
  Module module(test::training_model(), theirs);
  Optimizer plain(optimizer, module);
  plain.set_learning_rate(0.02F);
  for (unsigned step = 0; step < 9; ++step) {
    const auto batch = test::batch(step % 3 == 2 ? 3 : 6, step);
    const float want = module.train_step(batch)[0].values<float>()[0];
    EXPECT_FLOAT_EQ(trainer.train_step(batch), want);
    if ((step + 1) % static_cast<unsigned>(accumulate) != 0) continue;
    plain.step();
    module.lazy_reset_grad();
    expect_same(ours, theirs, 1e-6F);
  }
  EXPECT_EQ(trainer.steps(), 9 / accumulate);
}

TEST(Trainer, DoesWhatModuleAndOptimizerDo) {
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::rmsprop,
                                   OptimizerKind::adagrad, OptimizerKind::lion}) {
    for (const float clip : {0.0F, 0.05F}) {
      for (const std::int64_t accumulate : {1, 3}) {
        SCOPED_TRACE(std::string(to_string(kind)) + ", clip " + std::to_string(clip) + ", accumulate " +
                     std::to_string(accumulate));
        expect_like_module(of(kind, clip), accumulate);
      }
    }
  }
}

TEST(Trainer, LowersTheLoss) {
  CheckpointState state = test::state();
  TrainerOptions options;
  options.learning_rate = 0.05F;
  Trainer trainer(artifacts(), state, options);
  const auto batch = test::batch(16, 1);
  const float before = trainer.eval_step(batch)[0].values<float>()[0];
  EXPECT_FLOAT_EQ(trainer.train_step(batch), before);
  ASSERT_EQ(trainer.last_outputs().size(), 1U);
  for (int i = 0; i < 50; ++i) trainer.train_step(batch);
  EXPECT_LT(trainer.eval_step(batch)[0].values<float>()[0], before / 4);
}

TEST(Trainer, FollowsTheSchedule) {
  CheckpointState state = test::state();
  TrainerOptions options;
  options.learning_rate = 0.1F;
  options.schedule = {ScheduleKind::linear, 2, 4, 0};
  Trainer trainer(artifacts(), state, options);
  for (const float want : {0.0F, 0.05F, 0.1F, 0.05F, 0.0F}) {
    EXPECT_FLOAT_EQ(trainer.learning_rate(), want);
    trainer.train_step(test::batch(4, 1));
  }
  trainer.set_learning_rate(0.3F);
  EXPECT_FLOAT_EQ(trainer.learning_rate(), 0.3F);
}

TEST(Trainer, RefusesLossesThatAreNotFinite) {
  for (const float clip : {0.0F, 1.0F}) {
    for (const std::int64_t accumulate : {1, 2}) {
      CheckpointState state = test::state();
      TrainerOptions options;
      options.optimizer = of(OptimizerKind::adamw, clip);
      options.accumulate = accumulate;
      Trainer trainer(artifacts(), state, options);
      trainer.train_step(test::batch(4, 1));
      const CheckpointState before = state.clone();
      auto bad = test::batch(4, 2);
      bad[0].mutable_values<float>()[3] = NAN;
      for (int i = 0; i < 3; ++i) {
        testing::expect_error(ErrorCode::runtime_failure, [&] { trainer.train_step(bad); }, {"the loss of step"});
      }
      expect_same(state, before);
      const auto& now = state.optimizers.at("group0");
      EXPECT_EQ(now.step, before.optimizers.at("group0").step);
      for (const auto& [name, moments] : now.moments) {
        for (const auto& [which, m] : moments) {
          EXPECT_EQ(std::memcmp(m.data(), before.optimizers.at("group0").moments.at(name).at(which).data(), m.bytes()), 0);
        }
      }
      const float after = trainer.train_step(test::batch(4, 3));
      EXPECT_TRUE(std::isfinite(after));
    }
  }
}

TEST(Trainer, ChangesNothingWhereLabelsAreOutOfRange) {
  CheckpointState state = test::state();
  Trainer trainer(artifacts(), state);
  trainer.train_step(test::batch(4, 1));
  const CheckpointState before = state.clone();
  auto bad = test::batch(4, 2);
  bad[1].mutable_values<std::int64_t>()[0] = 17;
  EXPECT_THROW(trainer.train_step(bad), Error);
  EXPECT_THROW(trainer.train_step(std::vector<Tensor>{bad[0]}), Error);
  expect_same(state, before);
  EXPECT_EQ(trainer.steps(), 1);
}

// Dropout in front: whose seed is the trainer's, not the node's.
std::filesystem::path with_dropout() {
  const std::string inputs = test::kInputs;
  const std::string forward =
      "constant ratio: float32[] 0.5\nconstant on: bool[] 1\n"
      "h = Gemm(x, w1, b1) {transB=1}\nt = Tanh(h)\na, mask = Dropout(t, ratio, on) {seed=3}\n"
      "scores = Gemm(a, w2, b2) {transB=1}\nloss = SoftmaxCrossEntropyLoss(scores, labels)\n";
  return test::written("dropout_training_model.onnx", test::training_text({"w1", "b1", "w2", "b2"}, inputs, forward));
}

std::vector<float> losses(Trainer& trainer, unsigned from, unsigned to) {
  std::vector<float> out;
  for (unsigned i = from; i < to; ++i) out.push_back(trainer.train_step(test::batch(5, i)));
  return out;
}

TEST(Trainer, GoesOnExactlyWhereItStopped) {
  TrainerOptions options;
  options.seed = 7;
  options.learning_rate = 0.05F;
  CheckpointState whole = test::state();
  Trainer through(with_dropout(), whole, options);
  const auto first = losses(through, 0, 5), rest = losses(through, 5, 10);
  CheckpointState half = test::state();
  Trainer begun(with_dropout(), half, options);
  EXPECT_EQ(losses(begun, 0, 5), first);
  const auto path = std::filesystem::path(::testing::TempDir()) / "sdx_train_step" / "resumed";
  begun.save_checkpoint(path);
  CheckpointState loaded = CheckpointState::load(path);
  Trainer resumed(with_dropout(), loaded, options);
  EXPECT_EQ(resumed.steps(), 5);
  EXPECT_EQ(losses(resumed, 5, 10), rest);
  expect_same(loaded, whole);
  CheckpointState third = test::state();
  options.seed = 8;
  Trainer other(with_dropout(), third, options);
  EXPECT_NE(losses(other, 0, 5), first);
}

TEST(Trainer, IsTheSameFromRunToRunOnTwoThreads) {
  std::vector<std::vector<float>> all;
  for (int run = 0; run < 3; ++run) {
    CheckpointState state = test::state();
    TrainerOptions options;
    options.seed = 5;
    options.threads = 2;
    Trainer trainer(with_dropout(), state, options);
    all.push_back(losses(trainer, 0, 8));
  }
  EXPECT_EQ(all[0], all[1]);
  EXPECT_EQ(all[0], all[2]);
}

TEST(Trainer, DropsOtherElementsInEachStep) {
  CheckpointState state = test::state();
  TrainerOptions options;
  options.learning_rate = 0;
  Trainer trainer(with_dropout(), state, options);
  const auto batch = test::batch(5, 1);
  const float a = trainer.train_step(batch), b = trainer.train_step(batch), c = trainer.train_step(batch);
  EXPECT_FALSE(a == b && b == c);
}

// Large enough for products in bfloat16, whose operands have 8 bits: losses agree to a hundredth.
TEST(Trainer, ComputesProductsInBfloat16) {
  const std::string inputs =
      "opset com.microsoft 1\nopset ai.onnx.preview.training 1\ninput x: float32[N,96]\ninput labels: int64[N]\n"
      "input w1: float32[64,96]\ninput b1: float32[64]\ninput w2: float32[64,10]\ninput b2: float32[10]\n";
  const std::string forward =
      "h = Gemm(x, w1, b1) {transB=1}\na = Relu(h)\nm = MatMul(a, w2)\nscores = Add(m, b2)\n"
      "loss = SoftmaxCrossEntropyLoss(scores, labels)\n";
  const auto model =
      test::written("bfloat16_training_model.onnx", test::training_text({"w1", "b1", "w2", "b2"}, inputs, forward));
  std::mt19937 rng(3);
  CheckpointState start;
  start.parameters.push_back({"w1", test::random_tensor(rng, {64, 96}, 0.1F), true});
  start.parameters.push_back({"b1", test::random_tensor(rng, {64}, 0.1F), true});
  start.parameters.push_back({"w2", test::random_tensor(rng, {64, 10}, 0.1F), true});
  start.parameters.push_back({"b2", test::random_tensor(rng, {10}, 0.1F), true});
  Tensor labels(DataType::int64, {512});
  for (std::int64_t& v : labels.mutable_values<std::int64_t>()) v = std::uniform_int_distribution<std::int64_t>(0, 9)(rng);
  const std::vector<Tensor> batch{test::random_tensor(rng, {512, 96}), labels};
  CheckpointState exact = start.clone(), rounded = start.clone();
  TrainerOptions options;
  options.learning_rate = 0.003F;
  Trainer plain(model, exact, options);
  options.bfloat16 = true;
  Trainer narrow(model, rounded, options);
  float first = 0, last = 0;
  for (int i = 0; i < 30; ++i) {
    const float want = plain.train_step(batch);
    last = narrow.train_step(batch);
    if (i == 0) first = last;
    ASSERT_NEAR(last, want, 0.01F * want) << "step " << i;
  }
  EXPECT_LT(last, 0.8F * first);
}

TEST(Trainer, RefusesWhatMakesNoSense) {
  CheckpointState state = test::state();
  TrainerOptions options;
  options.accumulate = 0;
  EXPECT_THROW(Trainer(artifacts(), state, options), Error);
  options.accumulate = 1;
  options.optimizer = OptimizerOptions{};
  options.optimizer->beta1 = 1.5F;
  EXPECT_THROW(Trainer(artifacts(), state, options), Error);
  EXPECT_THROW(Trainer(std::filesystem::path(::testing::TempDir()) / "nothing", state), Error);
}

}  // namespace
}  // namespace sdx::train
