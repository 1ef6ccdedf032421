#include <gtest/gtest.h>

#include <limits>

#include "ops/quant/quant_codec.h"
#include "support/single_op.h"

namespace sdx::ops {
namespace {

template <class T>
Tensor tensor(Shape shape, std::initializer_list<T> v) {
  return Tensor::of<T>(std::move(shape), v);
}
template <class T>
std::vector<T> list(const Tensor& t) {
  const auto v = t.values<T>();
  return {v.begin(), v.end()};
}
using Bytes = std::vector<std::uint8_t>;

TEST(Requantize, RoundsHalfToEvenAndSaturates) {
  const QuantRange u8 = quant_range(DataType::uint8);
  EXPECT_EQ(requantize(0.5F, 0, u8), 0);
  EXPECT_EQ(requantize(1.5F, 0, u8), 2);
  EXPECT_EQ(requantize(2.5F, 10, u8), 12);
  EXPECT_EQ(requantize(-0.5F, 128, u8), 128);
  EXPECT_EQ(requantize(1e30F, 7, u8), 255);
  EXPECT_EQ(requantize(-std::numeric_limits<float>::infinity(), 7, u8), 0);
  EXPECT_EQ(requantize(std::numeric_limits<float>::quiet_NaN(), 7, u8), 0);
  EXPECT_EQ(requantize(40000.0F, -5, quant_range(DataType::int16)), 32767);
}

TEST(QuantizeLinear, PerAxisUsesEachScale) {
  const Tensor y =
      SingleOp("QuantizeLinear", 13)
          .with("axis", std::int64_t{0})
          .run({tensor<float>({2, 2}, {1, 2, 1, 2}), tensor<float>({2}, {1, 0.5F}), tensor<std::uint8_t>({2}, {0, 10})});
  EXPECT_EQ(list<std::uint8_t>(y), (Bytes{1, 2, 12, 14}));
}

TEST(QuantizeLinear, BlocksMayEndShort) {
  // Three elements in blocks of two: the second scale serves one element.
  const Tensor y =
      SingleOp("QuantizeLinear", 21)
          .with("axis", std::int64_t{1})
          .with("block_size", std::int64_t{2})
          .run({tensor<float>({1, 3}, {4, 4, 4}), tensor<float>({1, 2}, {1, 2}), tensor<std::uint8_t>({1, 2}, {0, 0})});
  EXPECT_EQ(list<std::uint8_t>(y), (Bytes{4, 4, 2}));
}

TEST(QuantizeLinear, PackedTargetsComeBack) {
  const Tensor x = tensor<float>({5}, {-9, -8, -1.5F, 3, 100});
  const Tensor scale = Tensor::scalar(1.0F);
  const Tensor q = SingleOp("QuantizeLinear", 21).with("output_dtype", std::int64_t{22}).run({x, scale});
  EXPECT_EQ(q.dtype(), DataType::int4);
  EXPECT_EQ(q.bytes(), 3U);
  const Tensor y = SingleOp("DequantizeLinear", 21).run({q, scale});
  EXPECT_EQ(list<float>(y), (std::vector<float>{-8, -8, -2, 3, 7}));
}

TEST(QuantizeLinear, RefusesScalesThatDoNotFit) {
  SingleOp op("QuantizeLinear", 13);
  EXPECT_THROW(op.run({tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6}), tensor<float>({2}, {1, 1})}), Error);
  EXPECT_THROW(SingleOp("QuantizeLinear", 21)
                   .with("block_size", std::int64_t{-1})
                   .run({tensor<float>({2}, {1, 2}), tensor<float>({1}, {1})}),
               Error);
}

TEST(DequantizeLinear, Int32DifferencesDoNotOverflow) {
  const std::int32_t top = std::numeric_limits<std::int32_t>::max();
  const Tensor y = SingleOp("DequantizeLinear", 10)
                       .run({tensor<std::int32_t>({1}, {top}), Tensor::scalar(1.0F), Tensor::scalar<std::int32_t>(-top)});
  EXPECT_EQ(list<float>(y)[0], 4294967296.0F);
}

TEST(DynamicQuantizeLinear, ZerosHaveScaleOne) {
  const auto out = SingleOp("DynamicQuantizeLinear", 11).run_all({tensor<float>({2}, {0, 0})}, 3);
  EXPECT_EQ(list<float>(out[1])[0], 1.0F);
  EXPECT_EQ(list<std::uint8_t>(out[2])[0], 0);
}

TEST(MatMulInteger, ZeroPointsPerColumn) {
  // (255 - 5) * (-128 - 100): beyond what 16-bit saturating products, as on AVX2 without VNNI, would give.
  const Tensor a = tensor<std::uint8_t>({1, 2}, {255, 255});
  const Tensor b = tensor<std::int8_t>({2, 2}, {-128, 1, -128, 2});
  const Tensor y = SingleOp("MatMulInteger", 10).run({a, b, Tensor::scalar<std::uint8_t>(5), tensor<std::int8_t>({2}, {100, 0})});
  EXPECT_EQ(list<std::int32_t>(y), (std::vector<std::int32_t>{2 * 250 * -228, 750}));
}

TEST(MatMulInteger, EmptyInnerAxisGivesZeros) {
  const Tensor y = SingleOp("MatMulInteger", 10).run({Tensor(DataType::uint8, {2, 0}), Tensor(DataType::uint8, {0, 3})});
  EXPECT_EQ(list<std::int32_t>(y), std::vector<std::int32_t>(6, 0));
}

TEST(QLinearConv, PaddingIsTheZeroPointAndBiasCounts) {
  // One 3x1 kernel of ones over {11, 12} with zero point 10: sums 3, 3 with one padded tap each; plus bias 4.
  const Tensor x = tensor<std::uint8_t>({1, 1, 2}, {11, 12});
  const Tensor w = tensor<std::int8_t>({1, 1, 3}, {1, 1, 1});
  const Tensor one = Tensor::scalar(1.0F);
  const Tensor y = SingleOp("QLinearConv", 10)
                       .with("pads", std::vector<std::int64_t>{1, 1})
                       .run({x, one, Tensor::scalar<std::uint8_t>(10), w, one, Tensor::scalar<std::int8_t>(0),
                             Tensor::scalar(2.0F), Tensor::scalar<std::uint8_t>(1), tensor<std::int32_t>({1}, {4})});
  EXPECT_EQ(list<std::uint8_t>(y), (Bytes{5, 5}));  // 7 / 2 = 3.5, to even 4, plus 1
}

TEST(QLinearConv, ChannelsLastIsTheSameConvolution) {
  const Tensor first = tensor<std::uint8_t>({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor last = tensor<std::uint8_t>({1, 3, 2}, {1, 4, 2, 5, 3, 6});
  const Tensor w = tensor<std::uint8_t>({2, 2, 1}, {1, 2, 3, 1});
  const Tensor one = Tensor::scalar(1.0F);
  const Tensor zero = Tensor::scalar<std::uint8_t>(0);
  const Tensor a = SingleOp("QLinearConv", 10).run({first, one, zero, w, one, zero, one, zero});
  const Tensor b = SingleOp("QLinearConv", 1, "com.microsoft")
                       .with("channels_last", std::int64_t{1})
                       .run({last, one, zero, w, one, zero, one, zero});
  EXPECT_EQ(list<std::uint8_t>(a), (Bytes{9, 12, 15, 7, 11, 15}));
  EXPECT_EQ(list<std::uint8_t>(b), (Bytes{9, 7, 12, 11, 15, 15}));
}

TEST(QLinearAdd, BroadcastsAndRequantises) {
  const Tensor half = Tensor::scalar(0.5F);
  const Tensor zero = Tensor::scalar<std::uint8_t>(0);
  const Tensor y = SingleOp("QLinearAdd", 1, "com.microsoft")
                       .run({tensor<std::uint8_t>({2, 2}, {2, 4, 6, 250}), half, zero, tensor<std::uint8_t>({2}, {2, 8}), half,
                             zero, half, zero});
  EXPECT_EQ(list<std::uint8_t>(y), (Bytes{4, 12, 8, 255}));
}

}  // namespace
}  // namespace sdx::ops
