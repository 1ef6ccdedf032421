#include "train/loop/features.h"

#include <algorithm>
#include <numeric>

#include "onnx/reader.h"
#include "session/pipeline.h"
#include "support/errors.h"
#include "support/session.h"
#include "support/training_models.h"

namespace sdx::train::loop {
namespace {

namespace fs = std::filesystem;

Model inferred(const fs::path& path) {
  Model model = read_model(path);
  session::prepare(model, {});
  return model;
}

// The first layer is frozen.
CheckpointState half_frozen() {
  CheckpointState state = test::state();
  state.at("w1").requires_grad = state.at("b1").requires_grad = false;
  return state;
}

fs::path training(const std::string& forward = test::kForward, const std::string& name = "features_training.onnx") {
  return test::written(name, test::training_text({"w2", "b2"}, test::kInputs, forward));
}

Session session_of(const Model& model) { return testing::open(model); }

TEST(Features, AreCutWhereTheTrainedPartBegins) {
  const SplitModel split = split_model(inferred(training()), half_frozen(), "labels");
  EXPECT_EQ(split.features, (std::vector<std::string>{"a"}));
  ASSERT_EQ(split.frozen.graph.inputs().size(), 1U);
  EXPECT_EQ(split.frozen.graph.value(split.frozen.graph.inputs()[0]).name, "x");
  EXPECT_FALSE(split.rest.graph.find("x"));
  EXPECT_TRUE(split.rest.graph.find("w2"));
  EXPECT_FALSE(split.rest.graph.find("w1"));
}

TEST(Features, TrainLikeTheWholeModel) {
  std::mt19937 rng(3);
  const Tensor x = test::random_tensor(rng, {10, 5});
  Tensor labels(DataType::int64, {10});
  for (std::size_t i = 0; i < 10; ++i) labels.mutable_values<std::int64_t>()[i] = static_cast<std::int64_t>(i % 3);
  const auto raw = dataset_of({x, labels});

  CheckpointState whole = half_frozen(), cut = half_frozen();
  const fs::path folder = training().parent_path() / "cut";
  fs::create_directories(folder);
  const SplitModel split = split_model(inferred(training()), cut, "labels");
  write_model(split.rest, folder / "training_model.onnx");
  const SplitModel eval = split_model_at(inferred(test::eval_model()), cut, split.features);
  write_model(eval.rest, folder / "eval_model.onnx");
  Trainer a(training(), whole), b(folder, cut);
  Module module(training(), whole, test::eval_model());
  EXPECT_EQ(b.input_names(), (std::vector<std::string>{"labels", "a"}));

  for (const std::uint64_t memory : {std::uint64_t{1} << 20, std::uint64_t{1}}) {  // and in a file
    FeatureOptions options;
    options.batch = 4;
    options.memory = memory;
    const auto features = feature_data(*raw, {"x", "labels"}, session_of(split.frozen), split.features, b.input_names(), options);
    ASSERT_EQ(features->size(), 10);
    std::vector<std::int64_t> which(4);
    for (std::int64_t step = 0; step < 3; ++step) {
      std::iota(which.begin(), which.end(), 2 * step);
      EXPECT_NEAR(a.train_step(raw->batch(which, 0)), b.train_step(features->batch(which, 0)), 1e-6);
      EXPECT_NEAR(module.eval_step(raw->batch(which, 0))[0].values<float>()[0],
                  b.eval_step(features->batch(which, 0))[0].values<float>()[0], 1e-6);
    }
  }
  const auto values = cut.at("w2").value.values<float>(), want = whole.at("w2").value.values<float>();
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(values[i], want[i], 1e-5);
  fs::remove_all(folder);
}

TEST(Features, NothingIsFrozenBeforeAFirstTrainedLayer) {
  EXPECT_NE(testing::error_text([] {
              split_model(inferred(test::training_model()), test::state(), "labels");
            }).find("nothing is computed before"),
            std::string::npos);
}

TEST(Features, MustBeTheSameInEveryEpoch) {
  const std::string dropped =
      "constant ratio: float32[] 0.5\n"
      "constant on: bool[] 1\n"
      "h = Gemm(x, w1, b1) {transB=1}\n"
      "a = Dropout(h, ratio, on)\n"
      "scores = Gemm(a, w2, b2) {transB=1}\n"
      "loss = SoftmaxCrossEntropyLoss(scores, labels)\n";
  const std::string text =
      testing::error_text([&] { split_model(inferred(training(dropped, "dropped.onnx")), half_frozen(), "labels"); });
  testing::expect_parts(text, {"Dropout", "other random numbers"});
}

TEST(Features, MustNotDependOnTheBatch) {
  const std::string centred =
      "h = Gemm(x, w1, b1) {transB=1}\n"
      "m = ReduceMean(h) {axes=[0]}\n"
      "a = Sub(h, m)\n"
      "scores = Gemm(a, w2, b2) {transB=1}\n"
      "loss = SoftmaxCrossEntropyLoss(scores, labels)\n";
  const SplitModel split = split_model(inferred(training("opset 13\n" + centred, "centred.onnx")), half_frozen(), "labels");
  std::mt19937 rng(3);
  const auto raw = dataset_of({test::random_tensor(rng, {8, 5}), Tensor(DataType::int64, {8})});
  FeatureOptions options;
  options.batch = 4;
  const std::string text = testing::error_text([&] {
    feature_data(*raw, {"x", "labels"}, session_of(split.frozen), split.features, {"labels", "a"}, options);
  });
  EXPECT_NE(text.find("differs by"), std::string::npos) << text;
}

TEST(Features, ShapesAreComputedWithTheTrainedPart) {
  const std::string shaped =
      "h = Gemm(x, w1, b1) {transB=1}\n"
      "s = Shape(h)\n"
      "a = Reshape(h, s)\n"
      "f = Gemm(a, w2, b2) {transB=1}\n"
      "z = Shape(a)\n"
      "n = Size(z)\n"
      "k = Cast(n) {to=1}\n"
      "scores = Mul(f, k)\n"
      "loss = SoftmaxCrossEntropyLoss(scores, labels)\n";
  const SplitModel split = split_model(inferred(training(shaped, "shaped.onnx")), half_frozen(), "labels");
  EXPECT_TRUE(std::find(split.features.begin(), split.features.end(), "k") == split.features.end());
  EXPECT_TRUE(std::find(split.features.begin(), split.features.end(), "s") == split.features.end());
}

}  // namespace
}  // namespace sdx::train::loop
