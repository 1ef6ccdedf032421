#include "compare/values.h"

#include <gtest/gtest.h>

#include <limits>

namespace sdx::compare {
namespace {

const Tolerance kExact{0, 0, 0, 0, 0, "exact"};

Tolerance absolute(double v) { return {0, v, 0, 0, 0, "test"}; }

TEST(Compare, CountsElementsOutsideTheTolerance) {
  const Tensor a = Tensor::of<float>({3}, {1, 2, 100});
  const Tensor b = Tensor::of<float>({3}, {1, 2.5F, 100.5F});
  EXPECT_TRUE(compare_values(a, a, kExact).pass);
  const Comparison c = compare_values(a, b, absolute(0.1));
  EXPECT_FALSE(c.pass);
  EXPECT_EQ(c.differing, 2);
  EXPECT_DOUBLE_EQ(c.max_abs, 0.5);
  EXPECT_DOUBLE_EQ(c.max_rel, 0.005);
  EXPECT_TRUE(compare_values(a, b, absolute(0.5)).pass);
  EXPECT_TRUE(compare_values(a, b, {0.005, 0, 0, 0, 0, ""}).pass);
  EXPECT_EQ(compare_values(a, b, {0, 0, 0.01, 0, 0, ""}).differing, 1);
}

TEST(Compare, KnowsSpecialValues) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor a = Tensor::of<float>({3}, {nan, inf, 1});
  EXPECT_TRUE(compare_values(a, a, kExact).pass);
  EXPECT_FALSE(compare_values(a, Tensor::of<float>({3}, {0, inf, 1}), absolute(100)).pass);
  EXPECT_FALSE(compare_values(a, Tensor::of<float>({3}, {nan, -inf, 1}), absolute(100)).pass);
  EXPECT_FALSE(compare_values(a, Tensor::of<float>({3}, {nan, inf, nan}), absolute(100)).pass);
}

TEST(Compare, WantsTypesAndShapesToAgree) {
  const Tensor a = Tensor::of<float>({2}, {1, 2});
  EXPECT_FALSE(compare_values(a, Tensor::of<double>({2}, {1, 2}), absolute(9)).pass);
  EXPECT_FALSE(compare_values(a, a.reshaped({1, 2}), absolute(9)).pass);
  EXPECT_FALSE(compare_values(a, Value(), absolute(9)).pass);
  EXPECT_TRUE(compare_values(Value(), Value(), kExact).pass);
}

TEST(Compare, SeesLargeIntegersAndText) {
  const std::int64_t big = (std::int64_t{1} << 60) + 1;
  const Tensor a = Tensor::of<std::int64_t>({1}, {big});
  EXPECT_TRUE(compare_values(a, a.clone(), kExact).pass);
  EXPECT_FALSE(compare_values(a, Tensor::of<std::int64_t>({1}, {big - 1}), kExact).pass);
  const Tensor s = Tensor::of<std::string>({1}, {"x"});
  EXPECT_TRUE(compare_values(s, s.clone(), kExact).pass);
  EXPECT_FALSE(compare_values(s, Tensor::of<std::string>({1}, {"y"}), absolute(9)).pass);
}

TEST(Compare, LooksIntoSequencesAndMaps) {
  const auto sequence = [](float v) { return Value(Sequence{DataType::float32, {Tensor::scalar(1.0F), Tensor::scalar(v)}}); };
  EXPECT_TRUE(compare_values(sequence(2), sequence(2), kExact).pass);
  const Comparison c = compare_values(sequence(2), sequence(3), absolute(0.5));
  EXPECT_FALSE(c.pass);
  EXPECT_EQ(c.why.find("item 1: "), 0U);
  const Value a(Map{Tensor::of<std::int64_t>({2}, {1, 2}), Tensor::of<float>({2}, {10, 20})});
  const Value b(Map{Tensor::of<std::int64_t>({2}, {2, 1}), Tensor::of<float>({2}, {20, 10})});
  const Value other(Map{Tensor::of<std::int64_t>({2}, {1, 3}), Tensor::of<float>({2}, {10, 20})});
  EXPECT_TRUE(compare_values(a, b, kExact).pass);
  EXPECT_FALSE(compare_values(a, other, kExact).pass);
}

TEST(Compare, AllowsQuantisationStepsToSpread) {
  Precision p;
  EXPECT_EQ(default_tolerance(p, 0, DataType::uint8).absolute, 0);
  EXPECT_EQ(default_tolerance(p, 0, DataType::float32).scale, 1e-4);
  p.quantizers = 1;
  p.output_step = {0.5};
  EXPECT_EQ(default_tolerance(p, 0, DataType::uint8).absolute, 1);
  EXPECT_EQ(default_tolerance(p, 0, DataType::int64).absolute, 0);
  Tensor a = Tensor::of<float>({10}, std::vector<float>(10, 1.0F));
  Tensor b = a.clone();
  b.mutable_values<float>()[3] = 2.1F;
  EXPECT_FALSE(compare_values(a, b, default_tolerance(p, 0, DataType::float32)).pass);
  p.quantizers = 20;
  EXPECT_TRUE(compare_values(a, b, default_tolerance(p, 0, DataType::float32)).pass);
  for (float& v : b.mutable_values<float>()) v = 2.1F;  // every element two steps off is no rounding
  EXPECT_FALSE(compare_values(a, b, default_tolerance(p, 0, DataType::float32)).pass);
}

}  // namespace
}  // namespace sdx::compare
