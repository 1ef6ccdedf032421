#include "providers/cpu/layout/join_transposes.h"

#include <gtest/gtest.h>

#include "ops/infer.h"
#include "support/graph_text.h"

namespace sdx::cpu {
namespace {

Graph joined(const std::string& text) {
  Graph graph = testing::parse_model(text).graph;
  ops::infer_in_place(graph);
  join_transposes(graph);
  graph.compact();
  ops::infer_in_place(graph);
  return graph;
}

constexpr const char* kInputs = "input a: float32[2,3,4]\ninput b: float32[2,3,5]\n";

TEST(JoinTransposes, ReadsWhatIsTransposed) {
  const Graph g = joined(std::string(kInputs) + "t = Transpose(a) {perm=[0,2,1]}\ny = MatMul(t, b)\noutput y\n");
  ASSERT_EQ(g.nodes().size(), 1U);
  EXPECT_EQ(g.node(0).op_type, "FusedMatMul");
  EXPECT_EQ(g.node(0).attributes.get_int("transA", 0), 1);
  EXPECT_EQ(g.node(0).attributes.get_int("transB", 1), 0);
  EXPECT_EQ(g.value(g.outputs()[0]).type.str(), "float32[2,4,5]");
}

TEST(JoinTransposes, KeepsATransposeThatOthersRead) {
  const Graph g = joined(std::string(kInputs) + "t = Transpose(a) {perm=[0,2,1]}\ny = MatMul(t, b)\noutput y\noutput t\n");
  EXPECT_EQ(g.nodes().size(), 2U);
}

TEST(JoinTransposes, LeavesOtherPermutationsAndConstants) {
  EXPECT_EQ(joined("input a: float32[3,2,4]\ninput b: float32[2,4,5]\nt = Transpose(a) {perm=[1,0,2]}\ny = MatMul(t, b)\n"
                   "output y\n")
                .nodes()
                .size(),
            2U);
  EXPECT_EQ(joined("input a: float32[3,2]\nconstant b: float32[3,2] 1 2 3 4 5 6\nt = Transpose(b)\ny = MatMul(a, t)\noutput y\n")
                .nodes()
                .size(),
            2U);
}

}  // namespace
}  // namespace sdx::cpu
