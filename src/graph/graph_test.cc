#include "graph/graph.h"
#include "support/errors.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

TEST(Dim, EqualExpressionsCompareEqual) {
  const Dim h = Dim::symbol("h");
  const Dim w = Dim::symbol("w");
  EXPECT_EQ(h * w + h, h * (w + 1));
  EXPECT_EQ((h + 3) - h, Dim(3));
  EXPECT_EQ(floor_div(h * 4, 2), h * 2);
  EXPECT_EQ(floor_div(h - 1, 2), floor_div(h - 1, 2));
  EXPECT_FALSE(Dim::unknown() == Dim::unknown());
  EXPECT_EQ((2 * h + 1).str(), "2*h + 1");
  EXPECT_EQ(ceil_div(Dim(7), 2), Dim(4));
}

TEST(Dim, OverflowBecomesUnknown) {
  EXPECT_TRUE((Dim(INT64_MAX) + 1).is_unknown());
  EXPECT_TRUE((Dim(INT64_MAX) * 2).is_unknown());
}

// A file may name its extents as it likes.
TEST(Dim, NamesThatReadLikeExpressionsEqualNone) {
  const Dim n = Dim::symbol("n");
  EXPECT_FALSE(Dim::symbol("min(4, n)") == min(Dim(4), n));
  EXPECT_FALSE(Dim::symbol("max(4, n)") == max(Dim(4), n));
  EXPECT_FALSE(Dim::symbol("floor((n)/(2))") == floor_div(n, 2));
  EXPECT_FALSE(floor_div(Dim::symbol("n + 1"), 2) == floor_div(n + 1, 2));
  EXPECT_FALSE(max(Dim::symbol("n*n"), 2) == max(n * n, 2));
  EXPECT_FALSE(max(Dim::symbol("5"), n) == max(Dim(5), n));
  EXPECT_EQ(floor_div(Dim::symbol("n + 1"), 2), floor_div(Dim::symbol("n + 1"), 2));
  EXPECT_EQ(Dim::symbol("n + 1").str(), "n + 1");
  EXPECT_EQ(Dim::symbol("n + 1").symbol_name(), "n + 1");
  EXPECT_EQ(floor_div(Dim::symbol("n + 1") - 1, 2).str(), "floor((n + 1 - 1)/(2))");
  EXPECT_TRUE(Dim::symbol("n\x01").is_unknown());
}

Node node(std::string op, std::vector<ValueId> in, std::vector<ValueId> out) {
  Node n;
  n.op_type = std::move(op);
  n.version = 17;
  n.inputs = std::move(in);
  n.outputs = std::move(out);
  return n;
}

TEST(Graph, CompactSortsAndDropsTombstones) {
  Graph g;
  const ValueId x = g.add_input("x", Type::tensor(DataType::float32, {2}));
  const ValueId a = g.add_value("a");
  const ValueId b = g.add_value("b");
  g.add_node(node("Relu", {a}, {b}));
  g.add_node(node("Neg", {x}, {a}));
  g.add_output(b);
  EXPECT_THROW(g.verify(), Error);
  g.compact();
  g.verify();
  EXPECT_EQ(g.node(0).op_type, "Neg");
  g.replace_uses(b, a);
  g.remove_node(1);
  g.compact();
  g.drop_unused_values();
  g.verify();
  EXPECT_EQ(g.nodes().size(), 1U);
  EXPECT_EQ(g.output_names()[0], "b");
}

TEST(Graph, ReferencesStayValidWhileItGrows) {
  Graph g;
  const ValueId x = g.add_input("x", Type::tensor(DataType::float32, {2}));
  const ValueId c = g.add_constant("c", Tensor::scalar<float>(1.0F));
  const NodeId first = g.add_node(node("Relu", {x}, {g.add_value("a")}));
  const Node& held = g.node(first);
  const ValueInfo& value = g.value(x);
  const Tensor& constant = *g.value(c).constant;
  for (int i = 0; i < 3000; ++i) g.add_node(node("Neg", {x}, {g.add_value("")}));
  EXPECT_EQ(&held, &g.node(first));
  EXPECT_EQ(&value, &g.value(x));
  EXPECT_EQ(&constant, &*g.value(c).constant);
  const Graph moved = std::move(g);
  EXPECT_EQ(&held, &moved.node(first));
}

TEST(Graph, CyclesAreNamed) {
  Graph g;
  const ValueId a = g.add_value("a");
  const ValueId b = g.add_value("b");
  g.add_node(node("Relu", {a}, {b}));
  g.add_node(node("Neg", {b}, {a}));
  testing::expect_error(ErrorCode::invalid_model, [&] { g.compact(); }, {"cycle"});
}

TEST(Graph, SecondProducerIsRefused) {
  Graph g;
  const ValueId x = g.add_input("x", {});
  const ValueId a = g.add_value("a");
  g.add_node(node("Relu", {x}, {a}));
  EXPECT_THROW(g.add_node(node("Neg", {x}, {a})), Error);
}

}  // namespace
}  // namespace sdx
