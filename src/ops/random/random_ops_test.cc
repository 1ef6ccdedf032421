#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/single_op.h"

namespace sdx::ops {
namespace {

using Ints = std::vector<std::int64_t>;

std::vector<float> draw(const char* op, float seed) {
  SingleOp o(op, 22);
  o.with("shape", Ints{100000}).with("seed", seed);
  const Tensor t = o.run({});
  const auto v = t.values<float>();
  return {v.begin(), v.end()};
}

void expect_moments(const std::vector<float>& v, double mean, double variance) {
  double sum = 0;
  double squares = 0;
  for (const float x : v) {
    sum += static_cast<double>(x);
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  const double m = sum / static_cast<double>(v.size());
  EXPECT_NEAR(m, mean, 0.02);  // 5 standard errors and more
  EXPECT_NEAR(squares / static_cast<double>(v.size()) - m * m, variance, 0.03);
}

TEST(Random, MomentsAndSeeds) {
  expect_moments(draw("RandomNormal", 1), 0, 1);
  expect_moments(draw("RandomUniform", 1), 0.5, 1.0 / 12);
  EXPECT_EQ(draw("RandomNormal", 7), draw("RandomNormal", 7));
  EXPECT_NE(draw("RandomNormal", 7), draw("RandomNormal", 8));
}

TEST(Random, RefusesBadAttributes) {
  SingleOp shape("RandomNormal", 22);
  shape.with("shape", Ints{-1});
  EXPECT_THROW(shape.infer({}), Error);
  SingleOp huge("RandomNormal", 22);
  huge.with("shape", Ints{INT64_MAX, INT64_MAX});
  EXPECT_THROW(huge.infer({}), Error);
  SingleOp type("RandomUniform", 22);
  type.with("shape", Ints{1}).with("dtype", std::int64_t{8});
  EXPECT_THROW(type.infer({}), Error);
}

TEST(Random, MultinomialFollowsTheWeights) {
  SingleOp op("Multinomial", 22);
  op.with("sample_size", std::int64_t{20000}).with("seed", 3.0F);
  const float never = -std::numeric_limits<float>::infinity();
  const Tensor y = op.run({Tensor::of<float>({1, 3}, {std::log(3.0F), never, std::log(1.0F)})});
  int counts[3] = {0, 0, 0};
  for (const std::int32_t k : y.values<std::int32_t>()) ++counts[k];
  EXPECT_NEAR(counts[0], 15000, 400);
  EXPECT_EQ(counts[1], 0);
}

TEST(Dropout, ScalesWhatItKeeps) {
  const Tensor x = Tensor::of<float>({4}, {1, 1, 1, 1});
  SingleOp op("Dropout", 13);
  op.with("seed", std::int64_t{5});
  const auto out = op.run_all({x, Tensor::scalar(0.75F), Tensor::scalar(true)}, 2);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(out[0].values<float>()[i], out[1].values<bool>()[i] ? 4.0F : 0.0F);
  const auto inference = op.run_all({x, Tensor::scalar(0.75F)}, 2);
  EXPECT_EQ(inference[0].values<float>()[0], 1.0F);
  EXPECT_TRUE(inference[1].values<bool>()[3]);
  EXPECT_THROW(op.run({x, Tensor::scalar(1.0F), Tensor::scalar(true)}), Error);
}

TEST(Dropout, InferenceMasksBeforeVersion12AreZero) {
  const Tensor x = Tensor::of<float>({2}, {3, 4});
  const auto ten = SingleOp("Dropout", 10).run_all({x}, 2);
  EXPECT_EQ(ten[0].values<float>()[1], 4.0F);
  EXPECT_FALSE(ten[1].values<bool>()[0] || ten[1].values<bool>()[1]);
  EXPECT_EQ(SingleOp("Dropout", 7).run_all({x}, 2)[1].values<float>()[0], 0.0F);
}

}  // namespace
}  // namespace sdx::ops
