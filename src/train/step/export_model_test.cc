
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sdx/session.hpp>
#include <sdx/train.hpp>

#include "support/training_models.h"

namespace sdx::train {
namespace {

double cross_entropy(const Tensor& scores, const Tensor& labels) {
  const auto s = scores.values<float>();
  const auto n = static_cast<std::size_t>(scores.dim(0)), classes = static_cast<std::size_t>(scores.dim(1));
  double loss = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(double{s[i * classes + c]});
    const auto label = static_cast<std::size_t>(labels.values<std::int64_t>()[i]);
    loss += std::log(sum) - double{s[i * classes + label]};
  }
  return loss / static_cast<double>(n);
}

std::filesystem::path forward_model() {
  std::string text = "input x: float32[N,5]\nconstant w1: float32[5,7]";
  for (int i = 0; i < 35; ++i) text += " " + std::to_string(std::sin(i));
  text += "\nconstant b1: float32[7] 0.1\nconstant w2: float32[3,7]";
  for (int i = 0; i < 21; ++i) text += " " + std::to_string(std::cos(3 * i));
  text +=
      "\nconstant b2: float32[3] 0.2\nm = MatMul(x, w1)\nh = Add(m, b1)\na = Tanh(h)\nscores = Gemm(a, w2, b2) {transB=1}\n"
      "output scores: float32[N,3]\n";
  return test::written("forward.onnx", text);
}

// The exported model computes what the eval model does.
void expect_exported(const ArtifactOptions& options, const std::vector<std::string>& gone) {
  const auto folder = forward_model().parent_path() / "exports";
  const ArtifactFiles files = generate_artifacts(forward_model(), folder, options);
  CheckpointState state = CheckpointState::load(files.checkpoint);
  TrainerOptions steps;
  steps.learning_rate = 0.05F;
  Trainer trainer(folder, state, steps);
  for (unsigned i = 0; i < 10; ++i) trainer.train_step(test::batch(8, i));
  const auto path = folder / "exported.onnx";
  const std::string outputs[] = {"scores"};
  trainer.export_model_for_inferencing(path, outputs);
  const auto batch = test::batch(8, 99);
  const Session session = Session::open(path);
  ASSERT_EQ(session.inputs().size(), 1U);
  const NamedValues results = session.run({{"x", batch[0]}});
  EXPECT_NEAR(trainer.eval_step(batch)[0].values<float>()[0], cross_entropy(results[0].value.tensor(), batch[1]), 1e-5);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  for (const std::string& name : gone) EXPECT_EQ(bytes.find(name), std::string::npos) << name;
  std::filesystem::remove_all(folder);
}

TEST(Export, HoldsTheTrainedParameters) { expect_exported({}, {"labels", "loss"}); }

TEST(Export, MergesAdapters) {
  ArtifactOptions options;
  options.lora.emplace();
  options.lora->rank = 2;
  expect_exported(options, {"lora"});
}

}  // namespace
}  // namespace sdx::train
