#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runner/compare.h"
#include "runner/facts.h"
#include "runner/random_input.h"
#include "runner/shapes.h"
#include "runner/statistics.h"
#include "tensor/element.h"

namespace sdx {
namespace {

TEST(Statistics, MatchesHandCalculation) {
  const Statistics s = summarize({4, 1, 3, 2, 5});
  EXPECT_EQ(s.latencies_ms, (std::vector<double>{4, 1, 3, 2, 5}));
  EXPECT_DOUBLE_EQ(s.mean_ms, 3);
  EXPECT_DOUBLE_EQ(s.std_ms, std::sqrt(2.5));
  EXPECT_DOUBLE_EQ(s.p50_ms, 3);
  EXPECT_DOUBLE_EQ(s.p90_ms, 4.6);
  EXPECT_DOUBLE_EQ(s.min_ms, 1);
  EXPECT_DOUBLE_EQ(s.max_ms, 5);
  EXPECT_DOUBLE_EQ(s.coefficient_of_variation, std::sqrt(2.5) / 3);
  EXPECT_DOUBLE_EQ(summarize({7}).p99_ms, 7);
  EXPECT_DOUBLE_EQ(summarize({7}).std_ms, 0);
  EXPECT_DOUBLE_EQ(summarize({}).mean_ms, 0);
}

const Tolerance kExact{0, 0, 0, 0, 0, "exact"};

Tolerance absolute(double v) { return {0, v, 0, 0, 0, "test"}; }

TEST(Compare, CountsElementsOutsideTheTolerance) {
  const Tensor a = Tensor::of<float>({3}, {1, 2, 100});
  const Tensor b = Tensor::of<float>({3}, {1, 2.5F, 100.5F});
  EXPECT_TRUE(compare(a, a, kExact).pass);
  const Comparison c = compare(a, b, absolute(0.1));
  EXPECT_FALSE(c.pass);
  EXPECT_EQ(c.differing, 2);
  EXPECT_DOUBLE_EQ(c.max_abs, 0.5);
  EXPECT_DOUBLE_EQ(c.max_rel, 0.005);
  EXPECT_TRUE(compare(a, b, absolute(0.5)).pass);
  EXPECT_TRUE(compare(a, b, {0.005, 0, 0, 0, 0, ""}).pass);
  EXPECT_EQ(compare(a, b, {0, 0, 0.01, 0, 0, ""}).differing, 1);
}

TEST(Compare, KnowsSpecialValues) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor a = Tensor::of<float>({3}, {nan, inf, 1});
  EXPECT_TRUE(compare(a, a, kExact).pass);
  EXPECT_FALSE(compare(a, Tensor::of<float>({3}, {0, inf, 1}), absolute(100)).pass);
  EXPECT_FALSE(compare(a, Tensor::of<float>({3}, {nan, -inf, 1}), absolute(100)).pass);
  EXPECT_FALSE(compare(a, Tensor::of<float>({3}, {nan, inf, nan}), absolute(100)).pass);
}

TEST(Compare, WantsTypesAndShapesToAgree) {
  const Tensor a = Tensor::of<float>({2}, {1, 2});
  EXPECT_FALSE(compare(a, Tensor::of<double>({2}, {1, 2}), absolute(9)).pass);
  EXPECT_FALSE(compare(a, a.reshaped({1, 2}), absolute(9)).pass);
  EXPECT_FALSE(compare(a, Value(), absolute(9)).pass);
  EXPECT_TRUE(compare(Value(), Value(), kExact).pass);
}

TEST(Compare, SeesLargeIntegersAndText) {
  const std::int64_t big = (std::int64_t{1} << 60) + 1;
  const Tensor a = Tensor::of<std::int64_t>({1}, {big});
  EXPECT_TRUE(compare(a, a.clone(), kExact).pass);
  EXPECT_FALSE(compare(a, Tensor::of<std::int64_t>({1}, {big - 1}), kExact).pass);
  const Tensor s = Tensor::of<std::string>({1}, {"x"});
  EXPECT_TRUE(compare(s, s.clone(), kExact).pass);
  EXPECT_FALSE(compare(s, Tensor::of<std::string>({1}, {"y"}), absolute(9)).pass);
}

TEST(Compare, LooksIntoSequencesAndMaps) {
  const auto sequence = [](float v) { return Value(Sequence{DataType::float32, {Tensor::scalar(1.0F), Tensor::scalar(v)}}); };
  EXPECT_TRUE(compare(sequence(2), sequence(2), kExact).pass);
  const Comparison c = compare(sequence(2), sequence(3), absolute(0.5));
  EXPECT_FALSE(c.pass);
  EXPECT_EQ(c.why.find("item 1: "), 0U);
  const Value a(Map{Tensor::of<std::int64_t>({2}, {1, 2}), Tensor::of<float>({2}, {10, 20})});
  const Value b(Map{Tensor::of<std::int64_t>({2}, {2, 1}), Tensor::of<float>({2}, {20, 10})});
  const Value other(Map{Tensor::of<std::int64_t>({2}, {1, 3}), Tensor::of<float>({2}, {10, 20})});
  EXPECT_TRUE(compare(a, b, kExact).pass);
  EXPECT_FALSE(compare(a, other, kExact).pass);
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
  EXPECT_FALSE(compare(a, b, default_tolerance(p, 0, DataType::float32)).pass);
  p.quantizers = 20;
  EXPECT_TRUE(compare(a, b, default_tolerance(p, 0, DataType::float32)).pass);
  for (float& v : b.mutable_values<float>()) v = 2.1F;  // every element two steps off is no rounding
  EXPECT_FALSE(compare(a, b, default_tolerance(p, 0, DataType::float32)).pass);
}

TEST(RandomInput, IsRepeatable) {
  const Tensor a = random_tensor(DataType::float32, {100}, 1);
  const Tensor b = random_tensor(DataType::float32, {100}, 1);
  const Tensor c = random_tensor(DataType::float32, {100}, 2);
  EXPECT_EQ(to_floats(a), to_floats(b));
  EXPECT_NE(to_floats(a), to_floats(c));
  for (const float v : to_floats(a)) EXPECT_TRUE(v >= 0 && v <= 1);
  for (const std::int64_t v : to_ints(random_tensor(DataType::int64, {100}, 3))) EXPECT_TRUE(v >= 0 && v < 10);
  EXPECT_EQ(random_tensor(DataType::string, {2}, 0).values<std::string>()[0].size(), 1U);
}

TEST(RandomInput, FillsOpenExtents) {
  ValueSpec spec;
  spec.has_shape = true;
  spec.shape = {-1, 3, -1};
  spec.symbols = {"batch", "", ""};
  EXPECT_EQ(concrete_shape(spec, {{"batch", 4}}), (Shape{4, 3, 1}));
  spec.has_shape = false;
  EXPECT_EQ(concrete_shape(spec, {}), (Shape{1}));
}

TEST(Facts, CountsOperations) {
  Graph g;
  const ValueId x = g.add_input("x", Type::tensor(DataType::float32, {1, 3, 8, 8}));
  const ValueId w = g.add_constant("w", Tensor(DataType::float32, {16, 3, 3, 3}));
  const ValueId y = g.add_value("y", Type::tensor(DataType::float32, {1, 16, 6, 6}));
  const ValueId unknown = g.add_value("z");
  Node conv;
  conv.op_type = "Conv";
  conv.inputs = {x, w};
  conv.outputs = {y};
  EXPECT_EQ(node_flops(g, conv), 2LL * 16 * 6 * 6 * 27);
  Node attention;
  attention.op_type = "Attention";
  attention.inputs = {g.add_input("q", Type::tensor(DataType::float32, {1, 5, 8})),
                      g.add_input("k", Type::tensor(DataType::float32, {1, 2, 7, 4})),
                      g.add_input("v", Type::tensor(DataType::float32, {1, 2, 7, 4})), kNoValue,
                      g.add_input("past", Type::tensor(DataType::float32, {1, 2, 3, 4}))};
  attention.outputs = {g.add_value("attended", Type::tensor(DataType::float32, {1, 5, 8}))};
  EXPECT_EQ(node_flops(g, attention), 2 * 10 * (5 * 8 + 5 * 8));
  Node relu;
  relu.op_type = "Relu";
  relu.inputs = {y};
  relu.outputs = {y};
  EXPECT_EQ(node_flops(g, relu), 16 * 6 * 6);
  relu.op_type = "Reshape";
  EXPECT_EQ(node_flops(g, relu), 0);
  relu.op_type = "Relu";
  relu.outputs = {unknown};
  EXPECT_EQ(node_flops(g, relu), -1);
}

}  // namespace
}  // namespace sdx
