#include "train/step/bfloat16.h"

#include <gtest/gtest.h>

#include <map>

#include "ops/infer.h"
#include "support/graph_text.h"

namespace sdx::train {
namespace {

// The number of nodes for each operator.
std::map<std::string, int> operators(const Graph& graph) {
  std::map<std::string, int> count;
  for (const Node& n : graph.nodes()) ++count[n.op_type];
  return count;
}

TEST(Bfloat16, TakesProductsThatAreWorthIt) {
  Model model = sdx::testing::parse_model(
      "opset com.microsoft 1\n"
      "input x: float32[64,96]\ninput y: float32[96,64]\ninput w: float32[96,80]\ninput t: float32[80,96]\ninput b: float32[80]\n"
      "input few: float32[2,96]\ninput stack: float32[4,64,96]\ninput other: float32[4,96,80]\n"
      "a = MatMul(x, w)\n"
      "c = Gemm(y, t, b) {transA=1, transB=1}\n"
      "d = com.microsoft.FusedMatMul(stack, t) {transB=1}\n"
      "e = com.microsoft.FusedMatMul(y, w) {transA=1}\n"
      "small = MatMul(few, w)\nscaled = Gemm(x, w) {alpha=0.5}\nbatch = MatMul(stack, other)\n"
      "output a\noutput c\noutput d\noutput e\noutput small\noutput scaled\noutput batch\n");
  Graph& graph = model.graph;
  ops::infer_in_place(graph);
  const Type before = graph.value(graph.outputs()[2]).type;
  use_bfloat16(graph);
  graph.verify();
  const auto count = operators(graph);
  EXPECT_EQ(count.at("Linear"), 4);
  EXPECT_EQ(count.at("Transpose"), 2);
  EXPECT_EQ(count.at("MatMul"), 2);
  EXPECT_EQ(count.at("Gemm"), 1);
  EXPECT_FALSE(count.contains("FusedMatMul"));
  ops::infer_in_place(graph);
  EXPECT_EQ(graph.value(graph.outputs()[2]).type.str(), before.str());
}

}  // namespace
}  // namespace sdx::train
