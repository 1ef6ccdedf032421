// Results of ONNX Runtime's training 1.19.2, step by step, from its artifacts. Needs SDX_TEST_MODELS.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sdx/session.hpp>
#include <sdx/train.hpp>

#include "base/system/process.h"
#include "tensor/npz.h"

namespace sdx::train {
namespace {

namespace fs = std::filesystem;

fs::path recorded() {
  const char* models = std::getenv("SDX_TEST_MODELS");
  return models == nullptr ? fs::path() : fs::path(models) / "training";
}

// A case and its data.
struct Case {
  explicit Case(const std::string& name) : folder(recorded() / name) {
    std::ifstream file(folder / "expected.json");
    expected = nlohmann::json::parse(file);
    const NamedTensors all = read_npz(folder / "batches.npz");
    for (const auto& [key, value] : all) data[key] = value.aligned();
  }
  // Part `i` of "x" and "y".
  std::vector<Tensor> batch(std::size_t i) const { return {part("x", i), part("y", i)}; }
  std::vector<Tensor> eval() const { return {data.at("eval_x"), data.at("eval_y")}; }
  Tensor part(const std::string& key, std::size_t i) const {
    const Tensor& whole = data.at(key);
    const Shape shape(whole.shape().begin() + 1, whole.shape().end());
    const auto bytes = byte_size(whole.dtype(), element_count(shape));
    return Tensor::view(static_cast<const std::byte*>(whole.data()) + i * bytes, whole.dtype(), shape, whole.owner());
  }
  std::size_t accumulate() const { return expected["accumulation_steps"].get<std::size_t>(); }
  float rate() const { return expected["base_learning_rate"].get<float>(); }
  bool scheduled() const { return !expected["scheduler"].is_null(); }

  fs::path folder;
  nlohmann::json expected;
  std::map<std::string, Tensor> data;
};

void expect_loss(float got, const nlohmann::json& list, std::size_t i, const char* which) {
  const double want = list[i].get<double>();
  EXPECT_NEAR(got, want, std::abs(want) * (i < 3 ? 1e-5 : 1e-4) + 1e-7) << which << " " << i;
}

// 1e-4 of the largest magnitude, and `more`.
void expect_close(const Tensor& got, const Tensor& want, const std::string& name, double more = 0) {
  ASSERT_EQ(got.shape(), want.shape()) << name;
  const auto a = got.values<float>(), b = want.values<float>();
  double scale = 1e-3;
  for (const float v : b) scale = std::max(scale, std::abs(double{v}));
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4 * scale + more) << name << "[" << i << "]";
}

// In the last step of this case the two largest elements of a pooling window differ by less than a unit in the last place, so
// that rounding decides which of them the gradient goes to.
bool ends_with_a_tie(const Case& c) { return c.folder.filename() == "cnn_maxpool_sgd"; }

void expect_final(const Case& c, const CheckpointState& state) {
  // The difference between two computations that are both exact enough: AdamW makes full steps of a gradient that is zero apart
  // from rounding, such as that of the bias of attention's keys.
  constexpr const char* kKnown = "difference_from_an_independent_float64_calculation";
  double more = c.expected.contains(kKnown) ? 10 * c.expected[kKnown]["final_params_max_absolute"].get<double>() : 2e-5;
  if (ends_with_a_tie(c)) more = 2e-3;
  for (const auto& [name, value] : read_npz(c.folder / "final_params.npz"))
    expect_close(state.at(name).value, value.aligned(), name, more);
}

void expect_outputs(const Case& c, const Module& module) {
  const fs::path path = fs::path(::testing::TempDir()) / ("sdx_exported_" + std::to_string(process_id()) + ".onnx");
  const std::string output = c.expected["model_output"].get<std::string>();
  module.export_model_for_inferencing(path, {&output, 1});
  const Session session = Session::open(path);
  fs::remove(path);
  ASSERT_EQ(session.inputs().size(), 1U);
  const NamedValues results = session.run({{session.inputs()[0].name, c.data.at("eval_x")}});
  for (const auto& [name, value] : read_npz(c.folder / "final_outputs.npz")) {
    expect_close(results[0].value.tensor(), value.aligned(), "output " + name, ends_with_a_tie(c) ? 5e-3 : 0);
  }
}

class Steps : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!fs::exists(recorded() / GetParam() / "training_model.onnx")) GTEST_SKIP() << "no model files (SDX_TEST_MODELS)";
  }
};

TEST_P(Steps, ModuleAndOptimizer) {
  const Case c(GetParam());
  CheckpointState state = CheckpointState::load(c.folder / "checkpoint");
  Module module(c.folder / "training_model.onnx", state, c.folder / "eval_model.onnx");
  Optimizer optimizer(c.folder / "optimizer_model.onnx", module);
  optimizer.set_learning_rate(c.rate());
  std::optional<LinearLRScheduler> scheduler;
  if (c.scheduled()) scheduler.emplace(optimizer, 5, 20, c.rate());
  std::size_t updates = 0;
  expect_loss(module.eval_step(c.eval())[0].values<float>()[0], nlohmann::json::array({c.expected["eval_loss"]["before"]}), 0,
              "first loss on the eval batch");
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_NEAR(optimizer.learning_rate(), c.expected["learning_rates"][i].get<double>(), 1e-8);
    expect_loss(module.train_step(c.batch(i))[0].values<float>()[0], c.expected["train_loss"], i, "loss of batch");
    if ((i + 1) % c.accumulate() != 0) continue;
    optimizer.step();
    if (scheduler) scheduler->step();
    module.lazy_reset_grad();
    if (i == 19 && ends_with_a_tie(c)) continue;
    expect_loss(module.eval_step(c.eval())[0].values<float>()[0], c.expected["eval_loss"]["after_each_update"], updates,
                "loss on the eval batch after update");
    ++updates;
  }
  expect_final(c, state);
  expect_outputs(c, module);
}

TEST_P(Steps, Trainer) {
  const Case c(GetParam());
  CheckpointState state = CheckpointState::load(c.folder / "checkpoint");
  TrainerOptions options;
  options.learning_rate = c.rate();
  options.accumulate = static_cast<std::int64_t>(c.accumulate());
  if (c.scheduled()) options.schedule = {ScheduleKind::linear, 5, 20, 0};
  Trainer trainer(c.folder, state, options);
  for (std::size_t i = 0; i < 20; ++i) expect_loss(trainer.train_step(c.batch(i)), c.expected["train_loss"], i, "loss of batch");
  expect_final(c, state);
}

TEST_P(Steps, FirstGradients) {
  const Case c(GetParam());
  CheckpointState state = CheckpointState::load(c.folder / "checkpoint");
  Module module(c.folder / "training_model.onnx", state);
  module.train_step(c.batch(0));
  for (const auto& [name, value] : read_npz(c.folder / "first_gradients.npz"))
    expect_close(module.gradient(name), value.aligned(), name);
}

INSTANTIATE_TEST_SUITE_P(Recorded, Steps,
                         ::testing::Values("accumulate4_mlp_adamw", "binary_bcewithlogits_adamw", "cnn_batchnorm_decomposed_sgd",
                                           "cnn_batchnorm_frozen_stats", "cnn_globalaveragepool_sgd",
                                           "cnn_maxpool_globalaveragepool_sgd", "cnn_maxpool_sgd", "encoder_layernorm_adamw",
                                           "linear_lr_scheduler_mlp_adamw", "logreg_sgd", "mlp_adamw",
                                           "reference_cnn_averagepool_sgd", "regression_mse_sgd", "transfer_frozen_backbone"),
                         [](const auto& info) { return std::string(info.param); });

// Artifacts of our own, from the forward model.
class OwnArtifacts : public ::testing::TestWithParam<const char*> {};

ArtifactOptions options_of(const Case& c) {
  ArtifactOptions o;
  const std::map<std::string, Loss> losses{
      {"CrossEntropyLoss", Loss::cross_entropy}, {"MSELoss", Loss::mse}, {"BCEWithLogitsLoss", Loss::bce_with_logits}};
  o.loss = losses.at(c.expected["loss_type"].get<std::string>());
  o.loss_input = c.expected["model_output"].get<std::string>();
  for (const auto& [name, key] : c.expected["inputs"].items()) {
    if (key == "y") o.target_name = name;
  }
  o.requires_grad = c.expected["trainable"].get<std::vector<std::string>>();
  o.frozen = c.expected["frozen"].get<std::vector<std::string>>();
  if (c.expected["optimizer"] != "AdamWOptimizer") o.optimizer->kind = OptimizerKind::sgd;
  return o;
}

TEST_P(OwnArtifacts, TrainTheSame) {
  if (!fs::exists(recorded() / GetParam() / "model.onnx")) GTEST_SKIP() << "no model files (SDX_TEST_MODELS)";
  const Case c(GetParam());
  const fs::path folder = fs::path(::testing::TempDir()) / ("sdx_own_" + std::to_string(process_id())) / GetParam();
  const ArtifactFiles files = generate_artifacts(c.folder / "model.onnx", folder, options_of(c));
  CheckpointState state = CheckpointState::load(files.checkpoint);
  TrainerOptions options;
  options.learning_rate = c.rate();
  options.accumulate = static_cast<std::int64_t>(c.accumulate());
  if (c.scheduled()) options.schedule = {ScheduleKind::linear, 5, 20, 0};
  Trainer trainer(folder, state, options);
  fs::remove_all(folder);
  for (std::size_t i = 0; i < 20; ++i) expect_loss(trainer.train_step(c.batch(i)), c.expected["train_loss"], i, "loss of batch");
  expect_final(c, state);
}

INSTANTIATE_TEST_SUITE_P(Recorded, OwnArtifacts,
                         ::testing::Values("accumulate4_mlp_adamw", "binary_bcewithlogits_adamw", "cnn_batchnorm_decomposed_sgd",
                                           "cnn_batchnorm_frozen_stats", "cnn_globalaveragepool_sgd",
                                           "cnn_maxpool_globalaveragepool_sgd", "cnn_maxpool_sgd", "encoder_layernorm_adamw",
                                           "linear_lr_scheduler_mlp_adamw", "logreg_sgd", "mlp_adamw",
                                           "reference_cnn_averagepool_sgd", "reference_layernorm_one_output_adamw",
                                           "regression_mse_sgd", "transfer_frozen_backbone"),
                         [](const auto& info) { return std::string(info.param); });

class Resumed : public Steps {};

TEST_P(Resumed, GoesOnFromTheCheckpoint) {
  const Case c(GetParam());
  CheckpointState state = CheckpointState::load(c.folder / "checkpoint_after_20");
  TrainerOptions options;
  options.learning_rate = c.rate();
  Trainer trainer(c.folder, state, options);
  EXPECT_EQ(trainer.steps(), 20);
  const nlohmann::json& resume = c.expected["resume"];
  for (std::size_t i = 0; i < 5; ++i) {
    const double want = resume["train_loss_resumed_from_file"][i].get<double>();
    EXPECT_NEAR(trainer.train_step(c.batch(i)), want, std::abs(want) * 1e-4 + 1e-7) << "loss of batch " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Recorded, Resumed, ::testing::Values("encoder_layernorm_adamw", "mlp_adamw"),
                         [](const auto& info) { return std::string(info.param); });

// ONNX Runtime's own test data.
TEST(RecordedApi, FollowsOnnxRuntimesTests) {
  const fs::path folder = recorded() / "ort_training_api";
  if (!fs::exists(folder / "training_model.onnx")) GTEST_SKIP() << "no model files (SDX_TEST_MODELS)";
  std::ifstream text(folder / "input-0.in");
  std::string name;
  text >> name;
  Tensor x(DataType::float32, {2, 784});
  for (float& v : x.mutable_values<float>()) {
    char separator = ' ';
    text >> separator >> v;
    ASSERT_TRUE(text.good());
  }
  const std::vector<Tensor> batch{x, Tensor::of<std::int32_t>({2}, {1, 1})};
  CheckpointState state = CheckpointState::load(folder / "checkpoint.ckpt");
  Module module(folder / "training_model.onnx", state, folder / "eval_model.onnx");
  Optimizer optimizer(folder / "adamw.onnx", module);
  std::ifstream file(folder / "expected.json");
  const nlohmann::json expected = nlohmann::json::parse(file);
  for (const nlohmann::json& loss : expected["train_loss_onnxruntime_training_1_19_2"]) {
    // A loss of 5e-4 is a difference of numbers near 1: below float32's step there, 1.2e-7, nothing is certain.
    EXPECT_NEAR(module.train_step(batch)[0].values<float>()[0], loss.get<double>(), 1e-4 * loss.get<double>() + 1.2e-7);
    optimizer.step();
    module.lazy_reset_grad();
  }
  const double after = expected["eval_loss_after_6_steps"].get<double>();
  EXPECT_NEAR(module.eval_step(batch)[0].values<float>()[0], after, 1e-3 * after);
}

}  // namespace
}  // namespace sdx::train
