// Cases that ONNX's own test data hardly cover: old versions, broken input, empty tensors, types. Expected values were worked out
// by hand or follow from an identity.

#include <gtest/gtest.h>

#include <cmath>

#include "support/single_op.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

using Ints = std::vector<std::int64_t>;

Tensor floats(Shape shape, std::initializer_list<float> values) { return Tensor::of<float>(std::move(shape), values); }

TEST(NnOps, ConvSumsWindows) {
  const Tensor w = floats({1, 1, 3}, {1, 1, 1});
  expect_floats(SingleOp("Conv", 22).with("pads", Ints{1, 1}).checked({ramp({1, 1, 4}), w})[0], {1, 3, 6, 5});
  expect_floats(SingleOp("Conv", 22).checked({ramp({1, 1, 4}), w, floats({1}, {10})})[0], {13, 16});
}

TEST(NnOps, GroupedConvKeepsChannelsApart) {
  const Tensor y = SingleOp("Conv", 22).with("group", std::int64_t{2}).checked({ramp({1, 2, 2}), floats({2, 1, 1}, {1, 10})})[0];
  expect_floats(y, {0, 1, 20, 30});
}

TEST(NnOps, ConvRefusesMismatches) {
  EXPECT_THROW(SingleOp("Conv", 22).checked({ramp({1, 3, 4}), ramp({1, 2, 3})}), Error);
  EXPECT_THROW(SingleOp("Conv", 22).checked({ramp({1, 1, 4}), ramp({1, 1, 3}), ramp({2})}), Error);
  EXPECT_THROW(SingleOp("Conv", 22).checked({ramp({1, 1, 2}), ramp({1, 1, 3})}), Error);
}

TEST(NnOps, EmptyTensors) {
  EXPECT_EQ(SingleOp("Conv", 22).checked({ramp({0, 1, 4}), ramp({2, 1, 3})})[0].shape(), (Shape{0, 2, 2}));
  expect_floats(SingleOp("MatMul", 22).checked({ramp({2, 0}), ramp({0, 3})})[0], {0, 0, 0, 0, 0, 0});
  expect_floats(SingleOp("Gemm", 22).checked({ramp({1, 0}), ramp({0, 2}), floats({2}, {3, 4})})[0], {3, 4});
  EXPECT_EQ(SingleOp("MaxPool", 22).with("kernel_shape", Ints{2}).checked({ramp({0, 1, 4})})[0].shape(), (Shape{0, 1, 3}));
  EXPECT_EQ(SingleOp("LayerNormalization", 22).checked({ramp({2, 0}), ramp({0})})[0].size(), 0);
  // Weights without channels but with a huge kernel must not be walked.
  EXPECT_EQ(SingleOp("ConvTranspose", 22)
                .with("kernel_shape", Ints{1 << 28})
                .checked({ramp({1, 0, 1}), ramp({0, 0, 1 << 28})})[0]
                .size(),
            0);
}

TEST(NnOps, ConvTransposeIsTheAdjointOfConv) {
  const Tensor w = ramp({2, 3, 3, 2}, 0.1F, -0.5F);
  const Tensor x = ramp({1, 3, 7, 6}, 0.05F, -1);
  auto conv = SingleOp("Conv", 22).with("strides", Ints{2, 1}).with("pads", Ints{1, 0, 1, 1});
  auto back = SingleOp("ConvTranspose", 22).with("strides", Ints{2, 1}).with("pads", Ints{1, 0, 1, 1});
  const Tensor y = conv.checked({x, w})[0];
  const Tensor u = ramp(y.shape(), -0.03F, 0.7F);
  const Tensor v = back.checked({u, w})[0];
  ASSERT_EQ(v.shape(), x.shape());
  double left = 0;
  double right = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) left += element_as_double(y, i) * element_as_double(u, i);
  for (std::int64_t i = 0; i < x.size(); ++i) right += element_as_double(x, i) * element_as_double(v, i);
  EXPECT_NEAR(left, right, 1e-4 * std::abs(left));
}

TEST(NnOps, MatMulWrapsIntegers) {
  const Tensor a = Tensor::of<std::int32_t>({1, 2}, {1 << 30, 1 << 30});
  const Tensor b = Tensor::of<std::int32_t>({2, 1}, {2, 3});
  EXPECT_EQ(SingleOp("MatMul", 22).checked({a, b})[0].values<std::int32_t>()[0], 1 << 30);  // 5 * 2^30 modulo 2^32
}

TEST(NnOps, MatMulVectorsAndBatches) {
  EXPECT_EQ(SingleOp("MatMul", 22).checked({ramp({3}), ramp({3})})[0].shape(), Shape{});
  expect_floats(SingleOp("MatMul", 22).checked({ramp({3}), ramp({2, 3, 1})})[0], {5, 14});
  EXPECT_EQ(SingleOp("MatMul", 22).checked({ramp({2, 1, 2, 3}), ramp({4, 3, 5})})[0].shape(), (Shape{2, 4, 2, 5}));
  EXPECT_THROW(SingleOp("MatMul", 22).checked({ramp({2, 3}), ramp({2, 3})}), Error);
  EXPECT_THROW(SingleOp("MatMul", 22).checked({ramp({2, 2, 3}), ramp({3, 3, 2})}), Error);
}

TEST(NnOps, GemmIgnoresCWhenBetaIsZero) {
  const Tensor nan = floats({1}, {std::nanf("")});
  const auto y =
      SingleOp("Gemm", 22).with("beta", 0.0F).with("transB", std::int64_t{1}).checked({ramp({1, 2}), ramp({2, 2}), nan})[0];
  expect_floats(y, {1, 3});
}

TEST(NnOps, GemmBeforeOpset7FlattensA) {
  const auto y =
      SingleOp("Gemm", 6).with("broadcast", std::int64_t{1}).checked({ramp({1, 2, 1}), ramp({2, 1}), floats({1}, {5})})[0];
  expect_floats(y, {6});
}

TEST(NnOps, MaxPoolIndices) {
  auto op = SingleOp("MaxPool", 22).with("kernel_shape", Ints{2, 2});
  const Tensor x = floats({1, 1, 2, 3}, {9, 1, 2, 3, 4, 5});
  const auto rows = op.checked({x}, 2);
  expect_floats(rows[0], {9, 5});
  EXPECT_EQ(to_ints(rows[1]), (Ints{0, 5}));
  EXPECT_EQ(to_ints(op.with("storage_order", std::int64_t{1}).checked({x}, 2)[1]), (Ints{0, 5}));
  const Tensor column = floats({1, 1, 2, 3}, {0, 9, 0, 0, 0, 0});
  EXPECT_EQ(to_ints(op.checked({column}, 2)[1]), (Ints{2, 2}));
}

TEST(NnOps, MaxPoolOfNegativesIgnoresPadding) {
  const Tensor x = Tensor::of<std::int8_t>({1, 1, 2}, {-5, -3});
  const Tensor y = SingleOp("MaxPool", 22).with("kernel_shape", Ints{2}).with("pads", Ints{1, 1}).checked({x})[0];
  EXPECT_EQ(to_ints(y), (Ints{-5, -3, -3}));
}

TEST(NnOps, PoolingSurvivesHugeKernels) {
  const std::int64_t big = (std::int64_t{1} << 31) - 1;
  auto op = SingleOp("AveragePool", 22).with("kernel_shape", Ints{big}).with("pads", Ints{big - 3, 0});
  expect_floats(op.checked({ramp({1, 1, 3})})[0], {1});
}

TEST(NnOps, AveragePoolCountsPaddingOnlyWhenAsked) {
  auto op = SingleOp("AveragePool", 22).with("kernel_shape", Ints{2}).with("pads", Ints{1, 0});
  expect_floats(op.checked({floats({1, 1, 2}, {4, 6})})[0], {4, 5});
  expect_floats(op.with("count_include_pad", std::int64_t{1}).checked({floats({1, 1, 2}, {4, 6})})[0], {2, 5});
}

TEST(NnOps, MaxUnpoolChecksIndices) {
  auto op = SingleOp("MaxUnpool", 22).with("kernel_shape", Ints{2}).with("strides", Ints{2});
  expect_floats(op.checked({floats({1, 1, 2}, {7, 8}), Tensor::of<std::int64_t>({1, 1, 2}, {1, 2})})[0], {0, 7, 8, 0});
  EXPECT_THROW(op.checked({floats({1, 1, 2}, {7, 8}), Tensor::of<std::int64_t>({1, 1, 2}, {1, 4})}), Error);
  EXPECT_THROW(op.checked({floats({1, 1, 2}, {7, 8}), Tensor::of<std::int64_t>({1, 1, 2}, {-1, 2})}), Error);
}

TEST(NnOps, BatchNormalizationTraining) {
  const Tensor one = floats({1}, {1});
  const Tensor zero = floats({1}, {0});
  auto op =
      SingleOp("BatchNormalization", 15).with("training_mode", std::int64_t{1}).with("momentum", 0.5F).with("epsilon", 0.0F);
  const auto y = op.checked({floats({2, 1}, {1, 3}), one, zero, floats({1}, {4}), floats({1}, {3})}, 3);
  expect_floats(y[0], {-1, 1});
  expect_floats(y[1], {3});
  expect_floats(y[2], {2});
}

TEST(NnOps, BatchNormalization7PerActivation) {
  auto op = SingleOp("BatchNormalization", 7).with("spatial", std::int64_t{0}).with("epsilon", 0.0F);
  const Tensor ones = floats({1, 2}, {1, 1});
  const auto y = op.checked({floats({1, 1, 2}, {3, 5}), ones, floats({1, 2}, {0, 10}), ones, floats({1, 2}, {1, 4})})[0];
  expect_floats(y, {2, 12});
}

TEST(NnOps, HalfPrecisionConv) {
  Tensor x(DataType::float16, {1, 1, 3});
  Tensor w(DataType::float16, {1, 1, 2});
  for (std::int64_t i = 0; i < 3; ++i) set_element(x, i, static_cast<double>(i) + 0.5);
  for (std::int64_t i = 0; i < 2; ++i) set_element(w, i, 2);
  const Tensor y = SingleOp("Conv", 22).checked({x, w})[0];
  EXPECT_EQ(y.dtype(), DataType::float16);
  EXPECT_EQ(to_floats(y), (std::vector<float>{4, 8}));
}

TEST(NnOps, GroupNormalizationScaleDependsOnVersion) {
  const Tensor x = ramp({1, 4, 2});
  const auto norm = [](int version) { return SingleOp("GroupNormalization", version).with("num_groups", std::int64_t{2}); };
  EXPECT_EQ(norm(18).checked({x, ramp({2}), ramp({2})})[0].shape(), x.shape());
  EXPECT_THROW(norm(21).checked({x, ramp({2}), ramp({2})}), Error);
  EXPECT_EQ(norm(21).checked({x, ramp({4}), ramp({4})})[0].shape(), x.shape());
}

TEST(NnOps, LstmSequenceLengthsAndOneActivationSet) {
  const Tensor lens = Tensor::of<std::int32_t>({2}, {1, 3});
  auto op = SingleOp("LSTM", 22).with("hidden_size", std::int64_t{2}).with("direction", std::string("bidirectional"));
  op.with("activations", std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"});
  const Tensor x = ramp({3, 2, 1}, 0.1F);
  const auto y = op.checked({x, ramp({2, 8, 1}, 0.1F), ramp({2, 8, 2}, 0.05F), Tensor(), lens}, 3);
  ASSERT_EQ(y[0].shape(), (Shape{3, 2, 2, 2}));
  const auto at = [&](std::int64_t t, std::int64_t d, std::int64_t b) {
    return element_as_double(y[0], ((t * 2 + d) * 2 + b) * 2);
  };
  EXPECT_EQ(at(1, 0, 0), 0);
  EXPECT_EQ(at(2, 1, 0), 0);
  EXPECT_NE(at(2, 0, 1), 0);
  EXPECT_EQ(at(0, 0, 0), element_as_double(y[1], 0));  // the short sequence ends at its first step
  EXPECT_THROW(op.checked({x, ramp({2, 8, 1}), ramp({2, 8, 2}), Tensor(), Tensor::of<std::int32_t>({2}, {1, 4})}, 3), Error);
}

TEST(NnOps, RecurrentLayoutsAgree) {
  for (const char* name : {"GRU", "RNN"}) {
    const std::int64_t gates = name[0] == 'G' ? 3 : 1;
    const Tensor w = ramp({1, gates * 2, 3}, 0.03F, -0.2F);
    const Tensor r = ramp({1, gates * 2, 2}, 0.04F, -0.1F);
    const Tensor x = ramp({4, 1, 3}, 0.1F, -0.5F);
    const auto a = SingleOp(name, 22).with("linear_before_reset", std::int64_t{1}).checked({x, w, r}, 2);
    const auto b = SingleOp(name, 22)
                       .with("linear_before_reset", std::int64_t{1})
                       .with("layout", std::int64_t{1})
                       .checked({x.reshaped({1, 4, 3}), w, r}, 2);
    for (std::int64_t i = 0; i < a[0].size(); ++i) EXPECT_EQ(element_as_double(a[0], i), element_as_double(b[0], i)) << name;
    EXPECT_EQ(b[0].shape(), (Shape{1, 4, 1, 2}));
    EXPECT_EQ(b[1].shape(), (Shape{1, 1, 2}));
  }
}

TEST(NnOps, RecurrentRefusesBadAttributes) {
  const std::vector<Tensor> in{ramp({1, 1, 1}), ramp({1, 1, 1}), ramp({1, 1, 1})};
  EXPECT_THROW(SingleOp("RNN", 22).with("direction", std::string("sideways")).checked(in, 1), Error);
  EXPECT_THROW(SingleOp("RNN", 22).with("activations", std::vector<std::string>{"Magic"}).checked(in, 1), Error);
  EXPECT_THROW(SingleOp("RNN", 22).with("hidden_size", std::int64_t{3}).checked(in, 1), Error);
  EXPECT_THROW(SingleOp("LSTM", 22).checked(in, 1), Error);
}

}  // namespace
}  // namespace sdx::ops
