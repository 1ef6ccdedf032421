#include "project/process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace sdx::project {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<std::int64_t> indices(const std::vector<RankedClass>& classes) {
  std::vector<std::int64_t> out;
  for (const RankedClass& c : classes) out.push_back(c.index);
  return out;
}

TEST(Process, ClassesAreRankedRowByRow) {
  Postprocessing p;
  p.top_k = 2;
  const auto best = ranked(Tensor::of<float>({2, 3}, {1, 3, 2, 9, 7, 8}), p);
  EXPECT_EQ(indices(best), (std::vector<std::int64_t>{1, 2, 0, 2}));
  EXPECT_EQ(best[2].row, 1);
  p.axis = 0;
  EXPECT_EQ(indices(ranked(Tensor::of<float>({2, 3}, {1, 3, 2, 9, 7, 8}), p)), (std::vector<std::int64_t>{1, 0, 1, 0, 1, 0}));
  // If the last extents are 1, the axis before them holds the classes.
  p.axis = -1;
  EXPECT_EQ(indices(ranked(Tensor::of<float>({1, 3, 1, 1}, {1, 3, 2}), p)), (std::vector<std::int64_t>{1, 2}));
  p.axis = 4;
  EXPECT_THROW(ranked(Tensor::of<float>({2}, {1, 2}), p), Error);
}

TEST(Process, NotANumberIsLastAndUnderEveryThreshold) {
  Postprocessing p;
  p.top_k = 3;
  const Tensor scores = Tensor::of<float>({3}, {kNan, -kInfinity, 1});
  EXPECT_EQ(indices(ranked(scores, p)), (std::vector<std::int64_t>{2, 0, 1}));
  p.threshold = -5;
  EXPECT_EQ(indices(ranked(scores, p)), (std::vector<std::int64_t>{2}));
  p.threshold = kNan;
  EXPECT_TRUE(ranked(scores, p).empty());
  EXPECT_TRUE(ranked(Tensor(DataType::float32, {0, 3}), Postprocessing{}).empty());
  EXPECT_TRUE(ranked(Tensor(DataType::float32, {2, 0}), Postprocessing{}).empty());
  EXPECT_THROW(ranked(Tensor::of<std::string>({1}, {std::string("a")}), p), Error);
}

TEST(Process, Activations) {
  Postprocessing p;
  p.activation = Activation::softmax;
  const Tensor s = activated(Tensor::of<float>({2, 2}, {0, 0, 1000, 1001}), p);
  EXPECT_FLOAT_EQ(s.values<float>()[0], 0.5F);
  EXPECT_NEAR(s.values<float>()[3], 1 / (1 + std::exp(-1.0)), 1e-6);
  p.axis = 0;
  EXPECT_NEAR(activated(Tensor::of<float>({2, 1}, {0, 1}), p).values<float>()[1], 1 / (1 + std::exp(-1.0)), 1e-6);
  p.activation = Activation::sigmoid;
  EXPECT_FLOAT_EQ(activated(Tensor::of<float>({1}, {0}), p).values<float>()[0], 0.5F);
  EXPECT_THROW(activated(Tensor::of<std::int64_t>({1}, {3}), p), Error);
}

TEST(Process, RequiredAndLongInputs) {
  ProjectConfig c;
  c.inputs.resize(1);
  c.inputs[0].name = "x";
  c.inputs[0].max_length = 2;
  ValueSpec s;
  s.name = "x";
  EXPECT_THROW(check_inputs(c, {s}, {}), Error);
  check_inputs(c, {s}, {{"x", Tensor::of<float>({2}, {1, 2})}});
  EXPECT_THROW(check_inputs(c, {s}, {{"x", Tensor::of<float>({3}, {1, 2, 3})}}), Error);
  check_inputs(c, {s}, {{"x", Tensor::scalar<std::string>("äö")}});
  EXPECT_THROW(check_inputs(c, {s}, {{"x", Tensor::scalar<std::string>("abc")}}), Error);
  c.inputs[0].required = false;
  check_inputs(c, {s}, {});
}

}  // namespace
}  // namespace sdx::project
