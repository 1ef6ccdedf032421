#pragma once
// For the unit tests of src/train: a perceptron that is trained, in files and in numbers.

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <sdx/train/trainer.hpp>
#include <string>
#include <vector>

#include "base/system/process.h"
#include "onnx/writer.h"
#include "support/graph_text.h"

namespace sdx::train::test {

inline std::filesystem::path written(const std::string& name, const std::string& text) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "sdx_train_step" / std::to_string(process_id());
  std::filesystem::create_directories(folder);
  write_model(sdx::testing::parse_model(text), folder / name);
  return folder / name;
}

inline constexpr const char* kInputs =
    "opset com.microsoft 1\n"
    "opset ai.onnx.preview.training 1\n"
    "input x: float32[N,5]\n"
    "input labels: int64[N]\n"
    "input w1: float32[7,5]\n"
    "input b1: float32[7]\n"
    "input w2: float32[3,7]\n"
    "input b2: float32[3]\n";

inline constexpr const char* kForward =
    "h = Gemm(x, w1, b1) {transB=1}\n"
    "a = Tanh(h)\n"
    "scores = Gemm(a, w2, b2) {transB=1}\n"
    "loss = SoftmaxCrossEntropyLoss(scores, labels)\n";

// `trained`: names of parameters.
inline std::string training_text(const std::vector<std::string>& trained, const std::string& inputs = kInputs,
                                 const std::string& forward = kForward) {
  std::string text = inputs, xs, gradients, nodes, outputs = "output loss: float32[]\n";
  for (const std::string& p : trained) {
    text += "input " + p + "_grad.accumulation.buffer: float32[?]\n";
    xs += (xs.empty() ? "" : ", ") + p;
    gradients += (gradients.empty() ? "" : ", ") + p + "_grad";
    nodes += p + "_grad.accumulation.out = com.microsoft.InPlaceAccumulatorV2(" + p + "_grad.accumulation.buffer, " + p +
             "_grad, lazy_reset_grad)\n";
    outputs += "output " + p + "_grad.accumulation.out: bool[1]\n";
  }
  std::string quoted;
  for (const std::string& p : trained) quoted += (quoted.empty() ? "\"" : ", \"") + p + "\"";
  return text + "input lazy_reset_grad: bool[1]\n" + forward + gradients + " = ai.onnx.preview.training.Gradient(" + xs +
         ") {xs=[" + quoted + "], y=\"loss\"}\n" + nodes + outputs;
}

inline std::filesystem::path training_model(const std::vector<std::string>& trained = {"w1", "b1", "w2", "b2"}) {
  return written("training_model.onnx", training_text(trained));
}
inline std::filesystem::path eval_model() {
  return written("eval_model.onnx", std::string(kInputs) + kForward + "output loss: float32[]\n");
}

inline Tensor random_tensor(std::mt19937& rng, Shape shape, float scale = 1) {
  Tensor t(DataType::float32, std::move(shape));
  std::normal_distribution<float> normal(0, scale);
  for (float& v : t.mutable_values<float>()) v = normal(rng);
  return t;
}

inline CheckpointState state(unsigned seed = 1) {
  std::mt19937 rng(seed);
  CheckpointState s;
  s.parameters.push_back({"w1", random_tensor(rng, {7, 5}, 0.5F), true});
  s.parameters.push_back({"b1", random_tensor(rng, {7}, 0.5F), true});
  s.parameters.push_back({"w2", random_tensor(rng, {3, 7}, 0.5F), true});
  s.parameters.push_back({"b2", random_tensor(rng, {3}, 0.5F), true});
  return s;
}

inline std::vector<Tensor> batch(std::int64_t n, unsigned seed) {
  std::mt19937 rng(seed);
  Tensor labels(DataType::int64, {n});
  for (std::int64_t& v : labels.mutable_values<std::int64_t>()) v = std::uniform_int_distribution<std::int64_t>(0, 2)(rng);
  return {random_tensor(rng, {n, 5}), labels};
}

// Loss and gradients (w1, b1, w2, b2) in double.
struct Reference {
  double loss = 0;
  std::vector<std::vector<double>> gradients;
};
Reference reference(const CheckpointState& state, const std::vector<Tensor>& batch);

}  // namespace sdx::train::test
