#include "text/embed/pooling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sdx/error.hpp>

namespace sdx::text {
namespace {

// Three tokens of two numbers, and one of padding.
const std::vector<float> kTokens{1, -2, 3, 4, 5, -6, 100, 100};

std::vector<float> pooled(const std::vector<Pooling>& modes, TokenRange range) {
  std::vector<float> out(modes.size() * 2);
  pool(modes, kTokens, 2, range, out);
  return out;
}

TEST(Pooling, EveryMode) {
  EXPECT_EQ(pooled({Pooling::cls}, {0, 3}), (std::vector<float>{1, -2}));
  EXPECT_EQ(pooled({Pooling::max}, {0, 3}), (std::vector<float>{5, 4}));
  EXPECT_EQ(pooled({Pooling::last}, {0, 3}), (std::vector<float>{5, -6}));
  const auto mean = pooled({Pooling::mean}, {0, 3});
  EXPECT_NEAR(mean[0], 3, 1e-6);
  EXPECT_NEAR(mean[1], -4.0 / 3, 1e-6);
  const auto root = pooled({Pooling::mean_sqrt_length}, {0, 3});
  EXPECT_NEAR(root[0], 9 / std::sqrt(3.0), 1e-5);
  const auto weighted = pooled({Pooling::weighted_mean}, {0, 3});
  EXPECT_NEAR(weighted[0], (1 + 2 * 3 + 3 * 5) / 6.0, 1e-6);
}

TEST(Pooling, OneBehindTheOther) { EXPECT_EQ(pooled({Pooling::cls, Pooling::last}, {0, 2}), (std::vector<float>{1, -2, 3, 4})); }

TEST(Pooling, LeavesThePromptOut) {
  EXPECT_EQ(pooled({Pooling::cls}, {1, 2}), (std::vector<float>{3, 4}));
  const auto weighted = pooled({Pooling::weighted_mean}, {1, 2});
  EXPECT_NEAR(weighted[0], (2 * 3 + 3 * 5) / 5.0, 1e-6);
  EXPECT_EQ(pooled({Pooling::mean}, {3, 0}), (std::vector<float>{0, 0}));
}

TEST(Layers, Dense) {
  const Layer layer{Layer::Kind::dense, Tensor::of<float>({1, 2}, {2, -1}), Tensor::of<float>({1}, {0.5F}), Activation::tanh};
  std::vector<float> v{1, 3};
  apply_layer(layer, v);
  ASSERT_EQ(v.size(), 1U);
  EXPECT_NEAR(v[0], std::tanh(2 - 3 + 0.5), 1e-6);
  EXPECT_THROW(apply_layer(layer, v), Error);
}

TEST(Layers, NormsAndActivations) {
  std::vector<float> v{3, 4};
  apply_layer(Layer{.kind = Layer::Kind::normalize}, v);
  EXPECT_NEAR(v[0], 0.6, 1e-6);
  std::vector<float> zero{0, 0};
  apply_layer(Layer{.kind = Layer::Kind::normalize}, zero);
  EXPECT_EQ(zero, (std::vector<float>{0, 0}));
  std::vector<float> w{1, 3};
  apply_layer(
      Layer{Layer::Kind::layer_norm, Tensor::of<float>({2}, {2, 1}), Tensor::of<float>({2}, {0, 1}), Activation::identity, 0}, w);
  EXPECT_NEAR(w[0], -2, 1e-6);
  EXPECT_NEAR(w[1], 2, 1e-6);
  EXPECT_EQ(parse_activation("torch.nn.modules.activation.Tanh"), Activation::tanh);
  EXPECT_THROW(parse_activation("torch.nn.modules.activation.Mish"), Error);
  EXPECT_THROW(parse_pooling("average"), Error);
}

}  // namespace
}  // namespace sdx::text
