#include <gtest/gtest.h>

#include <cmath>

#include "support/op_values.h"
#include "support/single_op.h"

namespace sdx::ops {
namespace {

// 2 x 3 x 4 with the elements 0 to 23.
Tensor counting() {
  Tensor t(DataType::float32, {2, 3, 4});
  for (std::size_t i = 0; i < 24; ++i) t.mutable_values<float>()[i] = static_cast<float>(i);
  return t;
}

TEST(Reduce, EveryAxisPattern) {
  const auto sum = [](std::initializer_list<std::int64_t> axes) {
    const Tensor a = ints({static_cast<std::int64_t>(axes.size())}, axes);
    return list(SingleOp("ReduceSum", 13).with("keepdims", std::int64_t{0}).run({counting(), a}));
  };
  EXPECT_EQ(sum({0, 1, 2}), (std::vector<float>{276}));
  EXPECT_EQ(sum({-1}), (std::vector<float>{6, 22, 38, 54, 70, 86}));
  EXPECT_EQ(sum({0}), (std::vector<float>{12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34}));
  EXPECT_EQ(sum({1}), (std::vector<float>{12, 15, 18, 21, 48, 51, 54, 57}));
  EXPECT_EQ(sum({0, 2}), (std::vector<float>{60, 92, 124}));
  EXPECT_EQ(sum({0, 0}), sum({0}));
}

TEST(Reduce, EmptySetsGiveIdentities) {
  const Tensor none(DataType::float32, {2, 0});
  const auto run = [&](const char* op) { return list(SingleOp(op, 20).run({none, ints({1}, {1})})); };
  EXPECT_EQ(run("ReduceSum"), (std::vector<float>{0, 0}));
  EXPECT_EQ(run("ReduceProd"), (std::vector<float>{1, 1}));
  EXPECT_EQ(run("ReduceMax"), (std::vector<float>{-kInf, -kInf}));
  EXPECT_EQ(run("ReduceMin"), (std::vector<float>{kInf, kInf}));
  EXPECT_EQ(run("ReduceLogSumExp"), (std::vector<float>{-kInf, -kInf}));
  const Tensor no_ints(DataType::int64, {0});
  EXPECT_EQ(list<std::int64_t>(SingleOp("ReduceMean", 18).run({no_ints})), (Ints{0}));
  EXPECT_EQ(list<std::int64_t>(SingleOp("ReduceMax", 18).run({no_ints})), (Ints{INT64_MIN}));
}

TEST(Reduce, LogSumExpNeitherOverflowsNorLosesNan) {
  const auto run = [](std::initializer_list<float> v) {
    return list(SingleOp("ReduceLogSumExp", 18).run({floats({static_cast<std::int64_t>(v.size())}, v)}))[0];
  };
  EXPECT_NEAR(run({1000, 1000}), 1000 + std::log(2.0), 1e-4);
  EXPECT_EQ(run({-kInf, -kInf}), -kInf);
  EXPECT_EQ(run({kInf, 1, kInf}), kInf);
  EXPECT_TRUE(std::isnan(run({1, kNan, 2})));
  EXPECT_TRUE(std::isnan(run({kNan, 1})));
}

TEST(Reduce, NoopStillAppliesTheFunction) {
  SingleOp op("ReduceSumSquare", 18);
  op.with("noop_with_empty_axes", std::int64_t{1});
  EXPECT_EQ(list(op.run({floats({2}, {3, -4})})), (std::vector<float>{9, 16}));
}

TEST(Reduce, RefusesBadAxes) {
  EXPECT_EQ(code_of([] { SingleOp("ReduceSum", 13).run({counting(), ints({1}, {3})}); }), ErrorCode::invalid_model);
  EXPECT_EQ(code_of([] { SingleOp("ReduceMax", 11).with("axes", Ints{INT64_MIN}).run({counting()}); }), ErrorCode::invalid_model);
}

TEST(Reduce, CarriesSymbolicElements) {
  const std::vector<Dim> in{Dim::symbol("n"), 3, Dim::symbol("m")};
  std::vector<Dim> out;
  SingleOp("ReduceProd", 11).infer({Type::tensor(DataType::int64, {3})}, {&in}, &out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_TRUE(out[0] == Dim::symbol("n") * Dim::symbol("m") * Dim(3));
}

TEST(ArgExtreme, TiesAndNan) {
  const Tensor x = floats({1, 4}, {1, 3, 3, 0});
  const auto run = [](const char* op, const Tensor& t, std::int64_t last) {
    SingleOp o(op, 13);
    o.with("axis", std::int64_t{1}).with("select_last_index", last);
    return list<std::int64_t>(o.run({t}))[0];
  };
  EXPECT_EQ(run("ArgMax", x, 0), 1);
  EXPECT_EQ(run("ArgMax", x, 1), 2);
  EXPECT_EQ(run("ArgMin", x, 0), 3);
  EXPECT_EQ(run("ArgMax", floats({1, 3}, {1, kNan, 5}), 0), 1);
  EXPECT_EQ(code_of([] { SingleOp("ArgMax", 13).run({Tensor(DataType::float32, {0, 2})}); }), ErrorCode::runtime_failure);
}

TEST(Softmax, FlattensBeforeOpset13) {
  const Tensor x = floats({1, 2, 2}, {0, 0, 0, 0});
  EXPECT_EQ(list(SingleOp("Softmax", 11).run({x})), (std::vector<float>{0.25F, 0.25F, 0.25F, 0.25F}));
  EXPECT_EQ(list(SingleOp("Softmax", 13).run({x})), (std::vector<float>{0.5F, 0.5F, 0.5F, 0.5F}));
}

TEST(Softmax, LargeNumbers) {
  const Tensor y = SingleOp("Softmax", 13).with("axis", std::int64_t{0}).run({floats({2, 1}, {1000, 1000})});
  EXPECT_EQ(list(y), (std::vector<float>{0.5F, 0.5F}));
}

TEST(TopK, TiesNanAndBounds) {
  const Tensor x = floats({6}, {2, kNan, 3, 2, 3, -kInf});
  const auto run = [&](std::int64_t k, std::int64_t largest) {
    SingleOp op("TopK", 11);
    op.with("largest", largest);
    return list<std::int64_t>(op.run_all({x, ints({1}, {k})}, 2)[1]);
  };
  EXPECT_EQ(run(6, 1), (Ints{1, 2, 4, 0, 3, 5}));
  EXPECT_EQ(run(6, 0), (Ints{5, 0, 3, 2, 4, 1}));
  EXPECT_EQ(run(0, 1), Ints{});
  EXPECT_EQ(code_of([&] { run(7, 1); }), ErrorCode::invalid_model);
  EXPECT_EQ(code_of([&] { run(-1, 1); }), ErrorCode::invalid_model);
}

TEST(Cumulative, DirectionsAndAxis) {
  const Tensor x = ints({2, 2}, {1, 2, 3, 4});
  const Tensor axis = ints({}, {0});
  EXPECT_EQ(list<std::int64_t>(SingleOp("CumSum", 14).run({x, axis})), (Ints{1, 2, 4, 6}));
  SingleOp both("CumProd", 26);
  both.with("exclusive", std::int64_t{1}).with("reverse", std::int64_t{1});
  EXPECT_EQ(list<std::int64_t>(both.run({x, axis})), (Ints{3, 4, 1, 1}));
  EXPECT_EQ(code_of([&] { SingleOp("CumSum", 14).run({x, ints({}, {2})}); }), ErrorCode::invalid_model);
}

std::vector<float> einsum(const std::string& equation, const std::vector<Tensor>& inputs) {
  return list(SingleOp("Einsum", 12).with("equation", equation).run(inputs));
}

TEST(Einsum, Forms) {
  const Tensor a = floats({2, 2}, {1, 2, 3, 4});
  const Tensor b = floats({2, 2}, {5, 6, 7, 8});
  EXPECT_EQ(einsum("ij,jk->ik", {a, b}), (std::vector<float>{19, 22, 43, 50}));
  EXPECT_EQ(einsum("ij,jk", {a, b}), (std::vector<float>{19, 22, 43, 50}));
  EXPECT_EQ(einsum("ii", {a}), (std::vector<float>{5}));
  EXPECT_EQ(einsum("ba", {a}), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(einsum("...j->j...", {a}), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(einsum("ab,bc,ca->", {a, b, a}), (std::vector<float>{19 * 1 + 22 * 3 + 43 * 2 + 50 * 4}));
  EXPECT_EQ(einsum(" i j -> ", {a}), (std::vector<float>{10}));
  EXPECT_EQ(einsum("...,...->...", {a, floats({1, 2}, {10, 100})}), (std::vector<float>{10, 200, 30, 400}));
}

TEST(Einsum, ManyOperandsStayCheap) {
  // A chain of 40 vectors' sums: the naive loop would take 4^40 steps.
  std::string equation;
  std::vector<Tensor> inputs;
  for (int i = 0; i < 40; ++i) {
    equation += (i == 0 ? "" : ",") + std::string(1, static_cast<char>(i < 26 ? 'a' + i : 'A' + i - 26));
    inputs.push_back(floats({4}, {0.25F, 0.25F, 0.25F, 0.25F}));
  }
  EXPECT_EQ(einsum(equation + "->", inputs), (std::vector<float>{1}));
}

TEST(Einsum, RefusesNonsense) {
  const Tensor a = floats({2, 2}, {1, 2, 3, 4});
  for (const char* bad : {"ijk->i", "ij->k", "ij->ii", "i1", "i->->i", "ij,jk", ".ij", "......", "i"}) {
    EXPECT_EQ(code_of([&] { einsum(bad, {a}); }), ErrorCode::invalid_model) << bad;
  }
  EXPECT_EQ(code_of([&] { einsum("ij,jk->ik", {a, floats({3, 1}, {1, 2, 3})}); }), ErrorCode::runtime_failure);
}

TEST(Elements, EqualAndWhereCarryShapes) {
  // Where(shape == -1, ones, shape), as PyTorch exports expand().
  const std::vector<Dim> shape{Dim::symbol("n"), -1, 4};
  const std::vector<Dim> minus{-1};
  const std::vector<Dim> ones{1, 1, 1};
  const Type three = Type::tensor(DataType::int64, {3});
  std::vector<Dim> flags;
  SingleOp("Equal", 13).infer({three, Type::tensor(DataType::int64, SymShape{})}, {&shape, &minus}, &flags);
  ASSERT_EQ(flags.size(), 3U);
  std::vector<Dim> out;
  SingleOp("Where", 16).infer({Type::tensor(DataType::boolean, {3}), three, three}, {&flags, &ones, &shape}, &out);
  ASSERT_EQ(out.size(), 3U);
  EXPECT_EQ(out[0].str(), "n");
  EXPECT_EQ(out[1].str(), "1");
  EXPECT_EQ(out[2].str(), "4");
}

}  // namespace
}  // namespace sdx::ops
