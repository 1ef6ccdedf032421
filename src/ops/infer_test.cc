// Inference that is repeated for other input types finds what inference from nothing finds.

#include "ops/infer.h"

#include <gtest/gtest.h>

#include "support/graph_text.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

std::string text_of(const InferResult& r) {
  std::string text;
  for (ValueId v = 0; v < r.types.size(); ++v) {
    text += r.types[v].str();
    if (const auto it = r.values.find(v); it != r.values.end()) {
      text += " =";
      for (std::int64_t i = 0; i < it->second.size(); ++i) text += " " + std::to_string(element_as_double(it->second, i));
    }
    text += "\n";
  }
  return text;
}

// A cache that grows, extents computed from shapes, a branch that captures what changes, and a part that no extent of x reaches.
constexpr const char* kText = R"(
  input x: float32[batch,n,4]
  input past: float32[batch,p,4]
  input c: bool[]
  input other: float32[m]
  constant axis: int64[1] 1
  constant zero: int64[1] 0
  constant four: int64[1] 4
  shape = Shape(x)
  rows = Gather(shape, axis)
  twice = Add(rows, rows)
  halves = Concat(twice, four, zero) {axis=0}
  size = Concat(twice, four) {axis=0}
  ones = ConstantOfShape(size)
  all = Concat(past, x) {axis=1}
  y = If(c)
    then_branch {
      a = Neg(all)
      output a
    }
    else_branch {
      b = Concat(all, all) {axis=1}
      output b
    }
  apart = Relu(other)
  found = NonZero(apart)
  both = Concat(found, found) {axis=1}
  output y
  output ones
  output both
  output halves
)";

std::vector<Type> inputs_of(std::int64_t batch, std::int64_t n, std::int64_t p, std::int64_t m) {
  return {Type::tensor(DataType::float32, to_sym({batch, n, 4})), Type::tensor(DataType::float32, to_sym({batch, p, 4})),
          Type::tensor(DataType::boolean, to_sym({})), Type::tensor(DataType::float32, to_sym({m}))};
}

std::size_t count_changed(const Inference& inference) {
  return static_cast<std::size_t>(std::count(inference.changed().begin(), inference.changed().end(), 1));
}

TEST(Inference, RepeatedFindsWhatInferenceFromNothingFinds) {
  const Model model = sdx::testing::parse_model(kText);
  Inference inference(model.graph);
  const std::int64_t sizes[][4] = {{1, 5, 0, 3},  {1, 5, 5, 3},  {1, 1, 10, 3}, {1, 1, 11, 3},
                                   {1, 1, 11, 3}, {2, 1, 11, 9}, {2, 7, 0, 0},  {1, 5, 0, 3}};
  for (const auto& s : sizes) {
    const std::vector<Type> inputs = inputs_of(s[0], s[1], s[2], s[3]);
    EXPECT_EQ(text_of(inference.update(inputs)), text_of(infer(model.graph, inputs)));
  }
}

TEST(Inference, OnlyWhatDependsOnAChangeIsChanged) {
  const Model model = sdx::testing::parse_model(kText);
  Inference inference(model.graph);
  inference.update(inputs_of(1, 1, 10, 3));
  EXPECT_EQ(count_changed(inference), model.graph.values().size());
  inference.update(inputs_of(1, 1, 10, 3));
  EXPECT_EQ(count_changed(inference), 0U);
  inference.update(inputs_of(1, 1, 11, 3));
  EXPECT_EQ(count_changed(inference), 2U);  // past and all: the branches do not agree on y's extent, however long it is
  inference.update(inputs_of(1, 1, 11, 8));
  EXPECT_EQ(count_changed(inference), 2U);  // other and apart
}

TEST(Inference, AnErrorMakesTheNextCallStartAfresh) {
  const Model model = sdx::testing::parse_model(kText);
  Inference inference(model.graph);
  inference.update(inputs_of(1, 1, 10, 3));
  std::vector<Type> wrong = inputs_of(1, 1, 12, 3);
  wrong[1] = Type::tensor(DataType::float32, to_sym({1, 12}));
  EXPECT_THROW(inference.update(wrong), Error);
  const std::vector<Type> inputs = inputs_of(1, 2, 12, 3);
  EXPECT_EQ(text_of(inference.update(inputs)), text_of(infer(model.graph, inputs)));
}

}  // namespace
}  // namespace sdx::ops
