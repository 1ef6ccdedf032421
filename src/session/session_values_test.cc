// Values that runs return: those whose shapes the data decide, those of branches, loops and sequences, and those that share
// memory.

#include <gtest/gtest.h>

#include "support/session.h"

namespace sdx::session {
namespace {

using testing::elements;
using testing::error_of;
using testing::expect_parts;
using testing::floats;
using testing::Floats;
using testing::open;

TEST(SessionValues, ShapesThatDependOnData) {
  const Session s =
      open("input x: float32[n]\n i = NonZero(x)\n t = Transpose(i) {perm=[1,0]}\n y = GatherND(x, t)\n output y\n output i\n");
  for (const Floats& x : {Floats{0, 3, 0, 4}, Floats{0, 0}, Floats{1, 2, 3}, Floats{}}) {
    Floats expected;
    for (const float v : x) {
      if (v != 0) expected.push_back(v);
    }
    const NamedValues out = s.run({{"x", floats({static_cast<std::int64_t>(x.size())}, x)}});
    EXPECT_EQ(elements(out.tensor("y")), expected);
    EXPECT_EQ(out.tensor("i").shape(), (Shape{1, static_cast<std::int64_t>(expected.size())}));
  }
}

TEST(SessionValues, BranchesWithCaptures) {
  const Session s = open(R"(
    input c: bool[]
    input x: float32[2]
    constant k: float32[1] 10
    e = Mul(x, k)
    y = If(c)
      then_branch {
        a = Add(e, x)
        output a
      }
      else_branch {
        b = If(c)
          then_branch {
            output x
          }
          else_branch {
            d = Sub(e, k)
            output d
          }
        output b
      }
    output y
  )");
  const Tensor x = floats({2}, {1, 2});
  EXPECT_EQ(elements(s.run({{"c", Tensor::scalar(true)}, {"x", x}}).tensor("y")), (Floats{11, 22}));
  EXPECT_EQ(elements(s.run({{"c", Tensor::scalar(false)}, {"x", x}}).tensor("y")), (Floats{0, 10}));
}

TEST(SessionValues, ABranchThatCannotRunMayStand) {
  const Session s = open(R"(
    input c: bool[]
    input x: float32[1]
    y = If(c)
      then_branch {
        constant word: string[1] "seven"
        a = Cast(word) {to=1}
        output a
      }
      else_branch {
        output x
      }
    output y
  )");
  const Tensor x = floats({1}, {1});
  EXPECT_EQ(elements(s.run({{"c", Tensor::scalar(false)}, {"x", x}}).tensor("y")), (Floats{1}));
  expect_parts(error_of(ErrorCode::runtime_failure, [&] { s.run({{"c", Tensor::scalar(true)}, {"x", x}}); }), {"seven", "Cast"});
}

// Kernels are chosen for the declared types. Inference finds no element type behind such an If, and trusts the file's declaration
// of `g`, for which kernels were chosen.
TEST(SessionValues, TypesMayBeOthersThanDeclared) {
  const auto opened = [](const std::string& last) {
    Model model = testing::parse_model(R"(
      input c: bool[]
      input f: float32[24]
      input d: float64[24]
      constant k: float32[24] 1
      z = If(c)
        then_branch {
          t = Identity(f)
          output t
        }
        else_branch {
          e = Identity(d)
          output e
        }
      g = Neg(z)
      y = )" + last + "\noutput y\n");
    model.graph.value(*model.graph.find("g")).declared = Type::tensor(DataType::float32);
    return testing::open(model);
  };
  const auto run = [](const Session& session, bool c) {
    return session
        .run({{"c", Tensor::scalar<bool>(c)},
              {"f", floats({24}, Floats(24, 3))},
              {"d", Tensor::of<double>({24}, std::vector<double>(24, 5))}})
        .tensor("y");
  };
  const Session product = opened("Mul(g, g)"), sum = opened("Add(g, k)");
  EXPECT_EQ(run(product, true).values<float>()[23], 9);
  EXPECT_EQ(run(product, false).values<double>()[23], 25);
  EXPECT_EQ(run(sum, true).values<float>()[23], -2);
  expect_parts(error_of(ErrorCode::runtime_failure, [&] { run(sum, false); }), {"same element type", "Add"});
}

TEST(SessionValues, SequencesOfAnotherTypeAreRefused) {
  const Session s = open(R"(
    input s: sequence(float32)
    constant zero: int64[] 0
    constant two: int64[1] 2
    x = SequenceAt(s, zero)
    fixed = Reshape(x, two)
    y = Add(fixed, fixed)
    output y
  )");
  const auto run = [&](const Tensor& t) { return s.run({{"s", Value(Sequence{t.dtype(), {t}})}}).tensor("y"); };
  EXPECT_EQ(run(Tensor::of<float>({1, 2}, {0, 1.5F})).values<float>()[1], 3);
  const Tensor other = Tensor::of<std::int64_t>({1, 2}, {0, 4});
  EXPECT_NE(error_of(ErrorCode::invalid_argument, [&] { run(other); })
                .find("input 's' must be sequence(float32), received sequence(int64) of 1"),
            std::string::npos);
  const Value mixed(Sequence{DataType::float32, {other}});
  EXPECT_NE(error_of(ErrorCode::invalid_argument,
                     [&] {
                       s.run({{"s", mixed}});
                     })
                .find("whose item 0 is int64[1,2]"),
            std::string::npos);
}

TEST(SessionValues, TensorsOfSequencesThatAreHandedOnAreTheCallersAlone) {
  const Session s = open(R"(
    input s: sequence(float32)
    a = Identity(s)
    b = Identity(s)
    output a
    output b
  )");
  const Value given(Sequence{DataType::float32, {Tensor::of<float>({1}, {1})}});
  const NamedValues out = s.run({{"s", given}});
  Tensor a = out.at("a").sequence().items.at(0).tensor();
  a.mutable_values<float>()[0] = 9;
  EXPECT_EQ(out.at("b").sequence().items.at(0).tensor().values<float>()[0], 1);
  EXPECT_EQ(given.sequence().items.at(0).tensor().values<float>()[0], 1);
}

TEST(SessionValues, SequencesInALoop) {
  const Session s = open(R"(
    input n: int64[]
    input x: float32[2]
    empty = SequenceEmpty()
    all = Loop(n, _, empty)
      body {
        input i: int64[]
        input go: bool[]
        input before: sequence(float32)
        f = Cast(i) {to=1}
        y = Add(x, f)
        more = SequenceInsert(before, y)
        g = Identity(go)
        output g
        output more
      }
    y = ConcatFromSequence(all) {axis=0}
    count = SequenceLength(all)
    output all
    output count
    output y
  )");
  const NamedValues out = s.run({{"n", Tensor::scalar<std::int64_t>(3)}, {"x", floats({2}, {1, 2})}});
  EXPECT_EQ(out.at("all").sequence().items.size(), 3U);
  EXPECT_EQ(out.tensor("count").values<std::int64_t>()[0], 3);
  EXPECT_EQ(elements(out.tensor("y")), (Floats{1, 2, 2, 3, 3, 4}));
}

TEST(SessionValues, ViewsOfInputsAsOutputs) {
  const Session s = open(R"(
    input x: float32[2,3]
    constant shape: int64[1] 6
    a = Reshape(x, shape)
    b = Identity(x)
    constant k: float32[2] 7 8
    c = Identity(k)
    output a
    output b
    output c
    output a as again
  )");
  Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const NamedValues out = s.run({{"x", x}});
  // Outputs are the caller's: changing the input, or one of the outputs, changes none of the others.
  x.mutable_values<float>()[0] = 99;
  EXPECT_EQ(elements(out.tensor("a")), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(elements(out.tensor("b")), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(out.tensor("a").shape(), (Shape{6}));
  EXPECT_EQ(elements(out.tensor("c")), (Floats{7, 8}));
  EXPECT_EQ(elements(out.tensor("again")), (Floats{1, 2, 3, 4, 5, 6}));
  NamedValues again = s.run({{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}});
  Tensor c = again.tensor("c");
  if (c.writable()) c.mutable_values<float>()[0] = -1;
  EXPECT_EQ(elements(s.run({{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}}).tensor("c")), (Floats{7, 8}));
}

TEST(SessionValues, ValuesThatAreReadAgainAreNotOverwritten) {
  for (const bool optimize : {false, true}) {
    SessionOptions options;
    options.optimize = optimize;
    const Session s = open(R"(
      input x: float32[4]
      constant two: int64[2] 2 2
      constant four: int64[1] 4
      a = Abs(x)
      v = Reshape(a, two)
      b = Relu(a)
      c = Neg(b)
      t = Transpose(v)
      d = Add(a, c)
      w = Reshape(v, four)
      e = Exp(d)
      f = Add(w, e)
      output f
      output t
      output d
    )",
                           options);
    const Tensor x = floats({4}, {1, -2, 3, -4});
    for (int i = 0; i < 2; ++i) {
      const NamedValues out = s.run({{"x", x}});
      EXPECT_EQ(elements(out.tensor("d")), (Floats{0, 0, 0, 0}));
      EXPECT_EQ(elements(out.tensor("t")), (Floats{1, 3, 2, 4}));
      EXPECT_EQ(elements(out.tensor("f")), (Floats{2, 3, 4, 5}));
    }
    EXPECT_EQ(elements(x), (Floats{1, -2, 3, -4}));
  }
}

}  // namespace
}  // namespace sdx::session
