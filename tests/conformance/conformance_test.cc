#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "conformance/compare.h"
#include "conformance/interpreter.h"
#include "ops/infer.h"

namespace sdx::testing {
namespace {

TEST(Compare, FloatsHaveATolerance) {
  const Tensor a = Tensor::of<float>({3}, {1.0F, NAN, INFINITY});
  EXPECT_EQ(difference(Tensor::of<float>({3}, {1.0005F, NAN, INFINITY}), a), "");
  EXPECT_NE(difference(Tensor::of<float>({3}, {1.01F, NAN, INFINITY}), a), "");
  EXPECT_NE(difference(Tensor::of<float>({3}, {1.0F, 0.0F, INFINITY}), a), "");
  EXPECT_NE(difference(Tensor::of<float>({3}, {1.0F, NAN, -INFINITY}), a), "");
  EXPECT_NE(difference(Tensor::of<float>({1, 3}, {1.0F, NAN, INFINITY}), a), "");
  EXPECT_NE(difference(Tensor::of<double>({3}, {1.0, NAN, INFINITY}), a), "");
}

TEST(Compare, OtherTypesAreExact) {
  EXPECT_NE(difference(Tensor::scalar<std::int64_t>(1'000'000), Tensor::scalar<std::int64_t>(1'000'001)), "");
  EXPECT_NE(difference(Tensor::scalar(true), Tensor::scalar(false)), "");
  EXPECT_NE(difference(Tensor::scalar<std::string>("a"), Tensor::scalar<std::string>("b")), "");
  EXPECT_EQ(difference(Tensor::scalar<std::string>("a"), Tensor::scalar<std::string>("a")), "");
}

TEST(Compare, NestedValues) {
  const auto map = [](std::string first, std::string second, float a, float b) {
    return Value(Map{Tensor::of<std::string>({2}, {std::move(first), std::move(second)}), Tensor::of<float>({2}, {a, b})});
  };
  EXPECT_EQ(difference(map("x", "y", 1, 2), map("y", "x", 2, 1)), "");
  EXPECT_NE(difference(map("x", "y", 1, 2), map("y", "x", 1, 2)), "");
  EXPECT_NE(difference(map("x", "z", 1, 2), map("x", "y", 1, 2)), "");
  const auto sequence = [](std::vector<Value> items) { return Value(Sequence{DataType::float32, std::move(items)}); };
  const Value one = Tensor::scalar(1.0F);
  EXPECT_EQ(difference(sequence({one, one}), sequence({one, one})), "");
  EXPECT_NE(difference(sequence({one}), sequence({one, one})), "");
  EXPECT_NE(difference(sequence({one}), one), "");
  EXPECT_EQ(difference(Value(), Value()), "");
  EXPECT_NE(difference(Value(), one), "");
}

Node node(std::string op, std::vector<ValueId> in, std::vector<ValueId> out) {
  Node n;
  n.op_type = std::move(op);
  n.version = 17;
  n.inputs = std::move(in);
  n.outputs = std::move(out);
  return n;
}

// y = c ? x + w : x - w, where x and w are captured and w is an input with a default.
Graph conditional() {
  const auto branch = [](const char* op) {
    auto g = std::make_unique<Graph>();
    const ValueId x = g->add_input("x", Type::tensor(DataType::float32));
    const ValueId w = g->add_input("w", Type::tensor(DataType::float32));
    const ValueId r = g->add_value("r");
    g->add_node(node(op, {x, w}, {r}));
    g->add_output(r);
    return g;
  };
  Graph g;
  const ValueId c = g.add_input("c", Type::tensor(DataType::boolean, SymShape{}));
  const ValueId x = g.add_input("x", Type::tensor(DataType::float32, {2}));
  const ValueId w = g.add_input("w", Type::tensor(DataType::float32, {2}));
  g.value(w).constant = Tensor::of<float>({2}, {10.0F, 20.0F});
  const ValueId y = g.add_value("y");
  Node n = node("If", {c}, {y});
  for (const auto& [attribute, op] : {std::pair{"then_branch", "Add"}, std::pair{"else_branch", "Sub"}}) {
    Subgraph s;
    s.attribute = attribute;
    s.graph = branch(op);
    s.captures = {x, w};
    n.subgraphs.push_back(std::move(s));
  }
  g.add_node(std::move(n));
  g.add_output(y);
  ops::infer_in_place(g);
  return g;
}

TEST(Interpreter, BranchesCapturesAndDefaults) {
  const Graph g = conditional();
  const Value x = Tensor::of<float>({2}, {1.0F, 2.0F});
  const Value w = Tensor::of<float>({2}, {3.0F, 4.0F});
  const Value yes = Tensor::scalar(true);
  const Value no = Tensor::scalar(false);
  EXPECT_EQ(difference(interpret(g, {yes, x, Value()}).at(0), Tensor::of<float>({2}, {11.0F, 22.0F})), "");
  EXPECT_EQ(difference(interpret(g, {no, x, w}).at(0), Tensor::of<float>({2}, {-2.0F, -2.0F})), "");
  EXPECT_THROW(interpret(g, {yes, x}), Error);
}

}  // namespace
}  // namespace sdx::testing
