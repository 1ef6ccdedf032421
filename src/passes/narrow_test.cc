#include "passes/narrow.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "ops/infer.h"
#include "passes/pass.h"
#include "support/errors.h"
#include "support/graph_text.h"
#include "tensor/types.h"

namespace sdx {
namespace {

struct Narrowed {
  Graph graph;
  NarrowReport report;
  std::string why(const std::string& op) const {
    for (const auto& k : report.kept) {
      if (k.op == op) return k.why;
    }
    return "";
  }
  DataType type(const std::string& value) const {
    const auto v = graph.find(value);
    return v ? graph.value(*v).type.elem : DataType::undefined;
  }
  int count(const std::string& op) const {
    int n = 0;
    for (const Node& node : graph.nodes()) n += !node.removed && node.op_type == op ? 1 : 0;
    return n;
  }
};

Narrowed narrowed(const std::string& text, const NarrowOptions& options = {}) {
  Model m = testing::parse_model(text);
  ops::infer_in_place(m.graph);
  sink_constants(m.graph);
  Narrowed out{{}, narrow(m.graph, m.opsets.at(""), options)};
  m.graph.verify();
  ops::infer_in_place(m.graph);
  out.graph = std::move(m.graph);
  return out;
}

constexpr const char* kDense =
    "input x: float32[2,3]\n"
    "constant w: float32[3,2] 1 2 3 4 5 6\n"
    "constant b: float32[2] 0.5 -0.5\n"
    "p = MatMul(x, w)\n"
    "y = Add(p, b)\n"
    "output y: float32[2,2]\n";

TEST(Narrow, InputsConstantsAndOutputsChangeTheirType) {
  const Narrowed n = narrowed(kDense);
  EXPECT_EQ(n.report.converted, 2);
  EXPECT_EQ(n.report.constants, 2);
  EXPECT_EQ(n.report.casts, 0);
  EXPECT_TRUE(n.report.kept.empty());
  for (const char* name : {"x", "w", "b", "y"}) EXPECT_EQ(n.type(name), DataType::float16) << name;
  const Tensor& w = *n.graph.value(*n.graph.find("w")).constant;
  EXPECT_EQ(half_to_float(static_cast<const std::uint16_t*>(w.data())[5]), 6.0F);
}

TEST(Narrow, KeepIoPutsCastsAtTheEdges) {
  const Narrowed n = narrowed(kDense, {.keep_io = true});
  EXPECT_EQ(n.report.casts, 2);
  EXPECT_EQ(n.type("x"), DataType::float32);
  EXPECT_EQ(n.type("w"), DataType::float16);
  ASSERT_EQ(n.graph.outputs().size(), 1U);
  EXPECT_EQ(n.graph.output_names()[0], "y");
  EXPECT_EQ(n.graph.value(n.graph.outputs()[0]).type.elem, DataType::float32);
}

TEST(Narrow, Bfloat16NeedsItsOpset) {
  const std::string text = std::string("opset 13\n") + kDense;
  const Narrowed n = narrowed(text, {.to = DataType::bfloat16});
  EXPECT_EQ(n.type("y"), DataType::bfloat16);
  EXPECT_THROW(narrowed(std::string("opset 12\n") + kDense, {.to = DataType::bfloat16}), Error);
  EXPECT_THROW(narrowed(kDense, {.to = DataType::float64}), Error);
  // Conv has taken bfloat16 since opset 22.
  const std::string conv =
      "input x: float32[1,1,4,4]\n"
      "constant w: float32[1,1,1,1] 2\n"
      "y = Conv(x, w)\n"
      "output y\n";
  const Narrowed old = narrowed("opset 21\n" + conv, {.to = DataType::bfloat16});
  EXPECT_EQ(old.why("Conv"), "Conv (opset 21) is not defined for bfloat16");
  EXPECT_EQ(narrowed("opset 22\n" + conv, {.to = DataType::bfloat16}).report.converted, 1);
}

TEST(Narrow, SquaresStayUntilTheirRoot) {
  const Narrowed n = narrowed(
      "opset 17\n"
      "input x: float32[2,4]\n"
      "constant two: float32[] 2\n"
      "constant eps: float32[] 1e-12\n"
      "s = Pow(x, two)\n"
      "m = ReduceMean(s) {axes=[-1], keepdims=1}\n"
      "e = Add(m, eps)\n"
      "r = Sqrt(e)\n"
      "y = Div(x, r)\n"
      "output y\n");
  EXPECT_EQ(n.report.kept.size(), 4U);
  EXPECT_EQ(n.type("r"), DataType::float32);
  EXPECT_EQ(n.type("y"), DataType::float16);
  EXPECT_EQ(n.report.casts, 2);   // x before Pow, r behind Sqrt
  EXPECT_EQ(n.report.raised, 0);  // eps is read in float32 alone
  const Narrowed root = narrowed("input x: float32[4]\nconstant h: float32[] 0.5\ny = Pow(x, h)\noutput y\n");
  EXPECT_TRUE(root.report.kept.empty());
  const Narrowed product = narrowed("input x: float32[4]\ny = Mul(x, x)\noutput y\n");
  EXPECT_EQ(product.report.kept.size(), 1U);
}

TEST(Narrow, SingleNumbersAreClippedAndWeightsKept) {
  const Narrowed n = narrowed(
      "input x: float32[2]\n"
      "constant low: float32[] -3.4e38\n"
      "constant tiny: float32[2] 1e-9 1\n"
      "constant none: float32[] -inf\n"
      "constant huge: float32[2] 1e6 1\n"
      "a = Max(x, low)\n"
      "b = Div(a, tiny)\n"
      "c = Max(b, none)\n"
      "y = Mul(c, huge)\n"
      "output y\n");
  const auto value = [&](const char* name, int i) {
    return half_to_float(static_cast<const std::uint16_t*>(n.graph.value(*n.graph.find(name)).constant->data())[i]);
  };
  EXPECT_EQ(value("low", 0), -65504.0F);
  EXPECT_GT(value("tiny", 0), 0.0F);
  EXPECT_TRUE(std::isinf(value("none", 0)));
  EXPECT_EQ(n.report.clipped, 1);
  EXPECT_EQ(n.report.clipped_in, std::vector<std::string>{"low"});
  EXPECT_EQ(n.report.raised_in, std::vector<std::string>{"tiny"});
  EXPECT_EQ(n.why("Mul"), "its constants exceed the range of float16");
  EXPECT_EQ(n.type("huge"), DataType::float32);
}

TEST(Narrow, RatiosAndExtentsStay) {
  const Narrowed n = narrowed(
      "opset 13\n"
      "input x: float32[1,1,h,w]\n"
      "constant scales: float32[4] 1 1 2 2\n"
      "constant half: float32[4] 1 1 0.5 0.5\n"
      "big = Resize(x, _, scales) {mode=\"nearest\"}\n"
      "s = Shape(x)\n"
      "f = Cast(s) {to=1}\n"
      "g = Mul(f, half)\n"
      "i = Cast(g) {to=7}\n"
      "y = Resize(big, _, _, i) {mode=\"nearest\"}\n"
      "output y\n");
  EXPECT_EQ(n.type("scales"), DataType::float32);
  EXPECT_EQ(n.type("g"), DataType::float32);
  EXPECT_EQ(n.why("Mul"), "it computes only with extents");
  EXPECT_EQ(n.type("y"), DataType::float16);
}

TEST(Narrow, AnglesOfPositionsStay) {
  const Narrowed n = narrowed(
      "input ids: int64[1,s]\n"
      "input x: float32[1,s]\n"
      "constant rate: float32[1] 0.37\n"
      "p = Cast(ids) {to=1}\n"
      "a = Mul(p, rate)\n"
      "c = Cos(a)\n"
      "y = Mul(x, c)\n"
      "output y\n");
  EXPECT_EQ(n.type("p"), DataType::float32);
  EXPECT_EQ(n.type("a"), DataType::float32);
  EXPECT_EQ(n.why("Cos"), "large angles need more digits");
  EXPECT_EQ(n.type("y"), DataType::float16);
}

TEST(Narrow, QuantisedArithmeticStaysWhereTheOpsetLacksHalfScales) {
  const std::string body =
      "input x: float32[4]\n"
      "constant s: float32[] 0.1\n"
      "constant z: uint8[] 128\n"
      "q = QuantizeLinear(x, s, z)\n"
      "d = DequantizeLinear(q, s, z)\n"
      "y = Relu(d)\n"
      "output y\n";
  const Narrowed old = narrowed("opset 13\n" + body);
  EXPECT_EQ(old.why("QuantizeLinear"), "QuantizeLinear (opset 13) is not defined for float16");
  EXPECT_EQ(old.why("Relu"), "it computes with dequantised values");
  EXPECT_TRUE(narrowed("opset 19\n" + body).report.kept.empty());
}

TEST(Narrow, SubgraphsAreConvertedInside) {
  const Narrowed n = narrowed(
      "input c: bool[]\n"
      "input x: float32[4]\n"
      "constant k: float32[4] 1 2 3 4\n"
      "h = Relu(x)\n"
      "y = If(c)\n"
      "  then_branch {\n"
      "    t = Add(h, k)\n"
      "    output t\n"
      "  }\n"
      "  else_branch {\n"
      "    e = Neg(h)\n"
      "    output e\n"
      "  }\n"
      "output y\n");
  EXPECT_EQ(n.report.converted, 3);
  EXPECT_EQ(n.why("If"), "values that enter or leave its subgraphs are unchanged");
  EXPECT_EQ(n.graph.value(n.graph.outputs()[0]).type.elem, DataType::float16);
  for (const Node& node : n.graph.nodes()) {
    for (const Subgraph& s : node.subgraphs) {
      EXPECT_EQ(s.graph->value(s.graph->outputs()[0]).type.elem, DataType::float32);
      for (const ValueId v : s.captures) EXPECT_EQ(n.graph.value(v).type.elem, DataType::float32);
    }
  }
}

TEST(Narrow, SequencesStay) {
  const Narrowed n = narrowed(
      "input x: float32[4]\n"
      "r = Relu(x)\n"
      "s = SequenceConstruct(r, r)\n"
      "y = ConcatFromSequence(s) {axis=0}\n"
      "output y\n");
  EXPECT_EQ(n.why("SequenceConstruct"), "it handles sequences or optional values");
  EXPECT_EQ(n.type("r"), DataType::float16);
  EXPECT_EQ(n.graph.value(n.graph.outputs()[0]).type.elem, DataType::float16);
}

TEST(Narrow, AttributesThatSetTheTypeFollow) {
  const Narrowed n = narrowed(
      "opset 17\n"
      "input n: int64[1]\n"
      "input m: int64[3]\n"
      "z = ConstantOfShape(n) {value=float32[1](2.5)}\n"
      "o = ConstantOfShape(n)\n"
      "f = Cast(m) {to=1}\n"
      "a = Add(z, o)\n"
      "y = Add(a, f)\n"
      "r = RandomNormal() {shape=[3]}\n"
      "q = Add(r, f)\n"
      "output y\n"
      "output q\n");
  for (const char* name : {"z", "o", "f", "y", "q"}) EXPECT_EQ(n.type(name), DataType::float16) << name;
  EXPECT_EQ(n.type("r"), DataType::float32);
  EXPECT_EQ(n.report.clipped, 0);
}

TEST(Narrow, WhatUsersNameStays) {
  const Narrowed n = narrowed(kDense, {.keep_ops = {"MatMul"}});
  EXPECT_EQ(n.why("MatMul"), "as asked");
  EXPECT_EQ(n.report.converted, 1);
  testing::expect_error([&] { narrowed(kDense, {.keep_ops = {"MatMull"}}); }, {"did you mean 'MatMul'?"});
  EXPECT_THROW(narrowed(kDense, {.keep_nodes = {"nobody"}}), Error);
}

TEST(Narrow, DefaultsOfInputsAreConverted) {
  const Narrowed n = narrowed("input x: float32[2]\ninput w: float32[2] = 3 4\ny = Mul(x, w)\noutput y\n");
  const ValueInfo& w = n.graph.value(*n.graph.find("w"));
  EXPECT_TRUE(w.is_input);
  ASSERT_TRUE(w.constant);
  EXPECT_EQ(w.constant->dtype(), DataType::float16);
  const Narrowed kept = narrowed("input x: float32[2]\ninput w: float32[2] = 3 4\ny = Mul(x, w)\noutput y\n", {.keep_io = true});
  EXPECT_EQ(kept.graph.value(*kept.graph.find("w")).constant->dtype(), DataType::float32);
}

}  // namespace
}  // namespace sdx
