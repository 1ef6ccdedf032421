#include <gtest/gtest.h>

#include <cmath>

#include "support/single_op.h"

namespace sdx::ops {
namespace {

using testing::elements;
using testing::make_node;
using testing::run_op;

constexpr const char* kMs = "com.microsoft";

TEST(GroupQueryAttention, AppendsToTheCacheAndAttendsToIt) {
  Node n = make_node(kMs, "GroupQueryAttention", 1, 7, 3);
  n.attributes.set("num_heads", std::int64_t{2});
  n.attributes.set("kv_num_heads", std::int64_t{1});
  n.attributes.set("scale", 1.0F);
  // Both query heads score the cached key 0 and the new key ln 3: weights 1/4 and 3/4.
  const float ln3 = std::log(3.0F);
  const auto out =
      run_op(n, {Tensor::of<float>({1, 1, 2}, {1, 1}), Tensor::of<float>({1, 1, 1}, {ln3}), Tensor::of<float>({1, 1, 1}, {8}),
                 Tensor::of<float>({1, 1, 1, 1}, {0}), Tensor::of<float>({1, 1, 1, 1}, {4}), Tensor::of<std::int32_t>({1}, {1}),
                 Tensor::scalar<std::int32_t>(2)});
  EXPECT_NEAR(elements<float>(out[0])[0], 7, 1e-5);
  EXPECT_NEAR(elements<float>(out[0])[1], 7, 1e-5);
  EXPECT_EQ(elements<float>(out[2]), (std::vector<float>{4, 8}));
}

TEST(GroupQueryAttention, RefusesLengthsOutsideTheCache) {
  Node n = make_node(kMs, "GroupQueryAttention", 1, 7, 1);
  n.attributes.set("num_heads", std::int64_t{1});
  n.attributes.set("kv_num_heads", std::int64_t{1});
  const Tensor x = Tensor::of<float>({1, 1, 1}, {1});
  const auto run = [&](std::int32_t last, std::int32_t total) {
    return run_op(n, {x, x, x, Value(), Value(), Tensor::of<std::int32_t>({1}, {last}), Tensor::scalar<std::int32_t>(total)});
  };
  EXPECT_NO_THROW(run(0, 1));
  EXPECT_THROW(run(1, 1), Error);   // longer than the total
  EXPECT_THROW(run(-1, 1), Error);  // nothing at all
  EXPECT_THROW(run(1, 2), Error);   // a cached row, but no cache
}

TEST(MatMulNBits, UnpacksLowNibblesFirst) {
  Node n = make_node(kMs, "MatMulNBits", 1, 4, 1);
  n.attributes.set("K", std::int64_t{16});
  n.attributes.set("N", std::int64_t{1});
  n.attributes.set("bits", std::int64_t{4});
  n.attributes.set("block_size", std::int64_t{16});
  Tensor a(DataType::float32, {1, 16});
  for (int i = 0; i < 16; ++i) a.mutable_values<float>()[static_cast<std::size_t>(i)] = i < 2 ? static_cast<float>(i + 1) : 0.0F;
  Tensor b(DataType::uint8, {1, 1, 8});
  for (auto& v : b.mutable_values<std::uint8_t>()) v = 0;
  b.mutable_values<std::uint8_t>()[0] = 0xC9;  // weights 9 and 12
  const Tensor scale = Tensor::of<float>({1, 1}, {0.5F});
  // Without zero points 8 stands for 0: 1 * 0.5 + 2 * 2.
  EXPECT_EQ(elements<float>(run_op(n, {a, b, scale, Value()})[0]), (std::vector<float>{4.5F}));
  // Zero point 2: 1 * 3.5 + 2 * 5.
  EXPECT_EQ(elements<float>(run_op(n, {a, b, scale, Tensor::of<std::uint8_t>({1, 1}, {2})})[0]), (std::vector<float>{13.5F}));
}

TEST(MatMulNBits, RefusesWeightsAndGroupsThatDoNotFit) {
  Node n = make_node(kMs, "MatMulNBits", 1, 5, 1);
  n.attributes.set("K", std::int64_t{16});
  n.attributes.set("N", std::int64_t{1});
  n.attributes.set("block_size", std::int64_t{16});
  const Tensor a(DataType::float32, {1, 16}), scale = Tensor::of<float>({1, 1}, {1});
  EXPECT_THROW(run_op(n, {a, Tensor(DataType::uint8, {1, 1, 7}), scale, Value(), Value()}), Error);
  Tensor groups(DataType::int32, {16});
  for (auto& g : groups.mutable_values<std::int32_t>()) g = 1;
  EXPECT_THROW(run_op(n, {a, Tensor(DataType::uint8, {1, 1, 8}), scale, Value(), groups}), Error);
}

TEST(RotaryEmbedding, RotatesHalvesOrNeighbours) {
  Node n = make_node(kMs, "RotaryEmbedding", 1, 4, 1);
  const Tensor x = Tensor::of<float>({1, 1, 4}, {1, 2, 3, 4});
  const Tensor at = Tensor::of<std::int64_t>({1}, {1});
  // Row 1 turns by 90 degrees.
  const Tensor cos = Tensor::of<float>({2, 2}, {1, 1, 0, 0}), sin = Tensor::of<float>({2, 2}, {0, 0, 1, 1});
  EXPECT_EQ(elements<float>(run_op(n, {x, at, cos, sin})[0]), (std::vector<float>{-3, -4, 1, 2}));
  n.attributes.set("interleaved", std::int64_t{1});
  EXPECT_EQ(elements<float>(run_op(n, {x, at, cos, sin})[0]), (std::vector<float>{-2, 1, -4, 3}));
  EXPECT_THROW(run_op(n, {x, Tensor::of<std::int64_t>({1}, {2}), cos, sin}), Error);
}

TEST(MultiHeadAttention, MasksAreAdditive) {
  Node n = make_node(kMs, "MultiHeadAttention", 1, 5, 1);
  n.attributes.set("num_heads", std::int64_t{1});
  const Tensor q = Tensor::of<float>({1, 1, 1}, {0}), k = Tensor::of<float>({1, 2, 1}, {5, 7});
  const Tensor v = Tensor::of<float>({1, 2, 1}, {2, 4});
  const auto run = [&](const Tensor& mask) { return elements<float>(run_op(n, {q, k, v, Value(), mask})[0]); };
  EXPECT_EQ(run(Tensor::of<std::int32_t>({1, 2}, {1, 0})), (std::vector<float>{2}));
  EXPECT_EQ(run(Tensor::of<std::int32_t>({1}, {1})), (std::vector<float>{2}));
  EXPECT_EQ(run(Tensor::of<std::int32_t>({1, 2}, {0, 0})), (std::vector<float>{3}));  // all alike: an average, not zero
  EXPECT_THROW(run(Tensor::of<std::int32_t>({1, 3}, {0, 0, 0})), Error);
}

TEST(Attention, RowsThatSeeNothingAreZero) {
  Node n = make_node("", "Attention", 24, 4, 1);
  const Tensor q = Tensor::of<float>({1, 1, 2, 1}, {0, 0}), v = Tensor::of<float>({1, 1, 2, 1}, {2, 4});
  const auto out = run_op(n, {q, q, v, Tensor::of<bool>({2, 2}, {false, false, true, true})});
  EXPECT_EQ(elements<float>(out[0]), (std::vector<float>{0, 3}));
}

TEST(Attention, Version25WindowsLimitBothSides) {
  Node n = make_node("", "Attention", 25, 3, 1);
  n.attributes.set("left_window_size", std::int64_t{1});
  n.attributes.set("right_window_size", std::int64_t{0});
  const Tensor q = Tensor::of<float>({1, 1, 3, 1}, {0, 0, 0}), v = Tensor::of<float>({1, 1, 3, 1}, {2, 4, 8});
  EXPECT_EQ(elements<float>(run_op(n, {q, q, v})[0]), (std::vector<float>{2, 3, 6}));
}

TEST(Attention, RefusesInputsThatDoNotFit) {
  const Node n = make_node("", "Attention", 24, 3, 1);
  const Tensor q(DataType::float32, {1, 2, 1, 4}), k(DataType::float32, {1, 3, 1, 4}), wide(DataType::float32, {1, 2, 1, 8});
  EXPECT_THROW(run_op(n, {q, k, k}), Error);     // 2 query heads on 3 key heads
  EXPECT_THROW(run_op(n, {q, wide, q}), Error);  // keys longer than queries
  const Tensor flat(DataType::float32, {1, 1, 4});
  EXPECT_THROW(run_op(n, {flat, flat, flat}), Error);  // no head counts
}

TEST(RemovePadding, RestorePaddingUndoesIt) {
  const Tensor x = Tensor::of<float>({2, 2, 1}, {1, 9, 2, 3});
  const auto packed = run_op(make_node(kMs, "RemovePadding", 1, 2, 4), {x, Tensor::of<std::int32_t>({2}, {1, 2})});
  EXPECT_EQ(elements<float>(packed[0]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(elements<std::int32_t>(packed[1]), (std::vector<std::int32_t>{0, 2, 3, 1}));
  EXPECT_EQ(elements<std::int32_t>(packed[2]), (std::vector<std::int32_t>{0, 1, 3}));
  const auto restored = run_op(make_node(kMs, "RestorePadding", 1, 2, 1), {packed[0], packed[1]});
  EXPECT_EQ(elements<float>(restored[0]), (std::vector<float>{1, 0, 2, 3}));
}

}  // namespace
}  // namespace sdx::ops
