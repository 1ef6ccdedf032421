// Gradient nodes in sessions; the gradients of single operators are tested in tests/gradients.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <sdx/session.hpp>

#include "support/graph_text.h"

namespace sdx::session {
namespace {

Session open(const std::string& text) {
  const std::string bytes = testing::model_bytes("opset 20\nopset ai.onnx.preview.training 1\n" + text);
  return Session::from_bytes(std::as_bytes(std::span(bytes)));
}

float one(const NamedValues& values, const char* name) { return values.tensor(name).values<float>()[0]; }

void expect_refusal(const std::string& text, const std::vector<std::string>& parts) {
  try {
    open(text);
    FAIL() << "no error";
  } catch (const Error& e) {
    for (const std::string& part : parts) EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

constexpr const char* kCube =
    "input x: float32[]\n"
    "a = Mul(x, x)\n"
    "y = Mul(a, x)\n";

TEST(Gradient, AtTheValueThatTheGraphComputesWith) {
  const Session s = open(std::string(kCube) +
                         "g = ai.onnx.preview.training.Gradient(x) {xs=[\"x\"], y=\"y\"}\n"
                         "output g\noutput y\n");
  const NamedValues out = s.run({{"x", Tensor::scalar<float>(2)}});
  EXPECT_EQ(one(out, "g"), 12);
  EXPECT_EQ(one(out, "y"), 8);
}

TEST(Gradient, AtAnotherValue) {
  const Session s = open(std::string(kCube) +
                         "input at: float32[]\n"
                         "g = ai.onnx.preview.training.Gradient(at) {xs=[\"x\"], y=\"y\"}\n"
                         "output g\noutput y\n");
  const NamedValues out = s.run({{"x", Tensor::scalar<float>(2)}, {"at", Tensor::scalar<float>(3)}});
  EXPECT_EQ(one(out, "g"), 27);
  EXPECT_EQ(one(out, "y"), 8);
}

TEST(Gradient, ByAnInnerValue) {
  const Session s = open(std::string(kCube) +
                         "g, h = ai.onnx.preview.training.Gradient(a, x) {xs=[\"a\", \"x\"], y=\"y\"}\n"
                         "output g\noutput h\n");
  const NamedValues out = s.run({{"x", Tensor::scalar<float>(2)}});
  EXPECT_EQ(one(out, "g"), 2);
  EXPECT_EQ(one(out, "h"), 4);  // a does not depend on x here
}

TEST(Gradient, OneValueForTwoNames) {
  const Session s = open(
      "input x: float32[]\ninput z: float32[]\ninput at: float32[]\n"
      "y = Mul(x, z)\nw = Mul(y, z)\n"
      "g, h = ai.onnx.preview.training.Gradient(at, at) {xs=[\"x\", \"z\"], y=\"w\"}\n"
      "output g\noutput h\noutput w\n");
  const NamedValues out =
      s.run({{"x", Tensor::scalar<float>(5)}, {"z", Tensor::scalar<float>(7)}, {"at", Tensor::scalar<float>(3)}});
  EXPECT_EQ(one(out, "g"), 9);
  EXPECT_EQ(one(out, "h"), 18);
}

TEST(Gradient, OutputsMayBeLeftOutAndInputsBeOfNoConsequence) {
  const Session s = open(
      "input x: float32[2]\ninput z: float32[2]\ninput u: float32[3]\n"
      "y = Mul(x, z)\n"
      "_, h, k = ai.onnx.preview.training.Gradient(x, z, u) {xs=[\"x\", \"z\", \"u\"], y=\"y\"}\n"
      "output h\noutput k\n");
  const NamedValues out = s.run(
      {{"x", Tensor::of<float>({2}, {5, 6})}, {"z", Tensor::of<float>({2}, {7, 8})}, {"u", Tensor::of<float>({3}, {1, 1, 1})}});
  EXPECT_EQ(out.tensor("h").values<float>()[1], 6);
  ASSERT_EQ(out.tensor("k").shape(), Shape{3});
  EXPECT_EQ(out.tensor("k").values<float>()[2], 0);
}

TEST(Gradient, OfAGradientWhateverTheOrderOfNodes) {
  const Session s = open(
      "input x: float32[]\n"
      "gg = ai.onnx.preview.training.Gradient(x) {xs=[\"x\"], y=\"g\"}\n"
      "g = ai.onnx.preview.training.Gradient(x) {xs=[\"x\"], y=\"y\"}\n"
      "a = Mul(x, x)\ny = Mul(a, x)\n"
      "output g\noutput gg\n");
  const NamedValues out = s.run({{"x", Tensor::scalar<float>(2)}});
  EXPECT_EQ(one(out, "g"), 12);
  EXPECT_EQ(one(out, "gg"), 12);
}

TEST(Gradient, OtherFloatTypes) {
  const Session s = open(
      "input x: float16[2]\n"
      "y = Tanh(x)\n"
      "g = ai.onnx.preview.training.Gradient(x) {xs=[\"x\"], y=\"y\"}\n"
      "output g\n");
  Tensor zeros(DataType::float16, {2});
  std::fill_n(static_cast<std::uint16_t*>(zeros.mutable_data()), 2, std::uint16_t{0});
  const NamedValues out = s.run({{"x", zeros}});
  EXPECT_EQ(out.tensor("g").dtype(), DataType::float16);
}

TEST(Gradient, IsRefusedWithTheReason) {
  const std::string model =
      "input x: float32[1,1,2,2]\nconstant r: float32[1,5] 0 0 0 1 1\ny = MaxRoiPool(x, r) {pooled_shape=[1,1]}\n";
  expect_refusal(model + "g = ai.onnx.preview.training.Gradient(x) {xs=[\"x\"], y=\"y\"}\noutput g\n",
                 {"MaxRoiPool", "no gradient"});
  expect_refusal(model + "g = ai.onnx.preview.training.Gradient(x) {xs=[\"xx\"], y=\"y\"}\noutput g\n",
                 {"no value 'xx'", "did you mean 'x'"});
  expect_refusal(model + "g = ai.onnx.preview.training.Gradient(x, x) {xs=[\"x\"], y=\"y\"}\noutput g\n",
                 {"name 1 values", "2 inputs"});
  expect_refusal(model + "g = ai.onnx.preview.training.Gradient(x) {xs=[\"x\"], y=\"g\"}\noutput g\n", {"through itself"});
  expect_refusal(model + "s = Shape(x)\ng = ai.onnx.preview.training.Gradient(x) {xs=[\"x\"], y=\"s\"}\noutput g\n",
                 {"int64", "tensor of floats"});
}

TEST(Gradient, NestedWithoutEndIsRefused) {
  std::string text = "input x: float32[]\ny0 = Tanh(x)\n";
  for (int i = 0; i < 40; ++i) {
    text += fmt::format("y{} = ai.onnx.preview.training.Gradient(x) {{xs=[\"x\"], y=\"y{}\"}}\n", i + 1, i);
  }
  expect_refusal(text + "output y40\n", {"more than 200000 nodes"});
}

// x: a step of 0.5 each; 100 lies beyond what int8 holds. The gradient of the scale is that of learned steps: what rounding
// added, in steps, and the greatest number where values are cut off.
TEST(Gradient, QuantisingCountsAsTheIdentity) {
  const Session s = open(
      "input x: float32[3]\n"
      "input s: float32[]\n"
      "input w: float32[3]\n"
      "q = QuantizeLinear(x, s)\n"
      "d = DequantizeLinear(q, s)\n"
      "m = Mul(d, w)\n"
      "y = ReduceSum(m)\n"
      "g, h = ai.onnx.preview.training.Gradient(x, s, w) {xs=[\"x\", \"s\"], zs=[\"w\"], y=\"y\"}\n"
      "output g\noutput h\n");
  const NamedValues out = s.run({{"x", Tensor::of<float>({3}, {0.6F, 1.9F, 200.0F})},
                                 {"s", Tensor::scalar<float>(0.5F)},
                                 {"w", Tensor::of<float>({3}, {3, 5, 7})}});
  const auto g = out.tensor("g").values<float>();
  EXPECT_EQ(std::vector<float>(g.begin(), g.end()), (std::vector<float>{3, 5, 0}));
  EXPECT_NEAR(one(out, "h"), 3 * (1 - 1.2F) + 5 * (4 - 3.8F) + 7 * 255, 1e-3);
}

TEST(Gradient, ThroughWeightsInAPackedForm) {
  const Session s = open(
      "opset com.microsoft 1\n"
      "input x: float32[1,16]\n"
      "constant w: uint8[2,1,8] 1 35 99 4 200 6 7 98 3 12 255 4 17 34 51 68\n"
      "constant s: float32[2] 0.25 2\n"
      "y = com.microsoft.MatMulNBits(x, w, s) {K=16, N=2, bits=4, block_size=16}\n"
      "t = ReduceSum(y)\n"
      "g = ai.onnx.preview.training.Gradient(x) {xs=[\"x\"], y=\"t\"}\n"
      "output g\noutput y\n");
  Tensor x(DataType::float32, {1, 16});
  for (std::size_t at = 0; at < 16; ++at) {
    for (std::size_t i = 0; i < 16; ++i) x.mutable_values<float>()[i] = i == at ? 1.0F : 0.0F;
    const NamedValues out = s.run({{"x", x}});
    const auto y = out.tensor("y").values<float>();
    EXPECT_EQ(out.tensor("g").values<float>()[at], y[0] + y[1]);
  }
}

}  // namespace
}  // namespace sdx::session
