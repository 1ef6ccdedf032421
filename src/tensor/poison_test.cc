#include "tensor/poison.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sdx {
namespace {

TEST(PoisonTensor, IsNoNumberOfItsType) {
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
