#include "providers/cpu/denormals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace sdx::cpu {
namespace {

TEST(Denormals, BecomeZero) {
  constexpr float kLeast = std::numeric_limits<float>::min(), kTiny = std::numeric_limits<float>::denorm_min();
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> given{
      0.0F, -0.0F, kLeast, -kLeast, 1.0F, -3.0F, infinite, -infinite, std::numeric_limits<float>::max()};
  for (const bool tiny : {false, true}) {
    std::vector<float> values = given;
    if (tiny) values.insert(values.end(), {kTiny, -kTiny, kLeast / 2, -kLeast / 2});
    Tensor t(DataType::float32, {static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), t.mutable_values<float>().begin());
    const Tensor out = without_denormals(t);
    EXPECT_EQ(out.data() == t.data(), !tiny);  // no copy without need
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(out.values<float>()[i], i < given.size() ? given[i] : 0.0F) << i;
  }
}

// A hundredth of many, in one channel.
TEST(Denormals, AreFoundAmongMany) {
  Tensor t(DataType::float32, {200, 500});
  const auto x = t.mutable_values<float>();
  std::fill(x.begin(), x.end(), 1.0F);
  std::fill_n(x.begin() + 77 * 500, 1000, 1e-40F);
  const Tensor out = without_denormals(t);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(out.values<float>()[i], x[i] == 1.0F ? 1.0F : 0.0F) << i;
}

TEST(Denormals, NumbersOfOtherTypesStay) {
  Tensor t(DataType::int32, {1});
  t.mutable_values<std::int32_t>()[0] = 1;
  EXPECT_EQ(without_denormals(t).data(), t.data());
}

}  // namespace
}  // namespace sdx::cpu
