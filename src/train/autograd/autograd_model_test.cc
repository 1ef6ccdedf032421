#include "train/autograd/autograd_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "support/graph_text.h"

namespace sdx::train {
namespace {

std::vector<float> floats(const Tensor& t) {
  const auto v = t.values<float>();
  return {v.begin(), v.end()};
}

constexpr const char* kModel =
    "opset 17\n"
    "input x: float32[n,2]\n"
    "input w: float32[2,2]\n"
    "input unused: float32[1]\n"
    "a = MatMul(x, w)\n"
    "y = Relu(a)\n"
    "s = Mul(x, x)\n"
    "k = Shape(x)\n"
    "output y\noutput s\noutput k\n";

TEST(AutogradModel, ForwardAndBackward) {
  AutogradModel model(testing::parse_model(kModel));
  EXPECT_EQ(model.inputs(), (std::vector<std::string>{"x", "w", "unused"}));
  EXPECT_EQ(model.outputs(), (std::vector<std::string>{"y", "s", "k"}));
  EXPECT_FALSE(model.random());
  const Tensor x = Tensor::of<float>({1, 2}, {1, -2});
  const Tensor w = Tensor::of<float>({2, 2}, {3, 4, 1, 5});
  const std::vector<Tensor> inputs{x, w, Tensor::of<float>({1}, {0})};
  std::shared_ptr<const AutogradModel::Kept> kept;
  const std::vector<Tensor> out = model.forward(inputs, {true, true, true}, 0, &kept);
  ASSERT_EQ(out.size(), 3U);
  EXPECT_EQ(floats(out[0]), (std::vector<float>{1, 0}));
  EXPECT_EQ(floats(out[1]), (std::vector<float>{1, 4}));
  ASSERT_NE(kept, nullptr);
  const std::vector<Tensor> gradients{Tensor::of<float>({1, 2}, {10, 20}), Tensor::of<float>({1, 2}, {1, 1})};
  for (int again = 0; again < 2; ++again) {
    const std::vector<Tensor> back = model.backward(*kept, inputs, gradients);
    ASSERT_EQ(back.size(), 3U);
    EXPECT_EQ(floats(back[0]), (std::vector<float>{30 + 2, 10 - 4}));
    EXPECT_EQ(floats(back[1]), (std::vector<float>{10, 0, -20, 0}));
    EXPECT_FALSE(back[2].defined());
  }
}

TEST(AutogradModel, KeepsNothingWhereNoGradientIsWanted) {
  AutogradModel model(testing::parse_model(kModel));
  const std::vector<Tensor> inputs{Tensor::of<float>({1, 2}, {1, -2}), Tensor::of<float>({2, 2}, {3, 4, 1, 5}),
                                   Tensor::of<float>({1}, {0})};
  std::shared_ptr<const AutogradModel::Kept> kept;
  model.forward(inputs, {false, false, false}, 0, &kept);
  EXPECT_EQ(kept, nullptr);
  model.forward(inputs, {false, true, false}, 0, &kept);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(AutogradModel::reads_inputs(*kept), (std::vector<std::size_t>{0}));  // the product's other operand
  EXPECT_EQ(model.programs(), 2U);
}

TEST(AutogradModel, SaysWhichOutputsMustStay) {
  AutogradModel model(testing::parse_model("input x: float32[n]\ny = Tanh(x)\nz = Neg(x)\noutput z\noutput y\n"));
  const std::vector<Tensor> inputs{Tensor::of<float>({1}, {1})};
  std::shared_ptr<const AutogradModel::Kept> kept;
  model.forward(inputs, {true}, 0, &kept);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(AutogradModel::reads_outputs(*kept), (std::vector<std::size_t>{1}));
}

TEST(AutogradModel, EqualGradientsHaveMemoryOfTheirOwn) {
  AutogradModel model(testing::parse_model(
      "input x: float32[2]\ninput a: float32[2]\ninput b: float32[2]\nu = Add(x, a)\ny = Add(u, b)\noutput y\n"));
  const std::vector<Tensor> inputs{Tensor::of<float>({2}, {1, 2}), Tensor::of<float>({2}, {3, 4}),
                                   Tensor::of<float>({2}, {5, 6})};
  std::shared_ptr<const AutogradModel::Kept> kept;
  model.forward(inputs, {true, true, true}, 0, &kept);
  const std::vector<Tensor> gradients{Tensor::of<float>({2}, {7, 8})};
  const std::vector<Tensor> back = model.backward(*kept, inputs, gradients);
  ASSERT_EQ(back.size(), 3U);
  std::set<const void*> places{gradients[0].data()};
  for (const Tensor& t : back) {
    EXPECT_EQ(floats(t), (std::vector<float>{7, 8}));
    EXPECT_TRUE(places.insert(t.data()).second);
  }
}

TEST(AutogradModel, ResultsHaveMemoryOfTheirOwn) {
  AutogradModel model(
      testing::parse_model("input x: float32[2,2]\ny = Relu(x)\nz = Relu(x)\ni = Identity(x)\nv = Flatten(y)\noutput y\noutput "
                           "z\noutput i\noutput v\n"));
  const std::vector<Tensor> inputs{Tensor::of<float>({2, 2}, {1, -2, 3, -4})};
  std::shared_ptr<const AutogradModel::Kept> kept;
  const std::vector<Tensor> out = model.forward(inputs, {true}, 0, &kept);
  std::set<const void*> places{inputs[0].data()};
  for (const Tensor& t : out) EXPECT_TRUE(places.insert(t.data()).second);
  EXPECT_EQ(floats(out[2]), (std::vector<float>{1, -2, 3, -4}));
}

// A value that is kept may be a view of an input: the caller must be told not to change that.
TEST(AutogradModel, SaysWhichInputsMustStayWhereViewsAreKept) {
  AutogradModel model(testing::parse_model("input x: float32[2,2]\nv = Flatten(x)\ny = Mul(v, v)\noutput y\n"));
  const std::vector<Tensor> inputs{Tensor::of<float>({2, 2}, {1, -2, 3, -4})};
  std::shared_ptr<const AutogradModel::Kept> kept;
  model.forward(inputs, {true}, 0, &kept);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(AutogradModel::reads_inputs(*kept), (std::vector<std::size_t>{0}));
}

TEST(AutogradModel, ProgramsFollowShapes) {
  AutogradModel model(testing::parse_model(kModel));
  for (const std::int64_t n : {1, 2, 3, 2, 1}) {
    const std::vector<Tensor> inputs{Tensor::of<float>({n, 2}, std::vector<float>(static_cast<std::size_t>(2 * n), 1)),
                                     Tensor::of<float>({2, 2}, {3, 4, 1, 5}), Tensor::of<float>({1}, {0})};
    const std::vector<Tensor> out = model.forward(inputs, {true, true, false}, 0, nullptr);
    EXPECT_EQ(out[0].shape(), (Shape{n, 2}));
  }
  EXPECT_EQ(model.programs(), 3U);
}

TEST(AutogradModel, StatisticsOfBatchNormalisationAreOutputs) {
  AutogradModel model(
      testing::parse_model("opset 17\n"
                           "input x: float32[n,1]\n"
                           "input s: float32[1]\ninput b: float32[1]\ninput m: float32[1]\ninput v: float32[1]\n"
                           "y = BatchNormalization(x, s, b, m, v) {training_mode=1, momentum=0.75}\n"
                           "output y\n"));
  EXPECT_EQ(model.updates(), (std::vector<std::size_t>{3, 4}));
  const auto one = [](float value) { return Tensor::of<float>({1}, {value}); };
  const std::vector<Tensor> inputs{Tensor::of<float>({4, 1}, {1, 3, 5, 7}), one(1), one(0), one(8), one(2)};
  const std::vector<Tensor> out = model.forward(inputs, std::vector<bool>(5, false), 0, nullptr);
  ASSERT_EQ(out.size(), 3U);
  EXPECT_FLOAT_EQ(floats(out[1])[0], 0.75F * 8 + 0.25F * 4);
  // The variance of the sample: 20 / 3, whereas the population's is 5.
  EXPECT_FLOAT_EQ(floats(out[2])[0], 0.75F * 2 + 0.25F * 20 / 3);
}

// Against differences of the sum of y * g in double.
TEST(AutogradModel, BatchNormalisationInTraining) {
  const std::string text =
      "opset 17\n"
      "input x: float32[n,2,3]\n"
      "input s: float32[2]\ninput b: float32[2]\ninput m: float32[2]\ninput v: float32[2]\n"
      "y = BatchNormalization(x, s, b, m, v) {training_mode=1, momentum=0.9, epsilon=0.01}\n"
      "output y\n";
  AutogradModel model(testing::parse_model(text));
  std::vector<float> x, g;
  for (int i = 0; i < 24; ++i) {
    x.push_back(std::sin(static_cast<float>(i * i)));
    g.push_back(std::cos(static_cast<float>(3 * i)));
  }
  const std::vector<float> scale{0.5F, -2}, bias{1, 3};
  const auto loss = [&](const std::vector<double>& at, const std::vector<double>& s, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t c = 0; c < 2; ++c) {
      double mean = 0, variance = 0;
      const auto each = [&](auto&& f) {
        for (std::size_t n = 0; n < 4; ++n) {
          for (std::size_t i = 0; i < 3; ++i) f((n * 2 + c) * 3 + i);
        }
      };
      each([&](std::size_t i) { mean += at[i] / 12; });
      each([&](std::size_t i) { variance += (at[i] - mean) * (at[i] - mean) / 12; });
      each([&](std::size_t i) { sum += double{g[i]} * ((at[i] - mean) / std::sqrt(variance + 0.01) * s[c] + b[c]); });
    }
    return sum;
  };
  const std::vector<Tensor> inputs{Tensor::of<float>({4, 2, 3}, x), Tensor::of<float>({2}, scale), Tensor::of<float>({2}, bias),
                                   Tensor::of<float>({2}, {0, 0}), Tensor::of<float>({2}, {1, 1})};
  std::shared_ptr<const AutogradModel::Kept> kept;
  model.forward(inputs, {true, true, true, false, false}, 0, &kept);
  const std::vector<Tensor> back = model.backward(*kept, inputs, std::vector<Tensor>{Tensor::of<float>({4, 2, 3}, g)});
  std::vector<std::vector<double>> values{{x.begin(), x.end()}, {scale.begin(), scale.end()}, {bias.begin(), bias.end()}};
  for (std::size_t k = 0; k < 3; ++k) {
    const auto got = floats(back[k]);
    for (std::size_t i = 0; i < values[k].size(); ++i) {
      constexpr double kStep = 1e-5;
      const double kept_value = values[k][i];
      values[k][i] = kept_value + kStep;
      const double above = loss(values[0], values[1], values[2]);
      values[k][i] = kept_value - kStep;
      const double below = loss(values[0], values[1], values[2]);
      values[k][i] = kept_value;
      EXPECT_NEAR(got[i], (above - below) / (2 * kStep), 1e-4) << k << ", " << i;
    }
  }
  // The running statistics are not read: they may change before the backward pass.
  for (const std::size_t i : AutogradModel::reads_inputs(*kept)) EXPECT_LT(i, 3U);
}

TEST(AutogradModel, RefusesWrongInputs) {
  AutogradModel model(testing::parse_model(kModel));
  EXPECT_THROW(model.forward({}, {}, 0, nullptr), Error);
  const std::vector<Tensor> inputs{Tensor::of<double>({1, 2}, {1, -2}), Tensor::of<float>({2, 2}, {3, 4, 1, 5}),
                                   Tensor::of<float>({1}, {0})};
  EXPECT_THROW(model.forward(inputs, {false, false, false}, 0, nullptr), Error);
  // Also where there is a program for such shapes.
  std::vector<Tensor> good = inputs;
  good[0] = Tensor::of<float>({1, 2}, {1, -2});
  std::shared_ptr<const AutogradModel::Kept> kept;
  model.forward(good, {true, true, false}, 0, &kept);
  EXPECT_THROW(model.forward(inputs, {true, true, false}, 0, &kept), Error);
  EXPECT_THROW(model.forward(std::vector<Tensor>{good[0], good[1], Tensor()}, {true, true, false}, 0, &kept), Error);
}

TEST(AutogradModel, RefusesWrongGradients) {
  AutogradModel model(testing::parse_model(kModel));
  const std::vector<Tensor> inputs{Tensor::of<float>({1, 2}, {1, -2}), Tensor::of<float>({2, 2}, {3, 4, 1, 5}),
                                   Tensor::of<float>({1}, {0})};
  std::shared_ptr<const AutogradModel::Kept> kept;
  model.forward(inputs, {true, true, false}, 0, &kept);
  const Tensor good = Tensor::of<float>({1, 2}, {1, 1});
  const auto refused = [&](const std::vector<Tensor>& gradients) {
    EXPECT_THROW(model.backward(*kept, inputs, gradients), Error);
  };
  refused({});
  refused({good});
  refused({good, Tensor()});
  refused({good, Tensor::of<float>({1, 1}, {1})});
  refused({good, Tensor::of<double>({1, 2}, {1, 1})});
  EXPECT_THROW(model.backward(*kept, std::vector<Tensor>{good}, std::vector<Tensor>{good, good}), Error);
  EXPECT_NO_THROW(model.backward(*kept, inputs, std::vector<Tensor>{good, good}));
}

}  // namespace
}  // namespace sdx::train
