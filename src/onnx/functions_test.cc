#include "onnx/functions.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/errors.h"
#include "support/proto.h"

namespace sdx {
namespace {

using namespace testing;

Model inlined(const Strings& nodes, const std::vector<FunctionParts>& functions) {
  GraphParts p = relu_parts();
  p.nodes = nodes;
  ModelParts parts;
  parts.opsets.push_back(opset("my", 1));
  for (const FunctionParts& f : functions) parts.functions.push_back(function(f));
  Model m = read(model(graph(p), parts));
  inline_functions(m);
  m.graph.verify();
  return m;
}

std::string error_of(const Strings& nodes, const std::vector<FunctionParts>& functions) {
  return testing::error_text([&] { inlined(nodes, functions); });
}

TEST(Functions, BodiesReplaceCalls) {
  const FunctionParts inner{"my", "Inner", {"a"}, {"b"}, {}, {}, {node("Neg", {"a"}, {"t"}), node("Abs", {"t"}, {"b"})}};
  const FunctionParts outer{
      "my", "Outer", {"a"}, {"b"}, {}, {}, {node("Inner", {"a"}, {"m"}, {}, "my"), node("Inner", {"m"}, {"b"}, {}, "my")}};
  const Model m = inlined({node("Outer", {"x"}, {"y"}, {}, "my")}, {outer, inner});
  ASSERT_EQ(m.graph.nodes().size(), 4U);
  EXPECT_EQ(m.graph.node(0).op_type, "Neg");
  EXPECT_EQ(m.graph.node(3).op_type, "Abs");
  EXPECT_EQ(m.graph.node(3).version, 17);
  EXPECT_TRUE(m.functions.empty());
}

TEST(Functions, AttributesComeFromTheCallThenTheDefaultThenNowhere) {
  const FunctionParts f{"my",
                        "F",
                        {"a"},
                        {"b"},
                        {"k"},
                        {int_attribute("d", 9)},
                        {node("Op", {"a"}, {"b"}, {reference("from_call", "k", 2), reference("from_default", "d", 2)})}};
  const Model given = inlined({node("F", {"x"}, {"y"}, {int_attribute("k", 4)}, "my")}, {f});
  EXPECT_EQ(given.graph.node(0).attributes.get_int("from_call"), 4);
  EXPECT_EQ(given.graph.node(0).attributes.get_int("from_default"), 9);
  const Model bare = inlined({node("F", {"x"}, {"y"}, {int_attribute("d", 8)}, "my")}, {f});
  EXPECT_FALSE(bare.graph.node(0).attributes.has("from_call"));
  EXPECT_EQ(bare.graph.node(0).attributes.get_int("from_default"), 8);
}

TEST(Functions, GraphAttributesAreHandedOn) {
  const std::string branch = graph({{node("Neg", {"x"}, {"i"})}, {}, {value("i", 1, {2, 3})}, {}, {}, {}});
  const std::string deep =
      graph({{node("If", {"c"}, {"o"}, {reference("then_branch", "g", 5)})}, {}, {value("o", 1, {2, 3})}, {}, {}, {}});
  const FunctionParts f{"my",
                        "F",
                        {"a"},
                        {"b"},
                        {"g"},
                        {},
                        {node("Cast", {"a"}, {"c"}), node("If", {"c"}, {"b"}, {graph_attribute("then_branch", deep)})}};
  const Model m = inlined({node("F", {"x"}, {"y"}, {graph_attribute("g", branch)}, "my")}, {f});
  const Graph& outer = *m.graph.node(1).subgraphs.at(0).graph;
  const Subgraph& inner = outer.node(0).subgraphs.at(0);
  EXPECT_EQ(inner.attribute, "then_branch");
  EXPECT_EQ(inner.captures.size(), 1U);
  EXPECT_EQ(inner.graph->node(0).op_type, "Neg");
}

TEST(Functions, OverrideBuiltInOperators) {
  const FunctionParts relu{"", "Relu", {"a"}, {"b"}, {}, {}, {node("Neg", {"a"}, {"b"})}};
  EXPECT_EQ(inlined({node("Relu", {"x"}, {"y"})}, {relu}).graph.node(0).op_type, "Neg");
}

TEST(Functions, CallsInSubgraphsAndCapturesInBodies) {
  const std::string body = graph({{node("Add", {"a", "a"}, {"o"})}, {}, {value("o", 1, {2, 3})}, {}, {}, {}});
  const FunctionParts f{"my",
                        "F",
                        {"a"},
                        {"b"},
                        {},
                        {},
                        {node("Cast", {"a"}, {"c"}), node("If", {"c"}, {"b"}, {graph_attribute("then_branch", body)})}};
  const std::string branch = graph({{node("F", {"x"}, {"i"}, {}, "my")}, {}, {value("i", 1, {2, 3})}, {}, {}, {}});
  const Model m = inlined({node("Cast", {"x"}, {"c"}), node("If", {"c"}, {"y"}, {graph_attribute("then_branch", branch)})}, {f});
  const Graph& then = *m.graph.node(1).subgraphs[0].graph;
  ASSERT_EQ(then.nodes().size(), 2U);
  EXPECT_EQ(then.node(1).subgraphs[0].captures.size(), 1U);
}

TEST(Functions, InputsMayBeLeftOutOutputsUnusedOrPassedThrough) {
  const FunctionParts f{"my",
                        "F",
                        {"a", "opt"},
                        {"b", "same", "extra"},
                        {},
                        {},
                        {node("Clip", {"a", "opt"}, {"b"}), node("Neg", {"a"}, {"extra"})}};
  FunctionParts g = f;
  g.outputs = {"b", "a"};
  const Model m = inlined({node("F", {"x"}, {"y"}, {}, "my")}, {f});
  EXPECT_EQ(m.graph.node(0).inputs, (std::vector<ValueId>{0, kNoValue}));
  const Model passed = inlined({node("F", {"x"}, {"", "y"}, {}, "my")}, {g});
  EXPECT_EQ(passed.graph.node(2).op_type, "Identity");
}

TEST(Functions, RefusesWhatCannotBeExpanded) {
  const FunctionParts direct{"my", "F", {"a"}, {"b"}, {}, {}, {node("F", {"a"}, {"b"}, {}, "my")}};
  EXPECT_NE(error_of({node("F", {"x"}, {"y"}, {}, "my")}, {direct}).find("calls itself"), std::string::npos);
  const FunctionParts f{"my", "F", {"a"}, {"b"}, {}, {}, {node("G", {"a"}, {"b"}, {}, "my")}};
  const FunctionParts g{"my", "G", {"a"}, {"b"}, {}, {}, {node("F", {"a"}, {"b"}, {}, "my")}};
  EXPECT_NE(error_of({node("F", {"x"}, {"y"}, {}, "my")}, {f, g}).find("calls itself"), std::string::npos);
  const FunctionParts ok{"my", "F", {"a"}, {"b"}, {}, {}, {node("Neg", {"a"}, {"b"})}};
  EXPECT_NE(error_of({node("F", {"x", "x"}, {"y"}, {}, "my")}, {ok}).find("takes 1 inputs"), std::string::npos);
  EXPECT_NE(error_of({node("F", {"x"}, {"y", "z"}, {}, "my")}, {ok}).find("returns 1 outputs"), std::string::npos);
  FunctionParts unmade = ok;
  unmade.nodes = {node("Neg", {"a"}, {"c"})};
  EXPECT_NE(error_of({node("F", {"x"}, {"y"}, {}, "my")}, {unmade}).find("never produced"), std::string::npos);
  EXPECT_NE(error_of({node("F", {"x"}, {"y"}, {}, "my")}, {ok, ok}).find("defined twice"), std::string::npos);
}

// Each function calls the one before it twice: 2^40 nodes from 2 KB.
TEST(Functions, ExponentialExpansionIsStopped) {
  std::vector<FunctionParts> functions{{"my", "F0", {"a"}, {"b"}, {}, {}, {node("Neg", {"a"}, {"b"})}}};
  for (int i = 1; i <= 40; ++i) {
    const std::string callee = "F" + std::to_string(i - 1);
    functions.push_back({"my",
                         "F" + std::to_string(i),
                         {"a"},
                         {"b"},
                         {},
                         {},
                         {node(callee, {"a"}, {"t"}, {}, "my"), node(callee, {"t"}, {"b"}, {}, "my")}});
  }
  EXPECT_NE(error_of({node("F40", {"x"}, {"y"}, {}, "my")}, functions).find("too many nodes"), std::string::npos);
  std::vector<FunctionParts> chain{functions[0]};
  for (int i = 1; i <= 100; ++i) {
    chain.push_back(
        {"my", "F" + std::to_string(i), {"a"}, {"b"}, {}, {}, {node("F" + std::to_string(i - 1), {"a"}, {"b"}, {}, "my")}});
  }
  EXPECT_NE(error_of({node("F100", {"x"}, {"y"}, {}, "my")}, chain).find("nested more than 64"), std::string::npos);
}

// Every node of the function copies the call's attributes: 10^5 integers, or a graph, for each of 10^4 nodes.
TEST(Functions, CopiesOfAttributesAreCounted) {
  const std::string many = message([](auto& w) {
    w.add_string(1, "k");
    const std::vector<std::int64_t> ones(100'000, 1);
    w.add_packed_int64(8, ones.begin(), ones.end());
    w.add_enum(20, 7);
  });
  GraphParts parts{{}, {}, {value("x", 1, {2, 3})}, {}, {}, {}};
  for (int i = 0; i < 1000; ++i) parts.nodes.push_back(node("Neg", {"x"}, {std::to_string(i)}));
  const std::string big = graph_attribute("g", graph(parts));
  FunctionParts f{"my", "F", {"a"}, {"b"}, {"k", "g"}, {}, {node("Neg", {"a"}, {"b"})}};
  FunctionParts g = f;
  for (int i = 0; i < 10'000; ++i) {
    f.nodes.push_back(node("Op", {"a"}, {"o" + std::to_string(i)}, {reference("k", "k", 7)}));
    g.nodes.push_back(node("Op", {"a"}, {"o" + std::to_string(i)}, {reference("g", "g", 5)}));
  }
  EXPECT_NE(error_of({node("F", {"x"}, {"y"}, {many}, "my")}, {f}).find("too much memory"), std::string::npos);
  EXPECT_NE(error_of({node("F", {"x"}, {"y"}, {big}, "my")}, {g}).find("too much memory"), std::string::npos);
}

// A long name of a call is not repeated for every value of the body.
TEST(Functions, NamesOfCallsAreCut) {
  const FunctionParts f{"my", "F", {"a"}, {"b"}, {}, {}, {node("Neg", {"a"}, {"t"}), node("Abs", {"t"}, {"b"})}};
  std::string call = node("F", {"x"}, {"y"}, {}, "my");
  call += message([](auto& w) { w.add_string(3, std::string(1 << 20, 'n')); });
  const Model m = inlined({call}, {f});
  EXPECT_LT(m.graph.value(m.graph.node(0).outputs[0]).name.size(), 100U);
}

}  // namespace
}  // namespace sdx
