// One session that meets shape after shape gives what a new session gives for each.

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <thread>
#include <tuple>

#include "support/session.h"

namespace sdx::session {
namespace {

using testing::floats;
using testing::Floats;
using testing::open;

Tensor filled(Shape shape, float first) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  Floats values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + 0.25F * static_cast<float>(i % 31);
  return floats(std::move(shape), values);
}

void expect_same(const NamedValues& a, const NamedValues& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) {
    const Tensor& x = value.tensor();
    const Tensor& y = b.tensor(name);
    ASSERT_EQ(x.shape(), y.shape()) << name;
    EXPECT_TRUE(x.bytes() == 0 || std::memcmp(x.data(), y.data(), x.bytes()) == 0) << name;
  }
}

// A cache that grows by the new tokens, a product over it, extents computed from shapes, joined inputs, views, results that lie
// in their inputs' memory, a branch that captures changing values, a shape that data decide, and a part that never changes.
constexpr const char* kText = R"(
  input x: float32[1,n,8]
  input past: float32[1,p,8]
  input still: float32[2,8]
  input c: bool[]
  constant w: float32[8,8] 1 0 2 0 0 0 0 1 0 1 0 0 3 0 0 0 0 0 1 0 0 0 0 0 0 0 0 1 0 0 2 0 0 0 0 0 1 0 0 0 0 4 0 0 0 1 0 0 0 0 0 0 0 0 1 0 2 0 0 0 0 0 0 1
  constant flat: int64[2] -1 4
  all = Concat(past, x) {axis=1}
  keys = MatMul(all, w)
  turned = Transpose(keys) {perm=[0,2,1]}
  scores = MatMul(x, turned)
  weights = Softmax(scores) {axis=-1}
  mixed = MatMul(weights, keys)
  low = Relu(mixed)
  high = Exp(low)
  both = Concat(low, high) {axis=1}
  view = Reshape(both, flat)
  negative = Neg(view)
  s1 = MatMul(still, w)
  s2 = Tanh(s1)
  y = If(c)
    then_branch {
      a = Add(all, all)
      output a
    }
    else_branch {
      output all
    }
  found = NonZero(low)
  output negative
  output y
  output s2
  output all
  output found
)";

NamedValues inputs_of(std::int64_t n, std::int64_t p, bool c) {
  return {{"x", filled({1, n, 8}, -1)}, {"past", filled({1, p, 8}, -2)}, {"still", filled({2, 8}, 0)}, {"c", Tensor::scalar(c)}};
}

TEST(ChangingShapes, GiveTheResultsOfANewSession) {
  const Session s = open(kText);
  std::int64_t past = 0;
  for (int turn = 0; turn < 90; ++turn) {
    const std::int64_t n = turn % 17 == 0 ? 9 : 1;
    if (turn % 30 == 29) past = 0;
    const NamedValues inputs = inputs_of(n, past, turn % 2 == 0);
    expect_same(s.run(inputs), open(kText).run(inputs));
    expect_same(s.run(inputs), open(kText).run(inputs));
    past += n;
  }
}

TEST(ChangingShapes, AfterAShapeThatFails) {
  const Session s = open("input x: float32[n]\ninput y: float32[m]\n z = Add(x, y)\n a = Exp(z)\n output a\n");
  const auto run = [&](std::int64_t n, std::int64_t m) {
    return s.run({{"x", filled({n}, 0)}, {"y", filled({m}, 1)}}).tensor("a").shape();
  };
  EXPECT_EQ(run(3, 3), (Shape{3}));
  EXPECT_THROW(run(3, 4), Error);
  EXPECT_EQ(run(4, 4), (Shape{4}));
  EXPECT_EQ(run(4, 1), (Shape{4}));
}

TEST(ChangingShapes, OnSeveralThreads) {
  const Session s = open(kText);
  std::vector<NamedValues> inputs, expected;
  for (std::int64_t i = 0; i < 24; ++i) {
    inputs.push_back(inputs_of(1 + i % 3, i, i % 2 == 0));
    expected.push_back(open(kText).run(inputs.back()));
  }
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 120; ++i) {
        const std::size_t which = (i * (t + 1) + t) % inputs.size();
        expect_same(s.run(inputs[which]), expected[which]);
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

// Whatever the extents turn out to be, also none at all, of which the operators say what remains.
TEST(ChangingShapes, ReductionsOfExtentsThatAreNotKnown) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::tuple<const char*, float, float> operators[] = {{"ReduceSum", 1.5F, 0},
                                                             {"ReduceMean", 0.75F, 0},
                                                             {"ReduceMax", 2, -kInfinity},
                                                             {"ReduceMin", -0.5F, kInfinity},
                                                             {"ReduceProd", -1, 1}};
  for (const auto& [op, of_two, of_none] : operators) {
    SCOPED_TRACE(op);
    const Session s =
        open("input x: float32[n,m,3]\nconstant a: int64[1] 1\ny = " + std::string(op) + "(x, a) {keepdims=0}\noutput y\n");
    const Tensor two = floats({1, 2, 3}, {2, 2, 2, -0.5F, -0.5F, -0.5F});
    EXPECT_EQ(testing::elements(s.run({{"x", two}}).tensor("y")), Floats(3, of_two));
    EXPECT_EQ(s.run({{"x", floats({0, 2, 3}, {})}}).tensor("y").shape(), (Shape{0, 3}));
    const NamedValues none = s.run({{"x", floats({2, 0, 3}, {})}});
    EXPECT_EQ(none.tensor("y").shape(), (Shape{2, 3}));
    EXPECT_EQ(testing::elements(none.tensor("y")), Floats(6, of_none));
    EXPECT_EQ(testing::elements(s.run({{"x", two}}).tensor("y")), Floats(3, of_two));
  }
}

}  // namespace
}  // namespace sdx::session
