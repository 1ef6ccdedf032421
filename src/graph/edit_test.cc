#include "graph/edit.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

using Nodes = std::vector<NodeId>;

const Type kFloats = Type::tensor(DataType::float32, {Dim::symbol("n"), 2});

// x -> Neg a -> Relu b -> Abs y
struct Chain {
  Graph g;
  ValueId x = g.add_input("x", kFloats);
  ValueId a = add_node(g, make_node("neg", "Neg", 13, {x}), "a", kFloats);
  ValueId b = add_node(g, make_node("relu", "Relu", 14, {a}), "b");
  ValueId y = add_node(g, make_node("abs", "Abs", 13, {b}), "y");

  Chain() { g.add_output(y); }
};

TEST(GraphEdit, NodesAreAddedWithTheirOutput) {
  Chain c;
  const ValueId z = c.g.add_value("z");
  EXPECT_EQ(add_node(c.g, make_node("t", "Transpose", 13, {c.x}, {{"perm", std::vector<std::int64_t>{1, 0}}}), z), z);
  const ValueId f = add_node(c.g, make_node({}, "Gelu", 1, {z}, {}, "com.microsoft"), "b");
  const Node &t = c.g.node(3), &gelu = c.g.node(4);
  EXPECT_EQ(t.name, "t");
  EXPECT_EQ(t.attributes.get_ints("perm"), (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(c.g.value(z).producer, 3U);
  EXPECT_TRUE(is_op(t, "Transpose"));
  EXPECT_FALSE(is_op(gelu, "Gelu"));
  EXPECT_NE(c.g.value(f).name, "b");
  const ValueId r = add_reshape(c.g, "r", 13, f, "shape", {0, -1}, c.g.add_value("r"));
  const Node* reshape = made_by(c.g, r, "Reshape", 2);
  ASSERT_NE(reshape, nullptr);
  EXPECT_EQ(constant_input(c.g, *reshape, 1)->values<std::int64_t>()[1], -1);
  EXPECT_EQ(made_by(c.g, r, "Reshape", 1), nullptr);
  EXPECT_EQ(made_by(c.g, c.x, "Neg", 1), nullptr);
  EXPECT_EQ(made_by(c.g, f, "Gelu", 1), nullptr);
  c.g.verify();
}

TEST(GraphEdit, ConstantsThatCallersOverrideAreNone) {
  Graph g;
  const ValueId c = g.add_constant("c", Tensor::scalar<float>(2.0F));
  const ValueId open = g.add_input("open", Type::tensor(DataType::float32, SymShape{}));
  g.value(open).constant = Tensor::scalar<float>(3.0F);
  const ValueId held = add_node(g, make_node({}, "Constant", 13, {}, {{"value", Tensor::scalar<float>(4.0F)}}), "held");
  const ValueId numbers = add_node(g, make_node({}, "Constant", 13, {}, {{"value_int", std::int64_t{1}}}), "numbers");
  EXPECT_NE(constant_of(g, c), nullptr);
  EXPECT_EQ(constant_of(g, open), nullptr);
  EXPECT_EQ(constant_of(g, held), nullptr);
  EXPECT_EQ(constant_of(g, kNoValue), nullptr);
  EXPECT_EQ(fixed_value(g, c), constant_of(g, c));
  EXPECT_EQ(fixed_value(g, open), nullptr);
  ASSERT_NE(fixed_value(g, held), nullptr);
  EXPECT_EQ(fixed_value(g, held)->values<float>()[0], 4.0F);
  EXPECT_EQ(fixed_value(g, numbers), nullptr);
  EXPECT_EQ(fixed_value(g, kNoValue), nullptr);
  EXPECT_EQ(scalar_value(g, c), 2.0);
  EXPECT_FALSE(scalar_value(g, open));
}

TEST(GraphEdit, InputsMayBeLeftOut) {
  const Node n = make_node({}, "Clip", 13, {3, kNoValue});
  EXPECT_TRUE(has_input(n, 0));
  EXPECT_FALSE(has_input(n, 1));
  EXPECT_EQ(input_of(n, 2), kNoValue);
}

TEST(GraphEdit, ShapesAreTheSameWhereBothAreKnown) {
  Chain c;
  EXPECT_TRUE(same_shape(c.g, c.x, c.a));
  EXPECT_FALSE(same_shape(c.g, c.a, c.b));
  EXPECT_FALSE(same_shape(c.g, c.b, c.b));
  EXPECT_FALSE(same_shape(c.g, kNoValue, c.x));
  EXPECT_EQ(shape_of(c.g, c.b), nullptr);
  EXPECT_TRUE(is_f32(c.g, c.x));
  EXPECT_FALSE(is_f32(c.g, kNoValue));
}

TEST(GraphEdit, TheOnlyReaderIsNoCallerAndNoSubgraph) {
  Chain c;
  Node branch = make_node({}, "If", 16, {c.g.add_input("p", Type::tensor(DataType::boolean, SymShape{}))});
  branch.subgraphs.resize(1);
  branch.subgraphs[0].captures = {c.b, c.x};
  add_node(c.g, std::move(branch), "i");
  const Readers readers(c.g);
  EXPECT_EQ(readers.of(c.x), (Nodes{0, 3}));
  EXPECT_EQ(readers.only(c.x), kNoNode);
  EXPECT_EQ(readers.only(c.a), 1U);
  EXPECT_EQ(readers.only(c.y), kNoNode);
  EXPECT_TRUE(readers.is_read(c.y));
  const ValueId newer = c.g.add_value("newer");
  EXPECT_TRUE(readers.of(newer).empty());
  EXPECT_EQ(readers.only(newer), kNoNode);
  EXPECT_FALSE(readers.is_read(newer));
  c.g.remove_node(1);
  EXPECT_EQ(readers.only(c.a), kNoNode);
  EXPECT_FALSE(readers.is_read(c.a));
}

TEST(GraphEdit, ReadersFollowWhatIsReplaced) {
  Chain c;
  Readers readers(c.g);
  c.g.remove_node(1);
  readers.replace(c.g, c.b, c.a);
  EXPECT_EQ(readers.of(c.a), (Nodes{1, 2}));  // with the one that is gone
  EXPECT_TRUE(readers.of(c.b).empty());
  EXPECT_EQ(c.g.node(2).inputs, (std::vector<ValueId>{c.a}));
  readers.replace(c.g, c.y, c.x);
  EXPECT_EQ(c.g.outputs(), (std::vector<ValueId>{c.x}));
  EXPECT_EQ(c.g.output_names()[0], "y");
}

TEST(GraphEdit, ReadersTakeInNewNodes) {
  Chain c;
  Readers readers(c.g);
  const ValueId twice = add_node(c.g, make_node({}, "Add", 14, {c.a, c.a}), "twice");
  EXPECT_EQ(readers.of(c.a), (Nodes{1}));
  readers.update();
  readers.update();
  EXPECT_EQ(readers.of(c.a), (Nodes{1, 3}));
  readers.remove_node(c.g, 1);
  EXPECT_EQ(readers.of(c.a), (Nodes{3}));
  EXPECT_TRUE(c.g.node(1).removed);
  readers.clear(c.a);
  readers.add(twice, 2);
  EXPECT_TRUE(readers.of(c.a).empty());
  EXPECT_EQ(readers.only(twice), 2U);
}

TEST(GraphEdit, OutputsAreReplacedAllAtOnce) {
  Chain c;
  c.g.add_output(c.x, "other");
  replace_outputs(c.g, {{c.y, c.x}, {c.x, c.y}});
  EXPECT_EQ(c.g.outputs(), (std::vector<ValueId>{c.x, c.y}));
  EXPECT_EQ(c.g.output_names(), (std::vector<std::string>{"y", "other"}));
}

}  // namespace
}  // namespace sdx
