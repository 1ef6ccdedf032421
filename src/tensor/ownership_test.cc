#include "tensor/ownership.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sdx {
namespace {

TEST(Ownership, ViewsAreCopiedAtAnyDepth) {
  float memory[2] = {1, 2};
  const Tensor view = Tensor::view(memory, DataType::float32, {2}), own = view.clone();
  EXPECT_FALSE(owns_memory(Value(view)));
  EXPECT_TRUE(owns_memory(Value(own)));
  EXPECT_EQ(owned(Value(own)).tensor().data(), own.data());

  const Value nested = owned(Sequence{DataType::float32, {view, own, Sequence{DataType::float32, {view}}}});
  EXPECT_TRUE(owns_memory(nested));
  EXPECT_EQ(nested.sequence().items[1].tensor().data(), own.data());
  const Value map = owned(Map{Tensor::of<std::int64_t>({2}, {1, 2}), view});
  EXPECT_TRUE(owns_memory(map));
  memory[0] = memory[1] = 9;
  EXPECT_EQ(nested.sequence().items[0].tensor().values<float>()[0], 1);
  EXPECT_EQ(nested.sequence().items[2].sequence().items[0].tensor().values<float>()[1], 2);
  EXPECT_EQ(map.map().values.values<float>()[1], 2);
}

TEST(Ownership, NothingIsOwned) {
  EXPECT_TRUE(owns_memory(Value()));
  EXPECT_TRUE(owned(Value()).empty());
  EXPECT_TRUE(owns_memory(Value(Tensor())));
}

TEST(Ownership, PoisonIsNoNumberOfItsType) {
  Tensor single(DataType::float32, {3}), twice(DataType::float64, {3}), half(DataType::float16, {3}),
      brain(DataType::bfloat16, {3});
  for (Tensor* t : {&single, &twice, &half, &brain}) poison(*t);
  EXPECT_TRUE(std::isnan(single.values<float>()[2]));
  EXPECT_TRUE(std::isnan(twice.values<double>()[2]));
  const auto word = [](const Tensor& t) { return static_cast<const std::uint16_t*>(t.data())[2]; };
  EXPECT_EQ(word(half) & 0x7C00, 0x7C00);
  EXPECT_NE(word(half) & 0x3FF, 0);
  EXPECT_EQ(word(brain) & 0x7F80, 0x7F80);
  EXPECT_NE(word(brain) & 0x7F, 0);
}

}  // namespace
}  // namespace sdx
