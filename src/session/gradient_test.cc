// Gradient nodes in sessions; the gradients of single operators are tested in tests/gradients.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sdx/session.hpp>

#include "support/errors.h"
#include "support/graph_text.h"
#include "support/session.h"

namespace sdx::session {
namespace {

Session open(const std::string& text) { return testing::open("opset 20\nopset ai.onnx.preview.training 1\n" + text); }

float one(const NamedValues& values, const char* name) { return values.tensor(name).values<float>()[0]; }

void expect_refusal(const std::string& text, const std::vector<std::string>& parts) {
  testing::expect_error([&] { open(text); }, parts);
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

// At a kink, where the slopes of both sides would be right; -0 is like 0.
TEST(Gradient, AtCornersThatOfFrameworksThatTrain) {
  const struct {
    const char* op;
    std::vector<float> slopes;
  } cases[] = {
      {"LeakyRelu(x) {alpha=0.1}", {0.1F, 0.1F, 0.1F, 1}},
      {"Elu(x) {alpha=0.75}", {0.27590958F, 0.75F, 0.75F, 1}},
      {"PRelu(x, s)", {0.25F, 0.25F, 0.25F, 1}},
      {"Relu(x)", {0, 0, 0, 1}},
      {"Selu(x) {alpha=2.0, gamma=1.5}", {1.1036383F, 3, 3, 1.5F}},
      {"Abs(x)", {-1, 0, 0, 1}},
  };
  for (const auto& [op, slopes] : cases) {
    const Session s =
        open(fmt::format("input x: float32[4]\ninput s: float32[1]\ny = {}\n"
                         "g = ai.onnx.preview.training.Gradient(x) {{xs=[\"x\"], y=\"y\"}}\noutput g\n",
                         op));
    const NamedValues out = s.run({{"x", Tensor::of<float>({4}, {-1, -0.0F, 0, 2})}, {"s", Tensor::of<float>({1}, {0.25F})}});
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      EXPECT_FLOAT_EQ(out.tensor("g").values<float>()[i], slopes[i]) << op << ", element " << i;
    }
  }
}

TEST(Gradient, OfPowersAtZero) {
  const Session s = open(
      "input x: float32[4]\ninput e: float32[4]\nconstant none: float32[] 0\na = Pow(x, none)\nb = Pow(x, e)\n"
      "ga = ai.onnx.preview.training.Gradient(x) {xs=[\"x\"], y=\"a\"}\n"
      "gx, ge = ai.onnx.preview.training.Gradient(x, e) {xs=[\"x\", \"e\"], y=\"b\"}\noutput ga\noutput gx\noutput ge\n");
  const NamedValues out = s.run({{"x", Tensor::of<float>({4}, {0, 0, 0, 2})}, {"e", Tensor::of<float>({4}, {0, 1, 2, 0})}});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out.tensor("ga").values<float>()[i], 0) << i;
  const float by_base[] = {0, 1, 0, 0};
  const float by_exponent[] = {0, 0, 0, std::log(2.0F)};
  for (int i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(out.tensor("gx").values<float>()[i], by_base[i]) << i;
  for (int i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(out.tensor("ge").values<float>()[i], by_exponent[i]) << i;
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

// Attention as exporters write it. mask: what comes between the scores and Softmax; no_nan: rows that see nothing become zeros.
struct AttentionCase {
  const char* mask;
  bool no_nan;
};
constexpr const char* kMaskConstants =
    "constant see: bool[3,5] 1 1 0 1 1 0 0 0 0 0 1 0 0 1 0\n"
    "constant add: float32[3,5] 0 0 -inf 0 0 -inf -inf -inf -inf -inf 0 -inf -inf 0 -inf\n"
    "constant least: float32[3,5] 0 0 -3.4028235e38 0 0 -3.4028235e38 -3.4028235e38 -3.4028235e38 -3.4028235e38 -3.4028235e38"
    " 0 -3.4028235e38 -3.4028235e38 0 -3.4028235e38\n"
    "constant low: float32[] -3.4028235e38\nconstant none: float32[] -inf\nconstant zero: float32[] 0\n"
    "constant half: float32[] 0.5\nconstant w: float32[3,4] 1 -2 3 0.5 -1 2 0.25 -3 2 1 -0.5 4\n";
constexpr AttentionCase kAttentions[] = {{"m = Identity(b)\n", false},
                                         {"m = Add(b, add)\n", false},
                                         {"m = Add(b, least)\n", false},
                                         {"m = Where(see, b, low)\n", false},
                                         {"m = Where(see, b, none)\n", true},
                                         {"m = Add(b, add)\n", true},
                                         {"c = Add(b, least)\nm = Where(see, c, low)\n", false}};

constexpr const char* kAttentionGradient =
    "t = Tanh(y)\nu = Mul(t, w)\nl = ReduceSum(u) {keepdims=0}\n"
    "dq, dk, dv = ai.onnx.preview.training.Gradient(q, k, v) {xs=[\"q\", \"k\", \"v\"], y=\"l\"}\n"
    "output y\noutput dq\noutput dk\noutput dv\n";

std::string attention_inputs(const std::array<int, 3>& batch) {
  return fmt::format("opset 23\ninput q: float32[{},2,3,4]\ninput k: float32[{},2,5,4]\ninput v: float32[{},2,5,4]\n", batch[0],
                     batch[1], batch[2]) +
         kMaskConstants;
}

std::string attention_by_steps(const std::array<int, 3>& batch, const AttentionCase& c) {
  return attention_inputs(batch) + "kt = Transpose(k) {perm=[0,1,3,2]}\na = MatMul(q, kt)\nb = Mul(a, half)\n" + c.mask +
         "p = Softmax(m) {axis=-1}\n" + (c.no_nan ? "n = IsNaN(p)\nr = Where(n, zero, p)\n" : "r = Identity(p)\n") +
         "y = MatMul(r, v)\n" + kAttentionGradient;
}

NamedValues run_attention(const std::string& text, bool optimize, const NamedValues& inputs) {
  SessionOptions options;
  options.optimize = optimize;
  return testing::open("opset ai.onnx.preview.training 1\n" + text, options).run(inputs);
}

NamedValues attention_values(const std::array<int, 3>& batch, int odd_input, float odd) {
  NamedValues inputs;
  unsigned state = 7;
  for (int i = 0; i < 3; ++i) {
    Tensor t(DataType::float32, {batch[static_cast<std::size_t>(i)], 2, i == 0 ? 3 : 5, 4});
    for (float& x : t.mutable_values<float>()) {
      state = state * 1664525U + 1013904223U;
      x = static_cast<float>(static_cast<int>((state >> 8) % 201) - 100) / 80.0F;
    }
    if (i == odd_input) t.mutable_values<float>()[9] = odd;  // of row 2, which the first query does not see
    inputs.add(std::string(1, "qkv"[i]), std::move(t));
  }
  return inputs;
}

void expect_same(const NamedValues& got, const NamedValues& want) {
  for (const char* name : {"y", "dq", "dk", "dv"}) {
    const auto a = got.tensor(name).values<float>(), b = want.tensor(name).values<float>();
    ASSERT_EQ(got.tensor(name).shape(), want.tensor(name).shape()) << name;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::isnan(b[i])) {
        ASSERT_TRUE(std::isnan(a[i])) << name << " " << i << ": " << a[i];
      } else if (std::isinf(b[i])) {
        ASSERT_EQ(a[i], b[i]) << name << " " << i;
      } else {
        ASSERT_NEAR(a[i], b[i], 1e-4F * (1 + std::fabs(b[i]))) << name << " " << i;
      }
    }
  }
}

// With passes and without: masks of every form, rows that see nothing, a batch of one in Q, K or V, and special numbers.
TEST(Gradient, OfAttentionWhateverIsHidden) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& batch : {std::array{2, 2, 2}, {1, 2, 2}, {2, 1, 1}, {2, 1, 2}, {2, 2, 1}}) {
    for (const AttentionCase& c : kAttentions) {
      const std::string text = attention_by_steps(batch, c);
      for (const auto& [input, odd] : {std::pair{-1, 0.0F}, {1, kNan}, {1, kInf}, {2, kNan}, {2, kInf}, {0, kNan}}) {
        SCOPED_TRACE(fmt::format("batches {} {} {}, {}, {} in input {}", batch[0], batch[1], batch[2], c.mask, odd, input));
        const NamedValues inputs = attention_values(batch, input, odd);
        expect_same(run_attention(text, true, inputs), run_attention(text, false, inputs));
      }
    }
  }
}

// The operator's rows that see nothing are zeros, and give no gradient.
TEST(Gradient, OfTheAttentionOperatorsHiddenRows) {
  const std::array batch{2, 2, 2};
  const NamedValues inputs = attention_values(batch, -1, 0);
  const NamedValues want = run_attention(attention_by_steps(batch, {"m = Where(see, b, none)\n", true}), false, inputs);
  for (const char* node : {"y = Attention(q, k, v, see) {scale=0.5}\n", "y = Attention(q, k, v, add) {scale=0.5}\n"}) {
    for (const bool optimize : {true, false}) {
      SCOPED_TRACE(node);
      expect_same(run_attention(attention_inputs(batch) + node + kAttentionGradient, optimize, inputs), want);
    }
  }
}

}  // namespace
}  // namespace sdx::session
