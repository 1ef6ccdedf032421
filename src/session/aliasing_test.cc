// Values that share memory: a later step must not overwrite what an earlier one passes on, nor read it before it is written.

#include <gtest/gtest.h>

#include <cmath>
#include <sdx/sdx.hpp>

#include "support/graph_text.h"
#include "support/session.h"

namespace sdx::session {
namespace {

NamedValues run(const std::string& text, const NamedValues& inputs, bool optimize) {
  SessionOptions options;
  options.providers = {"cpu"};
  options.optimize = optimize;
  const Session session = testing::open(text, options);
  session.run(inputs);  // a second run finds what the first one left
  return session.run(inputs);
}

void expect(const std::string& text, const NamedValues& inputs,
            const std::vector<std::pair<std::string, std::vector<float>>>& want) {
  for (const bool optimize : {true, false}) {
    SCOPED_TRACE(optimize ? "optimised" : "as it is");
    const NamedValues got = run(text, inputs, optimize);
    for (const auto& [name, values] : want) {
      const auto seen = got.tensor(name).values<float>();
      ASSERT_EQ(seen.size(), values.size()) << name;
      for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(seen[i], values[i], 1e-5F) << name << " " << i;
    }
  }
}

Tensor floats(std::vector<float> v) { return Tensor::of<float>({static_cast<std::int64_t>(v.size())}, v); }
const Tensor kTrue = Tensor::scalar<bool>(true);
const float kOne = 1.0F / (1.0F + std::exp(-1.0F));  // Sigmoid of 0 and of 1

// b: the value itself from one branch, its negative from the other.
std::string handed_on(const std::string& value) {
  return "b = If(c)\n  then_branch {\n    t = Identity(" + value + ")\n    output t\n  }\n  else_branch {\n    e = Neg(" + value +
         ")\n    output e\n  }\n";
}

TEST(Aliasing, AViewSeesWhatAKernelMadeElsewhere) {
  const std::string model = R"(
opset com.microsoft 1
input x: float32[2,2]
constant flat: int64[1] -1
y = com.microsoft.ScaledSiLU(x) {alpha=1.0}
)";
  const NamedValues x{{"x", Tensor::of<float>({2, 2}, {0, 1, 0, 1})}};
  expect(model + "v = Reshape(y, flat)\noutput v", x, {{"v", {0, kOne, 0, kOne}}});
  expect(model + "v = Reshape(y, flat)\noutput y\noutput v", x, {{"v", {0, kOne, 0, kOne}}, {"y", {0, kOne, 0, kOne}}});
  expect(model + "v = Reshape(y, flat)\nz = Neg(v)\noutput z", x, {{"z", {0, -kOne, 0, -kOne}}});
  expect(model + "z = Neg(y)\nv = Reshape(z, flat)\noutput z\noutput v", x,
         {{"v", {0, -kOne, 0, -kOne}}, {"z", {0, -kOne, 0, -kOne}}});
}

TEST(Aliasing, UpdatesThatAreTheDataItself) {
  const std::string model = "input x: float32[4]\nconstant i: int64[4,1] 1 2 3 0\na = Neg(x)\n";
  expect(model + "s = ScatterND(a, i, a)\ny = Exp(s)\noutput y", {{"x", floats({0, -1, -2, -3})}},
         {{"y", {std::exp(3.0F), 1, std::exp(1.0F), std::exp(2.0F)}}});
}

TEST(Aliasing, WhatABranchHandsOnIsNotOverwritten) {
  expect(R"(
input x: float32[2]
input c: bool[]
a = Exp(x)
)" + handed_on("a") +
             R"(y = Sigmoid(a)
output y
output b
)",
         {{"x", floats({0, 0})}, {"c", kTrue}}, {{"y", {kOne, kOne}}, {"b", {1, 1}}});
}

TEST(Aliasing, ViewsOfWhatABranchHandsOn) {
  expect(R"(
input x: float32[2]
input c: bool[]
constant shape: int64[2] 2 1
a = Exp(x)
v = Reshape(a, shape)
)" + handed_on("v") +
             R"(y = Sigmoid(a)
z = Relu(y)
output z
output b
)",
         {{"x", floats({0, 0})}, {"c", kTrue}}, {{"z", {kOne, kOne}}, {"b", {1, 1}}});
}

TEST(Aliasing, LoopsThatCaptureAndSwap) {
  const NamedValues inputs{{"x", floats({0, 0})}, {"n", Tensor::scalar<std::int64_t>(3)}, {"c", kTrue}};
  const std::string model = R"(
input x: float32[2]
input n: int64[]
input c: bool[]
a = Exp(x)
b = Neg(a)
)";
  const std::string body = R"(
  body {
    input i: int64[]
    input go: bool[]
    input s: float32[2]
    input t: float32[2]
    on = Identity(go)
    s2 = Identity(t)
    t2 = Identity(s)
    k = Identity(a)
    output on
    output s2
    output t2
    output k
  }
y = Sigmoid(a)
z = Abs(b)
output y
output z
output p
output q
output all
)";
  expect(model + "p, q, all = Loop(n, c, a, b)" + body, inputs,
         {{"y", {kOne, kOne}}, {"z", {1, 1}}, {"p", {-1, -1}}, {"q", {1, 1}}, {"all", {1, 1, 1, 1, 1, 1}}});
  NamedValues none{{"x", floats({0, 0})}, {"n", Tensor::scalar<std::int64_t>(0)}, {"c", kTrue}};
  expect(model + "p, q, all = Loop(n, c, a, b)" + body, none,
         {{"y", {kOne, kOne}}, {"z", {1, 1}}, {"p", {1, 1}}, {"q", {-1, -1}}, {"all", {}}});
}

TEST(Aliasing, ScansThatSwapAndKeepSlices) {
  expect(R"(
opset 13
input x: float32[3,2]
a = Exp(x)
b = Neg(a)
first = Abs(a)
zero = Relu(first)
row = ReduceMax(zero) {axes=[0], keepdims=0}
other = Neg(row)
p, q, out = Scan(row, other, a) {num_scan_inputs=1}
  body {
    input s: float32[2]
    input t: float32[2]
    input r: float32[2]
    s2 = Identity(t)
    t2 = Identity(r)
    o = Identity(s)
    output s2
    output t2
    output o
  }
y = Sigmoid(a)
z = Neg(other)
w = Sigmoid(row)
output y
output z
output w
output p
output q
output out
)",
         {{"x", Tensor::of<float>({3, 2}, {0, 0, 0, 0, 0, 0})}},
         {{"y", {kOne, kOne, kOne, kOne, kOne, kOne}},
          {"z", {1, 1}},
          {"w", {kOne, kOne}},
          {"p", {1, 1}},
          {"q", {1, 1}},
          {"out", {1, 1, -1, -1, 1, 1}}});
}

TEST(Aliasing, SequenceMapAndSequencesOfWhatIsOverwritten) {
  expect(R"(
input x: float32[2]
constant zero: int64[] 0
a = Exp(x)
s = SequenceConstruct(a, a)
m = SequenceMap(s, a)
  body {
    input item: float32[2]
    input more: float32[2]
    r = Identity(more)
    output r
  }
y = Sigmoid(a)
b = SequenceAt(m, zero)
d = SequenceAt(s, zero)
output y
output b
output d
)",
         {{"x", floats({0, 0})}}, {{"y", {kOne, kOne}}, {"b", {1, 1}}, {"d", {1, 1}}});
}

TEST(Aliasing, ABranchWithinALoop) {
  expect(R"(
input x: float32[2]
input n: int64[]
input c: bool[]
a = Exp(x)
p = Loop(n, c, a)
  body {
    input i: int64[]
    input go: bool[]
    input s: float32[2]
    on = Identity(go)
    e = Exp(x)
    r = If(go)
      then_branch {
        t = Identity(e)
        output t
      }
      else_branch {
        u = Neg(s)
        output u
      }
    w = Neg(e)
    output on
    output r
  }
y = Sigmoid(a)
output y
output p
)",
         {{"x", floats({0, 0})}, {"n", Tensor::scalar<std::int64_t>(2)}, {"c", kTrue}}, {{"y", {kOne, kOne}}, {"p", {1, 1}}});
}

TEST(Aliasing, ConcatenatedBesideABranch) {
  expect(R"(
input x: float32[1,32]
input c: bool[]
a = Exp(x)
n = Neg(a)
)" + handed_on("a") +
             R"(j = Concat(a, n) {axis=1}
y = Neg(j)
s = ReduceSum(y) {keepdims=0}
m = ReduceMin(b) {keepdims=0}
output s
output m
)",
         {{"x", Tensor::of<float>({1, 32}, std::vector<float>(32))}, {"c", kTrue}}, {{"s", {0}}, {"m", {1}}});
}

// x of 32 elements; a is its negative. Stretches begin at multiples of 32 bytes.
const std::string kCut = R"(
input x: float32[1,32]
constant axis: int64[1] 1
constant from0: int64[1] 0
constant from8: int64[1] 8
constant to24: int64[1] 24
constant sizes: int64[2] 16 16
a = Neg(x)
)";

NamedValues counted() {
  std::vector<float> x(32);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 8;
  return {{"x", Tensor::of<float>({1, 32}, x)}};
}

// f of -i / 8 for i from `begin` on.
std::vector<float> values(std::size_t begin, std::size_t count, float (*f)(float)) {
  std::vector<float> out;
  for (std::size_t i = begin; i < begin + count; ++i) out.push_back(f(-static_cast<float>(i) / 8));
  return out;
}

float same(float v) { return v; }
float power(float v) { return std::exp(v); }
float powers_power(float v) { return std::exp(std::exp(v)); }

TEST(Aliasing, StretchesOfAValue) {
  const auto twice = [](std::vector<float> v) {
    v.insert(v.end(), v.begin(), v.end());
    return v;
  };
  const auto sums = values(0, 16, [](float v) { return 2 * v - 2; });
  const std::string split = kCut + "p, q = Split(a, sizes) {axis=1}\n";
  // Steps that could be computed in a stretch while another step needs the whole, and the other way round.
  expect(split + "e = Exp(p)\nf = Concat(e, e) {axis=1}\nb = Add(a, a)\ny = Neg(q)\noutput f\noutput b\noutput y", counted(),
         {{"f", twice(values(0, 16, power))},
          {"b", values(0, 32, [](float v) { return 2 * v; })},
          {"y", values(16, 16, [](float v) { return -v; })}});
  expect(split + "b = Exp(a)\nc = Concat(b, b) {axis=1}\ny = Add(p, q)\noutput c\noutput y", counted(),
         {{"c", twice(values(0, 32, power))}, {"y", sums}});
  // A result for the caller is computed where the whole was.
  expect(split + "y = Add(p, q)\nb = Exp(a)\noutput y\noutput b", counted(), {{"y", sums}, {"b", values(0, 32, power)}});
  // A stretch is one.
  expect(split + "y = Exp(q)\noutput p\noutput y", counted(), {{"p", values(0, 16, same)}, {"y", values(16, 16, power)}});
}

TEST(Aliasing, AStepThatReadsAValueAndAStretchOfIt) {
  const std::string model = R"(
input x: float32[2,16]
a = Neg(x)
p, q = Split(a) {axis=0, num_outputs=2}
b = Add(a, p)
c = Concat(b, b) {axis=0}
output c
)";
  std::vector<float> x(32), c(64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = -x[i % 32] - x[i % 16];
  expect(model, {{"x", Tensor::of<float>({2, 16}, x)}}, {{"c", c}});
}

TEST(Aliasing, StretchesThatOverlapOrNest) {
  expect(
      kCut +
          "p = Slice(a, from0, to24, axis)\nq = Slice(a, from8, to24, axis)\ne = Exp(q)\nf = Concat(e, e, p) {axis=1}\noutput f",
      counted(), [] {
        std::vector<float> f = values(8, 16, power);
        f.insert(f.end(), f.begin(), f.end());
        const std::vector<float> p = values(0, 24, same);
        f.insert(f.end(), p.begin(), p.end());
        return std::vector<std::pair<std::string, std::vector<float>>>{{"f", f}};
      }());
  expect(kCut +
             "b = Exp(a)\np, q = Split(b, sizes) {axis=1}\nr = Slice(q, from8, to24, axis)\ne = Exp(p)\nf = Concat(e, q, r) "
             "{axis=1}\noutput f",
         counted(), [] {
           std::vector<float> f = values(0, 16, powers_power);
           for (const std::size_t begin : {16, 24}) {
             const std::vector<float> more = values(begin, 32 - begin, power);
             f.insert(f.end(), more.begin(), more.end());
           }
           return std::vector<std::pair<std::string, std::vector<float>>>{{"f", f}};
         }());
}

TEST(Aliasing, StretchesThatAreJoinedAgain) {
  // In their order, and not; with others before them; one of them overwritten.
  expect(kCut + "p, q = Split(a, sizes) {axis=1}\ne = Exp(q)\nc = Concat(p, q, e) {axis=1}\ny = Neg(c)\noutput y", counted(), [] {
    std::vector<float> y = values(0, 32, [](float v) { return -v; });
    const std::vector<float> e = values(16, 16, [](float v) { return -std::exp(v); });
    y.insert(y.end(), e.begin(), e.end());
    return std::vector<std::pair<std::string, std::vector<float>>>{{"y", y}};
  }());
  expect(kCut + "p, q = Split(a, sizes) {axis=1}\nc = Concat(q, p) {axis=1}\ny = Neg(c)\noutput y", counted(), [] {
    std::vector<float> y = values(16, 16, [](float v) { return -v; });
    const std::vector<float> p = values(0, 16, [](float v) { return -v; });
    y.insert(y.end(), p.begin(), p.end());
    return std::vector<std::pair<std::string, std::vector<float>>>{{"y", y}};
  }());
  expect(kCut + "b = Neg(x)\np, q = Split(a, sizes) {axis=1}\nc = Concat(b, p, q, p) {axis=1}\ny = Exp(c)\noutput y", counted(),
         [] {
           std::vector<float> y = values(0, 32, power);
           for (const std::size_t count : {32, 16}) {
             const std::vector<float> more = values(0, count, power);
             y.insert(y.end(), more.begin(), more.end());
           }
           return std::vector<std::pair<std::string, std::vector<float>>>{{"y", y}};
         }());
}

}  // namespace
}  // namespace sdx::session
