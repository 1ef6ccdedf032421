#include <sdx/train/fit.hpp>

#include <cmath>
#include <utility>

#include "support/errors.h"
#include "support/training_models.h"
#include "train/loop/accuracy.h"
#include "train/loop/place.h"
#include "train/loop/progress.h"
#include "train/loop/report.h"

namespace sdx::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSamples = 22;

class FitTest : public ::testing::Test {
 protected:
  FitTest() {
    test::training_model();
    artifacts_ = test::eval_model().parent_path();
    checkpoint_ = artifacts_ / (std::string("fit_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::mt19937 rng(7);
    pictures_ = test::random_tensor(rng, {kSamples, 5});
    labels_ = Tensor(DataType::int64, {kSamples});
    for (std::int64_t i = 0; i < kSamples; ++i) labels_.mutable_values<std::int64_t>()[static_cast<std::size_t>(i)] = i % 3;
  }
  ~FitTest() override {
    fs::remove(checkpoint_);
    fs::remove(checkpoint_.string() + ".best");
  }

  std::unique_ptr<Dataset> data() const { return dataset_of({pictures_, labels_}); }

  struct Run {
    std::vector<float> losses;
    FitResult result;
    CheckpointState state;
  };
  // `stop_after`: the number of batches after which this run is stopped.
  Run train(const FitOptions& options, CheckpointState state, std::int64_t stop_after = -1, bool validate = true) const {
    Run run;
    run.state = std::move(state);
    TrainerOptions how;
    how.learning_rate = 0.02F;
    how.accumulate = options.accumulate;
    how.schedule = {ScheduleKind::cosine, 2, 20, 0};
    Trainer trainer(artifacts_, run.state, how);
    FitCallbacks callbacks;
    callbacks.step = [&](const FitStep& s) { run.losses.push_back(s.loss); };
    callbacks.stop = [&] { return stop_after >= 0 && static_cast<std::int64_t>(run.losses.size()) >= stop_after; };
    const auto train = data(), validation = data();
    run.result = fit(trainer, *train, validate ? validation.get() : nullptr, options, callbacks);
    return run;
  }
  FitOptions options() const {
    FitOptions o;
    o.epochs = 3;
    o.batch = 4;
    o.seed = 5;
    o.checkpoint = checkpoint_;
    return o;
  }

  fs::path artifacts_, checkpoint_;
  Tensor pictures_, labels_;
};

TEST_F(FitTest, GoesOnExactlyWhereverItWasStopped) {
  for (const std::int64_t accumulate : {1, 2}) {
    FitOptions o = options();
    o.accumulate = accumulate;
    const Run whole = train(o, test::state());
    ASSERT_EQ(whole.losses.size(), 18U);  // 6 batches in an epoch
    EXPECT_EQ(whole.result.end, FitResult::End::complete);
    EXPECT_EQ(whole.result.history.size(), 3U);
    for (std::int64_t stop = 1; stop <= 18; ++stop) {
      SCOPED_TRACE(stop);
      fs::remove(checkpoint_);
      const Run first = train(o, test::state(), stop);
      EXPECT_EQ(first.result.end, FitResult::End::stopped);
      FitOptions on = o;
      on.resume = true;
      const Run second = train(on, CheckpointState::load(checkpoint_));
      std::vector<float> losses = first.losses;
      losses.insert(losses.end(), second.losses.begin(), second.losses.end());
      EXPECT_EQ(losses, whole.losses);
      ASSERT_EQ(second.result.history.size(), 3U);
      for (std::size_t e = 0; e < 3; ++e) {
        EXPECT_EQ(second.result.history[e].loss, whole.result.history[e].loss);
        EXPECT_EQ(second.result.history[e].validation_loss, whole.result.history[e].validation_loss);
      }
      EXPECT_EQ(second.result.curve.losses, whole.result.curve.losses);
      for (std::size_t p = 0; p < whole.state.parameters.size(); ++p) {
        const auto a = whole.state.parameters[p].value.values<float>(), b = second.state.parameters[p].value.values<float>();
        EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
      }
    }
  }
}

TEST_F(FitTest, WhatIsCompleteStaysSo) {
  FitOptions o = options();
  const Run whole = train(o, test::state());
  o.resume = true;
  const Run again = train(o, CheckpointState::load(checkpoint_));
  EXPECT_TRUE(again.losses.empty());
  EXPECT_EQ(again.result.history.size(), 3U);
  o.epochs = 4;  // and more can follow
  const Run more = train(o, CheckpointState::load(checkpoint_));
  EXPECT_EQ(more.losses.size(), 6U);
  EXPECT_EQ(more.result.history.size(), 4U);
}

TEST_F(FitTest, RefusesToGoOnWithSomethingElse) {
  train(options(), test::state(), 3);
  FitOptions o = options();
  o.resume = true;
  o.batch = 5;
  testing::expect_error([&] { train(o, CheckpointState::load(checkpoint_)); }, {"batch 4, and this is 5"});
  o.batch = 4;
  o.seed = 6;
  testing::expect_error([&] { train(o, CheckpointState::load(checkpoint_)); }, {"seed 5, and this is 6"});
  CheckpointState odd = CheckpointState::load(checkpoint_);
  odd.properties[loop::kPlaceProperty] = std::string("{\"version\": 1}");
  testing::expect_error([&] { train(o, std::move(odd)); }, {"is not a valid position"});
}

TEST_F(FitTest, EndsWhenValidationGetsNoBetterAndKeepsTheBest) {
  FitOptions o = options();
  o.epochs = 200;
  o.patience = 2;
  TrainerOptions how;
  how.learning_rate = 0.3F;
  CheckpointState state = test::state();
  Trainer trainer(artifacts_, state, how);
  const auto train = data();
  // Validation against labels that nothing says: the loss on them soon rises.
  Tensor wrong = labels_.clone();
  for (std::int64_t& v : wrong.mutable_values<std::int64_t>()) v = (v + 1) % 3;
  const auto validation = dataset_of({pictures_, wrong});
  const FitResult r = fit(trainer, *train, validation.get(), o);
  EXPECT_EQ(r.end, FitResult::End::patience);
  ASSERT_GE(r.best_epoch, 0);
  EXPECT_EQ(static_cast<std::int64_t>(r.history.size()), r.best_epoch + 3);
  EXPECT_EQ(r.best, checkpoint_.string() + ".best");
  CheckpointState best = CheckpointState::load(r.best);
  Module module(artifacts_ / "training_model.onnx", best, artifacts_ / "eval_model.onnx");
  double sum = 0;
  for (std::int64_t at = 0; at < kSamples; at += 4) {
    std::vector<std::int64_t> which;
    for (std::int64_t i = at; i < std::min(at + 4, kSamples); ++i) which.push_back(i);
    sum += static_cast<double>(module.eval_step(validation->batch(which, 0))[0].values<float>()[0]) *
           static_cast<double>(which.size());
  }
  EXPECT_NEAR(sum / kSamples, r.history[static_cast<std::size_t>(r.best_epoch)].validation_loss, 1e-6);
  o.checkpoint.clear();
  testing::expect_error([&] { fit(trainer, *train, nullptr, o); }, {"patience needs validation data"});
}

TEST_F(FitTest, ALossThatIsNotFiniteLeavesTheLastCheckpoint) {
  FitOptions o = options();
  o.save_every = 1;
  o.shuffle = false;
  pictures_.mutable_values<float>()[5 * 9] = 1e38F;  // in the third batch
  pictures_.mutable_values<float>()[5 * 9 + 1] = -1e38F;
  labels_.mutable_values<std::int64_t>()[9] = 0;
  CheckpointState state = test::state();
  for (Parameter& p : state.parameters) {
    for (float& v : p.value.mutable_values<float>()) v *= 30;
  }
  Tensor& w2 = state.at("w2").value;
  for (float& v : w2.mutable_values<float>()) v = 3e38F;
  const std::string text = testing::error_text([&] { train(o, state, -1, false); });
  EXPECT_NE(text.find("in epoch 1, batch 1 of 6"), std::string::npos) << text;
  EXPECT_FALSE(fs::exists(checkpoint_));
}

// Trains p on samples of x, and returns what was said and the checkpoint that is left.
std::pair<std::string, CheckpointState> trained_alone(const std::string& forward, std::vector<float> x, float rate,
                                                      FitOptions o) {
  const auto model = test::written(
      "fit_alone_training_model.onnx",
      test::training_text({"p"},
                          "opset com.microsoft 1\nopset ai.onnx.preview.training 1\ninput x: float32[N,2]\ninput p: float32[2]\n",
                          forward));
  CheckpointState state;
  state.parameters.push_back({"p", Tensor::of<float>({2}, {1, 4}), true});
  TrainerOptions how;
  how.optimizer = OptimizerOptions{};
  how.optimizer->kind = OptimizerKind::sgd;
  how.learning_rate = rate;
  Trainer trainer(model, state, how);
  const auto rows = static_cast<std::int64_t>(x.size() / 2);
  const auto samples = dataset_of({Tensor::of<float>({rows, 2}, std::move(x))});
  o.batch = 1;
  o.save_every = 1;
  o.shuffle = false;
  std::string text = testing::error_text([&] { fit(trainer, *samples, o); });
  return {std::move(text), CheckpointState::load(o.checkpoint)};
}

// An update that is too large spoils the parameters, though loss and gradient are finite, but no checkpoint.
TEST_F(FitTest, ParametersThatAreNotFiniteAreNotSaved) {
  const auto [text, saved] =
      trained_alone("m = Mul(x, p)\nloss = ReduceSum(m) {keepdims=0}\n", {0, 0, 1e9F, 0, 1, 1}, 1e30F, options());
  testing::expect_parts(text, {"parameter 'p' is not finite", "the last complete checkpoint is"});
  EXPECT_EQ(saved.optimizers.at("group0").step, 1);
  EXPECT_EQ(saved.parameters[0].value.values<float>()[0], 1);
}

// A gradient that is not finite at a finite loss changes nothing.
TEST_F(FitTest, GradientsThatAreNotFiniteAreRefused) {
  const auto [text, saved] =
      trained_alone("m = Mul(x, p)\nr = Sqrt(m)\nloss = ReduceMean(r) {keepdims=0}\n", {1, 1, 0, 1, 1, 1}, 0.01F, options());
  testing::expect_parts(text, {"norm of the gradients of step 2", "the last complete checkpoint is"});
  EXPECT_EQ(saved.optimizers.at("group0").step, 1);
  EXPECT_TRUE(std::isfinite(saved.parameters[0].value.values<float>()[0]));
}

TEST_F(FitTest, PlacesBeyondTheDataAreRefused) {
  for (const auto& [epoch, batch] : {std::pair<std::int64_t, std::int64_t>{0, 7}, {0, std::int64_t{1} << 62}, {INT64_MAX, 0}}) {
    loop::Place p;
    p.samples = kSamples;
    p.batch_size = 4;
    p.seed = 5;
    p.epoch = epoch;
    p.batch = batch;
    CheckpointState state = test::state();
    state.properties[loop::kPlaceProperty] = to_text(p);
    FitOptions o = options();
    o.resume = true;
    const std::string text = testing::error_text([&] { train(o, state.clone()); });
    EXPECT_NE(text.find("position"), std::string::npos) << text;
  }
}

TEST_F(FitTest, AccumulatingLeavesOutWhatFillsNoUpdate) {
  FitOptions o = options();
  o.accumulate = 4;
  EXPECT_EQ(updates_per_epoch(kSamples, o), 1);
  EXPECT_EQ(train(o, test::state()).losses.size(), 12U);
  o.drop_last = true;
  o.accumulate = 6;
  const std::string text = testing::error_text([&] { train(o, test::state()); });
  EXPECT_NE(text.find("22 samples are too few for 6 batches of 4, all of them full"), std::string::npos) << text;
}

TEST_F(FitTest, DataThatFailEndIt) {
  struct Failing : Dataset {
    std::unique_ptr<Dataset> inner;
    int left = 3;
    std::int64_t size() const override { return inner->size(); }
    std::vector<Tensor> batch(std::span<const std::int64_t> samples, std::int64_t epoch) override {
      if (left-- == 0) throw Error(ErrorCode::io, "the disk is gone");
      return inner->batch(samples, epoch);
    }
  };
  Failing failing;
  failing.inner = data();
  CheckpointState state = test::state();
  Trainer trainer(artifacts_, state);
  FitOptions o = options();
  o.save_every = 1;
  const std::string text = testing::error_text([&] { fit(trainer, failing, o); });
  testing::expect_parts(text, {"the disk is gone", "batch 4 of 6", "the last complete checkpoint is"});
  EXPECT_EQ(CheckpointState::load(checkpoint_).optimizers.at("group0").step, 3);
}

TEST_F(FitTest, ACheckpointThatCannotBeWritten) {
  FitOptions o = options();
  o.checkpoint = artifacts_ / "no such folder" / "x";
  const std::string text = testing::error_text([&] { train(o, test::state()); });
  EXPECT_NE(text.find("no such folder"), std::string::npos) << text;
}

TEST(Places, AreReadBackAsTheyWere) {
  loop::Place p;
  p.samples = 10;
  p.batch_size = 3;
  p.seed = 0xFFFFFFFFFFFFFFFF;
  p.epoch = 2;
  p.loss_sum = 0.1 + 0.2;
  p.history.push_back({0, 1.0 / 3, NAN, NAN, NAN, 0.1F, false});
  for (int i = 0; i < 2500; ++i) p.add_to_curve(1.0 / (i + 1));
  const std::string text = to_text(p);
  EXPECT_EQ(to_text(loop::place_from(text)), text);
  EXPECT_LE(p.curve.losses.size(), 1000U);
  EXPECT_EQ(p.curve.batches_each, 4);
  EXPECT_EQ(loop::place_from(text).seed, p.seed);
  for (const char* bad : {"", "[]", "{}", "{\"version\":2}", "nonsense"}) EXPECT_THROW(loop::place_from(bad), Error);
}

TEST(Accuracy, CountsTheHighestScores) {
  const Tensor scores = Tensor::of<float>({3, 2}, {1, 2, 3, 0, 0, 1});
  const loop::Hits hits = loop::count_hits(scores, Tensor::of<std::int64_t>({3}, {1, 1, -1}), -1);
  EXPECT_EQ(hits.right, 1);
  EXPECT_EQ(hits.counted, 2);
  const Tensor planes = Tensor::of<float>({1, 2, 2}, {1, 0, 0, 1});
  EXPECT_EQ(loop::count_hits(planes, Tensor::of<std::int32_t>({1, 2}, {0, 1}), -1).right, 2);
  EXPECT_EQ(loop::count_hits(scores, Tensor::of<float>({3}, {1, 1, 1}), -1).counted, 0);
}

TEST(Plots, AreDrawnInBraille) {
  const std::vector<double> falling{3, 2, 1, 0};
  EXPECT_EQ(loop::braille_line(falling, 2), "⠑⢄");
  const std::vector<double> alike{1, 1};
  EXPECT_EQ(loop::braille_line(alike, 4), "⠤");
  EXPECT_EQ(loop::braille_line({}, 4), "");
  const std::vector<loop::PlotLine> lines{{"loss", falling}};
  EXPECT_EQ(loop::plot_text(lines, 2, 1), "         3 ⠙⢦\n           loss\n");
  EXPECT_EQ(loop::plot_text({}, 2, 1), "");
}

TEST(Reports, HoldNothingThatEndsTheirElements) {
  loop::Report r;
  r.title = "</script><b>";
  r.facts = {{"data", "<x>"}};
  r.history.push_back({0, 0.5, NAN, 0.25, 0.75, 0.1F, true});
  const std::string html = loop::report_html(r);
  EXPECT_EQ(html.find("</script><b>"), std::string::npos);
  testing::expect_parts(html, {"&lt;x&gt;", "\"validation_loss\":0.25", "75.00 %"});
  EXPECT_EQ(html.find("http"), std::string::npos);
}

}  // namespace
}  // namespace sdx::train
