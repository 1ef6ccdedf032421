// append_gradients(). Gradient nodes are tested in sessions (src/session/gradient_test.cc), gradients of operators in
// tests/gradients.
#include "passes/expand_gradients.h"

#include <gtest/gtest.h>

#include <array>

#include "base/error.h"
#include "ops/infer.h"
#include "support/graph_text.h"

namespace sdx {
namespace {

Graph inferred(const std::string& text) {
  Graph g = testing::parse_model(text).graph;
  ops::infer_in_place(g);
  return g;
}

TEST(AppendGradients, OneForEveryXAndNoneWhereNothingDepends) {
  Graph g = inferred(
      "input x: float32[2,3]\ninput w: float32[3,4]\ninput other: float32[5]\ny = MatMul(x, w)\nl = ReduceSum(y) "
      "{keepdims=0}\noutput l\n");
  const ValueId l = *g.find("l");
  const std::array<ValueId, 3> xs{*g.find("x"), *g.find("w"), *g.find("other")};
  const std::vector<ValueId> gradients = append_gradients(g, l, xs);
  ASSERT_EQ(gradients.size(), 3U);
  EXPECT_EQ(g.value(gradients[0]).type.str(), "float32[2,3]");
  EXPECT_EQ(g.value(gradients[1]).type.str(), "float32[3,4]");
  EXPECT_EQ(gradients[2], kNoValue);
  EXPECT_EQ(*g.find("l"), l);
  g.verify();
}

TEST(AppendGradients, TheSeedIsTheGradientOfY) {
  Graph g = inferred("input x: float32[4]\ninput dy: float32[4]\ny = Identity(x)\noutput y\n");
  const std::array<ValueId, 1> xs{*g.find("x")};
  GradientOptions options;
  options.seed = *g.find("dy");
  const ValueId gradient = append_gradients(g, *g.find("y"), xs, options)[0];
  EXPECT_EQ(gradient, options.seed);
}

TEST(AppendGradients, IntegersHaveNone) {
  Graph g = inferred("input x: int64[4]\ny = Neg(x)\noutput y\n");
  const std::array<ValueId, 1> xs{*g.find("x")};
  EXPECT_THROW(append_gradients(g, *g.find("y"), xs), Error);
}

}  // namespace
}  // namespace sdx
