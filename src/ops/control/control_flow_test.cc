#include <gtest/gtest.h>

#include "ops/control/slices.h"
#include "ops/infer.h"
#include "support/errors.h"
#include "support/single_op.h"
#include "tensor/types.h"

namespace sdx::ops {
namespace {

using testing::add_signature;
using testing::elements;
using testing::FakeServices;
using testing::make_node;
using testing::run_op;

const Type kCounter = Type::tensor(DataType::int64, {});
const Type kFlag = Type::tensor(DataType::boolean, {});

// Loop with one state float32[1] and one scan output float32[1].
Node loop_node() {
  Node n = make_node("", "Loop", 16, 3, 2);
  const Type f = Type::tensor(DataType::float32, {Dim(1)});
  add_signature(n, "body", {kCounter, kFlag, f}, {kFlag, f, Type::tensor(DataType::float32, {Dim(1)})});
  return n;
}

// state + iteration, also scanned; goes on while the iteration is below `last`.
auto adding_body(std::int64_t last) {
  return [last](std::size_t, std::vector<Value> in) {
    const std::int64_t i = in[0].tensor().values<std::int64_t>()[0];
    const float sum = in[2].tensor().values<float>()[0] + static_cast<float>(i);
    std::vector<Value> out;
    out.emplace_back(Tensor::scalar<bool>(i < last));
    out.emplace_back(Tensor::of<float>({1}, {sum}));
    out.emplace_back(Tensor::of<float>({1}, {sum}));
    return out;
  };
}

TEST(Loop, StopsAtTheTripCountAndStacksScanOutputs) {
  FakeServices services;
  services.body = adding_body(1000);
  const auto out = run_op(loop_node(), {Tensor::scalar<std::int64_t>(4), Value(), Tensor::of<float>({1}, {10})}, services);
  EXPECT_EQ(elements<float>(out[0]), (std::vector<float>{16}));
  EXPECT_EQ(out[1].tensor().shape(), (Shape{4, 1}));
  EXPECT_EQ(elements<float>(out[1]), (std::vector<float>{10, 11, 13, 16}));
}

TEST(Loop, StopsWhenTheConditionTurnsFalse) {
  FakeServices services;
  services.body = adding_body(2);
  const auto out = run_op(loop_node(), {Value(), Tensor::scalar<bool>(true), Tensor::of<float>({1}, {0})}, services);
  EXPECT_EQ(elements<float>(out[1]), (std::vector<float>{0, 1, 3}));
}

TEST(Loop, WithoutIterationsGivesStatesAndEmptyStacks) {
  FakeServices services;
  const Tensor start = Tensor::of<float>({1}, {7});
  const auto out = run_op(loop_node(), {Tensor::scalar<std::int64_t>(0), Value(), start}, services);
  EXPECT_EQ(elements<float>(out[0]), (std::vector<float>{7}));
  EXPECT_EQ(out[1].tensor().shape(), (Shape{0, 1}));
}

TEST(Loop, EndlessLoopsCanBeCancelled) {
  FakeServices services;
  auto cancelled = std::make_shared<std::atomic<bool>>(false);
  services.condition.cancelled = cancelled;
  const auto add = adding_body(std::int64_t{1} << 60);
  services.body = [&](std::size_t index, std::vector<Value> in) {
    if (in[0].tensor().values<std::int64_t>()[0] == 100) *cancelled = true;
    return add(index, std::move(in));
  };
  sdx::testing::error_of(ErrorCode::cancelled, [&] {
    run_op(loop_node(), {Value(), Value(), Tensor::of<float>({1}, {0})}, services);
  });
}

TEST(Loop, EndlessLoopsWithoutATripCountEndWithAnError) {
  Node node = make_node("", "Loop", 16, 3, 1);
  const Type f = Type::tensor(DataType::float32, {Dim(1)});
  add_signature(node, "body", {kCounter, kFlag, f}, {kFlag, f});
  FakeServices services;
  services.body = [](std::size_t, std::vector<Value> in) { return std::vector<Value>{in[1], in[2]}; };
  const Tensor start = Tensor::of<float>({1}, {0});
  sdx::testing::expect_error([&] { run_op(node, {Value(), Value(), start}, services); }, {"trip count"});
}

TEST(Loop, ScanOutputsMustKeepTheirShape) {
  FakeServices services;
  services.body = [](std::size_t, std::vector<Value> in) {
    const std::int64_t i = in[0].tensor().values<std::int64_t>()[0];
    std::vector<Value> out;
    out.emplace_back(Tensor::scalar<bool>(true));
    out.push_back(in[2]);
    out.emplace_back(Tensor(DataType::float32, {i}));
    return out;
  };
  EXPECT_THROW(run_op(loop_node(), {Tensor::scalar<std::int64_t>(3), Value(), Tensor::of<float>({1}, {0})}, services), Error);
}

// A Loop whose body adds a captured [2,1] tensor to its state: the state's shape is another one after the first iteration.
TEST(Loop, InferenceWidensStatesThatChangeTheirShape) {
  Graph g;
  const ValueId trips = g.add_constant("trips", Tensor::scalar<std::int64_t>(2));
  const ValueId start = g.add_input("start", Type::tensor(DataType::float32, {Dim(1), Dim(3)}));
  const ValueId wide = g.add_input("wide", Type::tensor(DataType::float32, {Dim(2), Dim(1)}));
  Node loop = make_node("", "Loop", 16, 0, 0);
  Subgraph body;
  body.attribute = "body";
  body.graph = std::make_unique<Graph>();
  body.graph->add_input("i", {});
  const ValueId go = body.graph->add_input("go", {});
  const ValueId state = body.graph->add_input("state", {});
  const ValueId captured = body.graph->add_input("captured", {});
  const ValueId sum = body.graph->add_value("sum");
  Node add = make_node("", "Add", 14, 0, 0);
  add.inputs = {state, captured};
  add.outputs = {sum};
  body.graph->add_node(std::move(add));
  body.graph->add_output(go);
  body.graph->add_output(sum);
  body.captures = {wide};
  loop.subgraphs.push_back(std::move(body));
  loop.inputs = {trips, kNoValue, start};
  const ValueId result = g.add_value("result");
  loop.outputs = {result};
  g.add_node(std::move(loop));
  g.add_output(result);
  infer_in_place(g);
  EXPECT_EQ(g.value(result).type.str(), "float32[?,3]");
}

TEST(If, RunsTheChosenBranch) {
  Node n = make_node("", "If", 16, 1, 1);
  add_signature(n, "then_branch", {}, {Type::tensor(DataType::float32, {Dim(1)})});
  add_signature(n, "else_branch", {}, {Type::tensor(DataType::float32, {Dim(1)})});
  FakeServices services;
  services.body = [](std::size_t index, const std::vector<Value>&) {
    std::vector<Value> out;
    out.emplace_back(Tensor::of<float>({1}, {index == 0 ? 1.0F : 2.0F}));
    return out;
  };
  EXPECT_EQ(elements<float>(run_op(n, {Tensor::scalar<bool>(true)}, services)[0]), (std::vector<float>{1}));
  EXPECT_EQ(elements<float>(run_op(n, {Tensor::of<bool>({1}, {false})}, services)[0]), (std::vector<float>{2}));
  EXPECT_THROW(run_op(n, {Tensor::of<bool>({2}, {false, true})}, services), Error);
}

// If over two branches that hand out captured values of the given shapes.
std::string inferred_if(std::optional<bool> cond, const SymShape& then_shape, const SymShape& else_shape) {
  Graph g;
  const ValueId flag = cond ? g.add_constant("cond", Tensor::scalar<bool>(*cond)) : g.add_input("cond", kFlag);
  Node n = make_node("", "If", 16, 0, 0);
  n.inputs = {flag};
  int number = 0;
  for (const SymShape* shape : {&then_shape, &else_shape}) {
    const ValueId outer = g.add_input("x" + std::to_string(number), Type::tensor(DataType::float32, *shape));
    Subgraph s;
    s.attribute = number++ == 0 ? "then_branch" : "else_branch";
    s.graph = std::make_unique<Graph>();
    const ValueId in = s.graph->add_input("captured", {});
    Node add = make_node("", "Add", 14, 0, 0);
    add.inputs = {in, in};
    add.outputs = {s.graph->add_value("y")};
    s.graph->add_output(add.outputs[0]);
    s.graph->add_node(std::move(add));
    s.captures = {outer};
    n.subgraphs.push_back(std::move(s));
  }
  const ValueId result = g.add_value("result");
  n.outputs = {result};
  g.add_node(std::move(n));
  g.add_output(result);
  infer_in_place(g);
  return g.value(result).type.str();
}

TEST(If, InferenceKeepsWhatBothBranchesAgreeOn) {
  const SymShape a{Dim(2), Dim(3)}, b{Dim(2), Dim(5)};
  EXPECT_EQ(inferred_if(std::nullopt, a, b), "float32[2,?]");
  EXPECT_EQ(inferred_if(true, a, b), "float32[2,3]");
  EXPECT_EQ(inferred_if(false, a, b), "float32[2,5]");
}

TEST(If, BranchesMustHaveTheNodesOutputs) {
  Graph g;
  Node n = make_node("", "If", 16, 0, 0);
  n.inputs = {g.add_input("cond", kFlag)};
  n.outputs = {g.add_value("a"), g.add_value("b")};
  add_signature(n, "then_branch", {}, {kFlag});
  add_signature(n, "else_branch", {}, {kFlag, kFlag});
  g.add_node(std::move(n));
  EXPECT_THROW(infer_in_place(g), Error);
}

// Scan over axis 1 of [2,3], backwards, stacking the running sums along axis 1 backwards too.
TEST(Scan, HonoursAxesAndDirections) {
  Node n = make_node("", "Scan", 16, 2, 2);
  const Type v = Type::tensor(DataType::float32, {Dim(2)});
  add_signature(n, "body", {v, v}, {v, v});
  n.attributes.set("num_scan_inputs", std::int64_t{1});
  n.attributes.set("scan_input_axes", std::vector<std::int64_t>{-1});
  n.attributes.set("scan_input_directions", std::vector<std::int64_t>{1});
  n.attributes.set("scan_output_axes", std::vector<std::int64_t>{1});
  n.attributes.set("scan_output_directions", std::vector<std::int64_t>{1});
  FakeServices services;
  services.body = [](std::size_t, std::vector<Value> in) {
    const auto a = in[0].tensor().values<float>(), b = in[1].tensor().values<float>();
    const Tensor sum = Tensor::of<float>({2}, {a[0] + b[0], a[1] + b[1]});
    return std::vector<Value>{sum, sum.clone()};
  };
  const auto out = run_op(n, {Tensor::of<float>({2}, {0, 100}), Tensor::of<float>({2, 3}, {1, 2, 3, 10, 20, 30})}, services);
  EXPECT_EQ(elements<float>(out[0]), (std::vector<float>{6, 160}));
  EXPECT_EQ(out[1].tensor().shape(), (Shape{2, 3}));
  EXPECT_EQ(elements<float>(out[1]), (std::vector<float>{6, 5, 3, 160, 150, 130}));
}

TEST(Scan, Version8PadsShorterSequencesWithZeros) {
  Node n = make_node("", "Scan", 8, 3, 2);
  const Type v = Type::tensor(DataType::float32, {Dim(1)});
  add_signature(n, "body", {v, v}, {v, v});
  n.attributes.set("num_scan_inputs", std::int64_t{1});
  FakeServices services;
  services.body = [](std::size_t, std::vector<Value> in) {
    const Tensor sum = Tensor::of<float>({1}, {in[0].tensor().values<float>()[0] + in[1].tensor().values<float>()[0]});
    return std::vector<Value>{sum, sum.clone()};
  };
  const auto out = run_op(n,
                          {Tensor::of<std::int64_t>({2}, {3, 1}), Tensor::of<float>({2, 1}, {0, 10}),
                           Tensor::of<float>({2, 3, 1}, {1, 2, 3, 4, 5, 6})},
                          services);
  EXPECT_EQ(elements<float>(out[0]), (std::vector<float>{6, 14}));
  EXPECT_EQ(out[1].tensor().shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(elements<float>(out[1]), (std::vector<float>{1, 3, 6, 14, 0, 0}));
}

TEST(SequenceMap, RefusesSequencesOfDifferentLengths) {
  Node n = make_node("", "SequenceMap", 17, 2, 1);
  add_signature(n, "body", {Type::tensor(DataType::float32), Type::tensor(DataType::float32)}, {Type::tensor(DataType::float32)});
  FakeServices services;
  services.body = [](std::size_t, std::vector<Value> in) { return std::vector<Value>{in[1]}; };
  const Tensor x = Tensor::scalar<float>(1);
  const Value two(Sequence{DataType::float32, {x, x}}), one(Sequence{DataType::float32, {x}});
  EXPECT_EQ(run_op(n, {two, x}, services)[0].sequence().items.size(), 2U);
  EXPECT_THROW(run_op(n, {two, one}, services), Error);
  const auto none = run_op(n, {Sequence{DataType::float32, {}}, x}, services);
  EXPECT_EQ(none[0].sequence().element_type, DataType::float32);
}

TEST(Slices, CollectPackedElements) {
  SliceCollector collector;
  for (int i = 0; i < 3; ++i) {
    Tensor item(DataType::uint4, {3});
    for (int k = 0; k < 3; ++k) set_packed(item.mutable_data(), 4, k, static_cast<std::uint8_t>(3 * i + k));
    collector.append(item);
  }
  const Tensor all = collector.finish();
  ASSERT_EQ(all.shape(), (Shape{3, 3}));
  for (int k = 0; k < 9; ++k) EXPECT_EQ(get_packed(all.data(), 4, k), k);
  const Tensor column = take_slice(all, 1, 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get_packed(column.data(), 4, i), 3 * i + 2);
}

}  // namespace
}  // namespace sdx::ops
