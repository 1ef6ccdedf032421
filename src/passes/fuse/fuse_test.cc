
#include <gtest/gtest.h>

#include "base/system/cpu_bf16.h"
#include "ops/infer.h"
#include "passes/pass.h"
#include "support/graph_text.h"

namespace sdx {
namespace {

// The graph after the passes; an empty pass list leaves it as it is.
Graph after(const std::string& text, const std::vector<std::string>& names) {
  Graph graph = testing::parse_model(text).graph;
  ops::infer_in_place(graph);
  for (const std::string& name : names) run_pass(graph, find_pass(name));
  graph.verify();
  return graph;
}

std::string ops_of(const Graph& graph) {
  std::string all;
  for (const Node& n : graph.nodes()) all += (all.empty() ? "" : " ") + (n.domain.empty() ? "" : n.domain + ".") + n.op_type;
  return all;
}

const std::string kConv =
    "input x: float32[1,1,4,4]\n"
    "constant w: float32[1,1,1,1] 2\n"
    "constant low: float32[] 0\n"
    "constant high: float32[] 6\n"
    "constant three: float32[] 3\n"
    "a = Conv(x, w)\n";

std::string fused(const std::string& rest) { return ops_of(after(kConv + rest, {"fuse-silu", "fuse-epilogues"})); }

TEST(FuseEpilogues, ActivationsOfOneReader) {
  for (const char* op :
       {"Relu(a)", "Sigmoid(a)", "Tanh(a)", "LeakyRelu(a) {alpha=0.5}", "HardSigmoid(a)", "Clip(a, low, high)"}) {
    EXPECT_EQ(fused("y = " + std::string(op) + "\noutput y\n"), "com.microsoft.FusedConv") << op;
  }
}

TEST(FuseEpilogues, ParametersMoveAlong) {
  const Graph graph = after(kConv + "y = Clip(a, low, high)\noutput y\n", {"fuse-epilogues"});
  ASSERT_EQ(graph.nodes().size(), 1U);
  EXPECT_EQ(graph.node(0).attributes.get_string("activation"), "Clip");
  EXPECT_EQ(graph.node(0).attributes.get_floats("activation_params"), (std::vector<float>{0, 6}));
  EXPECT_EQ(graph.output_names().at(0), "y");
}

TEST(FuseEpilogues, CrossedBoundsStay) { EXPECT_EQ(fused("y = Clip(a, high, low)\noutput y\n"), "Conv Clip"); }

TEST(FuseEpilogues, ASecondReaderNeedsThePlainResult) {
  EXPECT_EQ(fused("y = Relu(a)\nz = Neg(a)\noutput y\noutput z\n"), "Conv Relu Neg");
  EXPECT_EQ(fused("y = Relu(a)\noutput y\noutput a\n"), "Conv Relu");
}

TEST(FuseEpilogues, ResidualThenActivation) {
  const Graph graph = after(kConv + "b = Add(x, a)\ny = Relu(b)\noutput y\n", {"fuse-epilogues"});
  ASSERT_EQ(ops_of(graph), "com.microsoft.FusedConv");
  EXPECT_EQ(graph.node(0).inputs.size(), 4U);
  EXPECT_EQ(graph.node(0).inputs[2], kNoValue);
  EXPECT_EQ(graph.node(0).inputs[3], graph.inputs()[0]);
}

TEST(FuseEpilogues, ABroadcastAdditionStays) {
  EXPECT_EQ(fused("b = Add(a, three)\noutput b\n"), "Conv Add");
  EXPECT_EQ(fused("b = Add(a, a)\noutput b\n"), "Conv Add");
}

TEST(FuseEpilogues, WrittenOutHardSwish) {
  const std::string chain = "b = Add(a, three)\nc = Clip(b, low, high)\nd = Mul(a, c)\ny = Div(d, high)\noutput y\n";
  EXPECT_EQ(fused(chain), "com.microsoft.FusedConv");
  EXPECT_EQ(fused(chain + "output c\n"), "Conv Add Clip Mul Div");
}

TEST(FuseEpilogues, GemmKeepsItsOwnParameterNames) {
  const Graph graph =
      after("input x: float32[2,2]\nconstant w: float32[2,2] 1 2 3 4\na = Gemm(x, w)\ny = LeakyRelu(a) {alpha=0.5}\noutput y\n",
            {"fuse-epilogues"});
  ASSERT_EQ(ops_of(graph), "com.microsoft.FusedGemm");
  EXPECT_EQ(graph.node(0).attributes.get_float("activation_alpha"), 0.5F);
}

TEST(FuseSilu, BothOrdersOfTheProduct) {
  const std::string head = "input x: float32[2]\ns = Sigmoid(x)\n";
  EXPECT_EQ(ops_of(after(head + "y = Mul(x, s)\noutput y\n", {"fuse-silu"})), "com.microsoft.QuickGelu");
  EXPECT_EQ(ops_of(after(head + "y = Mul(s, x)\noutput y\n", {"fuse-silu"})), "com.microsoft.QuickGelu");
  EXPECT_EQ(ops_of(after(head + "y = Mul(s, x)\noutput y\noutput s\n", {"fuse-silu"})), "Sigmoid Mul");
  EXPECT_EQ(ops_of(after(head + "y = Mul(s, s)\noutput y\n", {"fuse-silu"})), "Sigmoid Mul");
}

TEST(FuseSilu, JoinsTheConvolution) {
  const Graph graph = after(kConv + "s = Sigmoid(a)\ny = Mul(a, s)\noutput y\n", {"fuse-silu", "fuse-epilogues"});
  ASSERT_EQ(ops_of(graph), "com.microsoft.FusedConv");
  EXPECT_EQ(graph.node(0).attributes.get_string("activation"), "Silu");
}

// Where the processor multiplies pairs of bfloat16, products of few weights and of two inputs are for it too.
TEST(WidenHalf, ProductsOfBfloat16) {
  const auto widened = [](const std::string& text) {
    const Graph graph = after(text, {"widen-half"});
    for (const Node& n : graph.nodes()) {
      if (!n.removed && n.op_type != "Cast") return n.domain + "." + n.op_type;
    }
    return std::string();
  };
  const auto inputs = [](const std::string& t, const std::string& w) {
    return "input x: " + t + "[40,6]\n" + w + " w: " + t + "[6,4]" + (w == "input" ? "" : " 1") +
           "\ny = MatMul(x, w)\noutput y\n";
  };
  const std::string product = use_bf16(cpu_isa()) ? "sdx.Linear" : ".MatMul";
  for (const char* w : {"input", "constant"}) {
    EXPECT_EQ(widened(inputs("bfloat16", w)), product) << w;
    EXPECT_EQ(widened(inputs("float16", w)), ".MatMul") << w;
  }
  EXPECT_EQ(widened("input x: bfloat16[2,3,4]\ninput w: bfloat16[2,4,5]\ny = MatMul(x, w)\noutput y\n"), ".MatMul");
}

// Graphs of more than the 128 KiB above which freed memory goes back to the system at once. Reading a pass's pointer from before
// the graph grew then ends the process in every build, not only under sanitizers.
TEST(GrowingGraph, NodesAreReadWhileOthersAreAdded) {
  constexpr int kNodes = 700;
  std::string text = "input x: float32[1,2]\nconstant b: float32[2] 1 2\n";
  std::string last = "x";
  for (int i = 0; i < kNodes; ++i) {
    const std::string next = "v" + std::to_string(i);
    text += next + " = com.microsoft.BiasGelu(" + last + ", b)\n";
    last = next;
  }
  EXPECT_EQ(after(text + "output " + last + "\n", {"split-fused"}).nodes().size(), std::size_t{2 * kNodes});
}

TEST(GrowingGraph, ConstantsAreReadWhileOthersAreAdded) {
  for (int others = 1015; others < 1025; ++others) {  // one of them is where a vector that doubles moves
    std::string text = "input x: uint8[1,2]\nconstant xs: float32[] 0.5\nconstant w: int8[2,2] 1\nconstant ws: float32[] 0.25\n";
    for (int i = 0; i < others; ++i) text += "constant c" + std::to_string(i) + ": float32[] 0\n";
    const Graph graph = after(text +
                                  "a = DequantizeLinear(x, xs)\nc = DequantizeLinear(w, ws)\n"
                                  "y = Gemm(a, c) {transB=1}\noutput y\n",
                              {"qdq-to-integer", "remove-dead"});
    ASSERT_EQ(ops_of(graph), "com.microsoft.QGemm");
    EXPECT_EQ(graph.value(graph.node(0).inputs.at(2)).type.elem, DataType::uint8);
    EXPECT_EQ(graph.value(graph.node(0).inputs.at(5)).type.elem, DataType::int8);
  }
}

}  // namespace
}  // namespace sdx
