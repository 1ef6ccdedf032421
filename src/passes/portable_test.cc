#include "passes/portable.h"

#include <gtest/gtest.h>

#include <set>

#include "ops/infer.h"
#include "support/graph_text.h"

namespace sdx {
namespace {

Graph after(const std::string& text, bool basic = false) {
  Model model = testing::parse_model(text);
  ops::infer_in_place(model.graph);
  optimize_portably(model.graph, {basic, {}, &model.opsets});
  model.graph.verify();
  return std::move(model.graph);
}

std::string ops_of(const Graph& graph) {
  std::string all;
  for (const Node& n : graph.nodes()) all += (all.empty() ? "" : " ") + (n.domain.empty() ? "" : n.domain + ".") + n.op_type;
  return all;
}

const std::string kConv =
    "input x: float32[1,1,4,4]\n"
    "constant w: float32[1,1,1,1] 2\n"
    "a = Conv(x, w)\n";

TEST(Portable, FusesWhatOnnxRuntimeKnows) {
  EXPECT_EQ(ops_of(after(kConv + "y = Relu(a)\noutput y\n")), "com.microsoft.FusedConv");
  EXPECT_EQ(ops_of(after(kConv + "y = Relu(a)\noutput y\n", true)), "Conv Relu");
}

TEST(Portable, RestatesActivationsThatItDoesNotKnow) {
  EXPECT_EQ(ops_of(after(kConv + "y = HardSwish(a)\noutput y\n")), "Conv HardSwish");
  EXPECT_EQ(ops_of(after(kConv + "s = Sigmoid(a)\ny = Mul(a, s)\noutput y\n")), "Conv com.microsoft.QuickGelu");
}

TEST(Portable, OldOpsetsHaveNoHardSwish) {
  const std::string text = "opset 13\n" + kConv + "s = HardSigmoid(a) {alpha=0.16666667}\ny = Mul(a, s)\noutput y\n";
  EXPECT_EQ(ops_of(after(text)), "Conv HardSigmoid Mul");
}

TEST(Portable, NamesDiffer) {
  const Graph g = after("opset 13\n" + kConv + "s = HardSigmoid(a) {alpha=0.16666667}\ny = Mul(a, s)\noutput y\n");
  std::set<std::string> names;
  for (const Node& n : g.nodes()) EXPECT_TRUE(n.name.empty() || names.insert(n.name).second) << n.name;
}

TEST(Portable, LeavesWhatHasNoOtherForm) {
  const std::string matmul = "input x: float32[2,4]\nconstant w: float32[4,1] 1 2 3 4\ny = MatMul(x, w)\noutput y\n";
  EXPECT_EQ(ops_of(after(matmul)), "MatMul");
}

TEST(Portable, WeightsStayInIntegers) {
  const std::string text =
      "input x: float32[2,4]\n"
      "constant q: int8[4,1] 1 2 3 4\n"
      "constant s: float32[] 0.5\n"
      "w = DequantizeLinear(q, s)\n"
      "y = MatMul(x, w)\n"
      "output y\n";
  EXPECT_EQ(ops_of(after(text)), "DequantizeLinear MatMul");
}

}  // namespace
}  // namespace sdx
