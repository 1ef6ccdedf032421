#include <sdx/train/artifacts.hpp>

#include <algorithm>

#include "base/error.h"
#include "support/made_artifacts.h"

namespace sdx::train {
namespace {

using test::labels;
using test::MadeArtifacts;
using test::numbers;

std::string refusal(const std::string& text, const ArtifactOptions& options, ErrorCode code = ErrorCode::invalid_argument) {
  const std::filesystem::path folder = MadeArtifacts::fresh_folder();
  std::string message;
  try {
    const std::string bytes = testing::model_bytes(text);
    generate_artifacts(std::as_bytes(std::span(bytes)), folder, options);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    message = e.what();
  }
  EXPECT_FALSE(std::filesystem::exists(folder) && !std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
  return message;
}

std::vector<std::string> trained(const CheckpointState& state) {
  std::vector<std::string> out;
  for (const Parameter& p : state.parameters) {
    if (p.requires_grad) out.push_back(p.name);
  }
  return out;
}

using Names = std::vector<std::string>;

constexpr const char* kPooled =
    "opset 11\ninput x: float32[n,1,6,6]\n"
    "constant c: float32[2,1,3,3] 0.1 -0.2 0.3 0.4 0.2 -0.1 0.3 -0.4 0.5 0.2 0.1 -0.3 0.2 0.4 -0.2 0.1 0.3 -0.5\n"
    "constant w: float32[8,3] 0.1 -0.2 0.3 0.4 0.2 -0.1 0.3 -0.4 0.5 0.2 0.1 -0.3 0.2 0.4 -0.2 0.1 0.3 -0.5 0.1 0.2 0.3 -0.1 "
    "-0.2 0.6\n"
    "a = Conv(x, c)\nb = AveragePool(a) {kernel_shape=[2, 2], strides=[2, 2]}\nd = Flatten(b)\ny = MatMul(d, w)\noutput y\n";

TEST(Artifacts, OfAveragePoolingInAnOldOpset) {
  MadeArtifacts made(kPooled);
  EXPECT_EQ(trained(made.state), (Names{"c", "w"}));
  EXPECT_EQ(made.training.opsets.at(""), 21);
  EXPECT_EQ(made.training.ir_version, 10);
  EXPECT_EQ(made.eval.opsets.at(""), 21);  // SoftmaxCrossEntropyLoss is of opset 12
  made.expect_gradients({{"x", numbers({3, 1, 6, 6})}, {"labels", labels({0, 2, 1})}});
}

TEST(Artifacts, TheEvalModelKeepsItsOpset) {
  ArtifactOptions options;
  options.loss = Loss::mse;
  MadeArtifacts made(kPooled, options);
  EXPECT_EQ(made.eval.opsets.at(""), 11);
  const NamedValues feeds{{"x", numbers({2, 1, 6, 6})}, {"target", numbers({2, 3}, 0.2F)}};
  EXPECT_NEAR(made.evaluate(feeds).begin()->second.values<float>()[0],
              made.step(feeds).at("onnx::reducemean_output::6").values<float>()[0], 1e-6);
}

TEST(Artifacts, OfBranches) {
  MadeArtifacts made(
      "opset 17\ninput x: float32[n,3]\ninput c: bool[]\nconstant w: float32[3,2] 0.1 -0.2 0.3 0.4 0.2 -0.1\n"
      "constant v: float32[3,2] 0.5 0.2 -0.3 0.1 0.7 -0.6\n"
      "y = If(c)\n  then_branch {\n    a = MatMul(x, w)\n    output a\n  }\n  else_branch {\n    b = MatMul(x, v)\n    d = "
      "Tanh(b)\n"
      "    output d\n  }\noutput y\n");
  for (const bool taken : {true, false}) {
    Tensor c(DataType::boolean, {});
    c.mutable_values<bool>()[0] = taken;
    made.expect_gradients({{"x", numbers({4, 3})}, {"c", c}, {"labels", labels({0, 1, 1, 0})}});
  }
}

TEST(Artifacts, OfSharedWeights) {
  MadeArtifacts made(
      "opset 17\ninput i: int64[n]\nconstant e: float32[4,3] 0.1 -0.2 0.3 0.4 0.2 -0.1 0.3 -0.4 0.5 0.2 0.1 -0.3\n"
      "a = Gather(e, i)\nt = Transpose(e) {perm=[1, 0]}\nb = Tanh(a)\ny = MatMul(b, t)\noutput y\n");
  made.expect_gradients({{"i", labels({0, 3, 3, 1})}, {"labels", labels({2, 3, 0, 1})}});
}

constexpr const char* kLinear =
    "opset 17\ninput x: float32[n,2]\nconstant w: float32[2,3] 1 2 3 4 5 6\nconstant b: float32[3] 0.1 0.2 0.3\nconstant k: "
    "float32[] 0.5\n"
    "constant h: float16[3] 1\nconstant i: int64[1] 0\nconstant idle: float32[2] 1 2\n"
    "p = Constant() {value=float32[3](2)}\n"
    "a = MatMul(x, w)\ng = Add(a, b)\nd = Mul(g, k)\ne = Mul(d, p)\nr = Cast(h) {to=1}\ny = Add(e, r)\n"
    "z = ArgMax(a) {axis=1}\nu = Unsqueeze(idle, i)\ns = Add(u, u)\noutput y\noutput s\noutput z\n";

TEST(Artifacts, WhatIsTrainedWithoutWords) {
  MadeArtifacts made(kLinear);
  EXPECT_EQ(trained(made.state), (Names{"w", "b"}));  // no number, no half, no Constant node, nothing that the loss does not see
  EXPECT_EQ(made.state.parameters.size(), 2U);
  EXPECT_TRUE(made.training.graph.value(*made.training.graph.find("k")).constant);
}

TEST(Artifacts, WhatIsTrainedByName) {
  ArtifactOptions options;
  options.requires_grad = {"p", "k"};
  options.frozen = {"h", "b"};
  MadeArtifacts made(kLinear, options);
  EXPECT_EQ(trained(made.state), (Names{"k", "p"}));
  EXPECT_EQ(made.state.parameters.size(), 4U);
  made.expect_gradients({{"x", numbers({2, 2})}, {"labels", labels({0, 2})}});
  options.requires_grad = {"*"};
  options.frozen = {"w"};
  EXPECT_EQ(trained(MadeArtifacts(kLinear, options).state), (Names{"b"}));
}

TEST(Artifacts, ModelsWithAllWeightsInConstantNodes) {
  MadeArtifacts made(
      "opset 17\ninput x: float32[n,2]\nw = Constant() {value=float32[2,2](0.5)}\nk = Constant() {value=float32[1](2)}\n"
      "a = MatMul(x, w)\ny = Mul(a, k)\noutput y\n");
  EXPECT_EQ(trained(made.state), (Names{"w"}));
  made.expect_gradients({{"x", numbers({2, 2})}, {"labels", labels({0, 1})}});
}

TEST(Artifacts, NamesThatCannotBeTrained) {
  ArtifactOptions options;
  options.requires_grad = {"idle"};
  EXPECT_NE(refusal(kLinear, options).find("no gradient reaches 'idle'"), std::string::npos);
  options.requires_grad = {"h"};
  EXPECT_NE(refusal(kLinear, options).find("'h' is float16[3]; expected float32"), std::string::npos);
  options.requires_grad = {"bb"};
  EXPECT_NE(refusal(kLinear, options).find("there is no 'bb'"), std::string::npos);
  options = {};
  options.frozen = {"w", "b", "idle"};
  EXPECT_NE(refusal(kLinear, options).find("nothing to train"), std::string::npos);
}

TEST(Artifacts, UnknownOperatorsAreNamed) {
  const std::string message = refusal(
      "opset 17\ninput x: float32[2,2]\nconstant w: float32[2,2] 1 2 3 4\na = MatMul(x, w)\ny = Det(a)\nl = "
      "BitShiftless(y)\noutput y\n",
      {}, ErrorCode::not_implemented);
  EXPECT_NE(message.find("BitShiftless"), std::string::npos);
}

// Every form of BatchNormalization that exporters write.
std::string normalised(int opset, const std::string& node) {
  return "opset " + std::to_string(opset) +
         "\ninput x: float32[n,2,3]\nconstant s: float32[2] 1.5 0.5\nconstant o: float32[2] 0.1 -0.2\nconstant m: float32[2] 0.3 "
         "0.1\n"
         "constant v: float32[2] 1.3 0.4\n" +
         node +
         "\nf = Flatten(y)\nconstant w: float32[6,2] 0.1 -0.2 0.3 0.4 0.2 -0.1 0.3 -0.4 0.5 0.2 0.1 -0.3\nz = MatMul(f, "
         "w)\noutput z\n";
}

const NamedValues kNormFeeds{{"x", numbers({4, 2, 3})}, {"labels", labels({0, 1, 1, 0})}};

TEST(Artifacts, BatchNormalizationInEveryForm) {
  const std::pair<int, const char*> forms[] = {{15, "y = BatchNormalization(x, s, o, m, v)"},
                                               {15, "y, rm, rv = BatchNormalization(x, s, o, m, v) {training_mode=1}"},
                                               {9, "y = BatchNormalization(x, s, o, m, v)"},
                                               {9, "y, rm, rv, sm, sv = BatchNormalization(x, s, o, m, v)"}};
  float first = 0;
  for (const auto& [opset, node] : forms) {
    MadeArtifacts made(normalised(opset, node));
    EXPECT_EQ(trained(made.state), (Names{"s", "o", "w"})) << node;
    EXPECT_EQ(made.state.parameters.size(), 5U);
    const auto& nodes = made.training.graph.nodes();
    EXPECT_TRUE(std::any_of(nodes.begin(), nodes.end(), [](const Node& n) { return n.op_type == "BatchNormInternal"; })) << node;
    for (const Node& n : made.eval.graph.nodes()) {
      if (n.op_type != "BatchNormalization") continue;
      EXPECT_EQ(n.outputs.size(), 1U);
      EXPECT_FALSE(n.attributes.has("training_mode"));
    }
    const float loss = made.step(kNormFeeds).at("onnx::loss::2").values<float>()[0];
    if (first == 0) first = loss;
    EXPECT_NEAR(loss, first, 1e-6) << node;
    EXPECT_GT(std::abs(made.evaluate(kNormFeeds).begin()->second.values<float>()[0] - loss), 1e-3);  // running statistics
    made.expect_gradients(kNormFeeds);
  }
}

TEST(Artifacts, FixedStatistics) {
  ArtifactOptions options;
  options.train_batch_norm = false;
  MadeArtifacts made(normalised(15, "y, rm, rv = BatchNormalization(x, s, o, m, v) {training_mode=1}"), options);
  EXPECT_EQ(made.state.parameters.size(), 3U);
  const float loss = made.step(kNormFeeds).at("onnx::loss::2").values<float>()[0];
  EXPECT_NEAR(made.evaluate(kNormFeeds).at("onnx::loss::2").values<float>()[0], loss, 1e-6);
  made.expect_gradients(kNormFeeds);
}

TEST(Artifacts, RunningStatisticsHaveNoGradient) {
  ArtifactOptions options;
  options.requires_grad = {"m"};
  EXPECT_NE(refusal(normalised(15, "y = BatchNormalization(x, s, o, m, v)"), options).find("running statistic"),
            std::string::npos);
}

TEST(Artifacts, DropoutDropsInTrainingAlone) {
  const std::string head = "opset 17\ninput x: float32[n,4]\nconstant w: float32[4,2] 0.1 -0.2 0.3 0.4 0.2 -0.1 0.3 -0.4\n";
  const std::string tail = "z = MatMul(y, w)\noutput z\n";
  const NamedValues feeds{{"x", numbers({64, 4})}, {"labels", labels(std::vector<std::int64_t>(64, 1))}};
  const auto differ = [&](const std::string& node) {
    MadeArtifacts made(head + node + tail);
    return std::abs(made.step(feeds).at("onnx::loss::2").values<float>()[0] -
                    made.evaluate(feeds).at("onnx::loss::2").values<float>()[0]) > 1e-4F;
  };
  EXPECT_TRUE(differ("constant r: float32[] 0.5\ny = Dropout(x, r)\n"));
  EXPECT_TRUE(differ("constant r: float32[] 0.5\nconstant t: bool[] 1\ny = Dropout(x, r, t)\n"));
  EXPECT_FALSE(differ("constant r: float32[] 0.5\nconstant t: bool[] 0\ny = Dropout(x, r, t)\n"));
}

TEST(Artifacts, ModelsThatComputeTheirLoss) {
  ArtifactOptions options;
  options.loss = Loss::none;
  options.additional_outputs = {"y"};
  MadeArtifacts made(
      "opset 17\ninput x: float32[n,2]\nconstant w: float32[2,2] 1 2 3 4\na = MatMul(x, w)\nq = Mul(a, a)\nl = ReduceMean(q) "
      "{keepdims=1}\n"
      "output l\noutput a as y\n",
      options);
  EXPECT_EQ(made.training.graph.output_names()[0], "l");
  EXPECT_EQ(made.training.graph.output_names()[1], "y");
  made.expect_gradients({{"x", numbers({3, 2})}});
}

TEST(Artifacts, NewerOpsetsAreLowered) {
  MadeArtifacts made(
      "opset 23\ninput x: float32[n,2]\nconstant w: float32[2,2] 1 2 3 4\na = MatMul(x, w)\ny = Tanh(a)\noutput y\n");
  EXPECT_EQ(made.training.opsets.at(""), 21);
  EXPECT_EQ(made.eval.opsets.at(""), 21);
}

TEST(Artifacts, InputsWithDefaultsAreConstants) {
  MadeArtifacts made("opset 17\ninput x: float32[n,2]\ninput w: float32[2,2] = 1 2 3 4\ny = MatMul(x, w)\noutput y\n");
  EXPECT_EQ(trained(made.state), (Names{"w"}));
  EXPECT_EQ(made.training.graph.inputs().size(), 5U);
}

std::string said_of(const std::string& text, ArtifactOptions options = {}) {
  options.loss = Loss::mse;
  ::testing::internal::CaptureStderr();
  const MadeArtifacts made(text, options);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Artifacts, InitializersInTwoRolesAreNamed) {
  const std::string head =
      "opset 17\ninput x: float32[n,2]\nconstant w: float32[2,2] 1 2 3 4\nconstant v: float32[2,2] 5 6 7 8\n";
  const std::string joined = head + "constant b: float32[2] 0 0\na = Gemm(x, w, b)\ny = Gemm(a, v, b)\noutput y\n";
  const std::string said = said_of(joined);
  EXPECT_NE(said.find("'b' (input 2 of node (Gemm) producing 'a', input 2 of node (Gemm) producing 'y') is read in several"),
            std::string::npos)
      << said;
  // Behind Identity, as PyTorch's exporter writes it; and a running statistic that is a weight as well.
  EXPECT_NE(
      said_of(head + "constant b: float32[2] 0 0\nc = Identity(b)\na = Gemm(x, w, b)\ny = Gemm(a, v, c)\noutput y\n").find("'b'"),
      std::string::npos);
  EXPECT_NE(
      said_of(head + "constant o: float32[2] 1 1\nconstant b: float32[2] 0 0\nconstant m: float32[2] 1 2\na = MatMul(x, w)\n"
                     "y = BatchNormalization(a, o, b, m, o)\noutput y\n")
          .find("'o'"),
      std::string::npos);
  ArtifactOptions meant;
  meant.shares_parameters = true;
  EXPECT_EQ(said_of(joined, meant), "");
}

TEST(Artifacts, ParametersOfTheirOwnAreNotNamed) {
  const std::string head = "opset 17\ninput x: float32[n,2]\nconstant w: float32[2,4] 1 2 3 4 5 6 7 8\n";
  EXPECT_EQ(said_of(head + "constant b: float32[4] 0 0 0 0\ny = Gemm(x, w, b)\noutput y\n"), "");
  EXPECT_EQ(said_of(head + "y, z = Split(w) {axis=1}\na = MatMul(x, y)\nq = MatMul(x, z)\nr = Add(a, q)\noutput r\n"), "");
  ArtifactOptions frozen;
  frozen.frozen = {"b"};
  EXPECT_EQ(said_of("opset 17\ninput x: float32[n,2]\nconstant w: float32[2,2] 1 2 3 4\nconstant v: float32[2,2] 5 6 7 8\n"
                    "constant b: float32[2] 0 0\na = Gemm(x, w, b)\ny = Gemm(a, v, b)\noutput y\n",
                    frozen),
            "");
}

TEST(Artifacts, AllFilesOrNone) {
  const std::filesystem::path folder = MadeArtifacts::fresh_folder();
  std::filesystem::create_directories(folder / "checkpoint" / "in the way");
  const std::string bytes = testing::model_bytes(kLinear);
  EXPECT_THROW(generate_artifacts(std::as_bytes(std::span(bytes)), folder, {}), Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sdx::train
