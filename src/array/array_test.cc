#include <sdx/array.hpp>

#include <gtest/gtest.h>

namespace mx = sdx::array;

TEST(Array, ComputesWhenItIsRead) {
  const mx::array a({1.0F, 2.0F, 3.0F});
  const mx::array b = mx::add(mx::multiply(a, a), mx::array(1.0F));
  EXPECT_FALSE(b.is_evaluated());
  EXPECT_EQ(b.shape(), sdx::Shape{3});
  const auto values = b.data<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), (std::vector<float>{2, 5, 10}));
  EXPECT_TRUE(b.is_evaluated());
}

TEST(Array, SumsAndShapes) {
  const mx::array a({1.0F, 2.0F, 3.0F, 4.0F}, {2, 2});
  EXPECT_EQ(mx::sum(a).item<float>(), 10);
  const auto rows = mx::sum(a, std::vector<int>{-1});
  EXPECT_EQ(rows.shape(), sdx::Shape{2});
  EXPECT_EQ(rows.data<float>()[1], 7);
  EXPECT_THROW(mx::reshape(a, {3, 2}), sdx::Error);
}

TEST(Array, LongChainsNeedNoStack) {
  mx::array a(0.0F);
  for (int i = 0; i < 100'000; ++i) a = mx::add(a, mx::array(1.0F));
  EXPECT_EQ(a.item<float>(), 100'000);
}
