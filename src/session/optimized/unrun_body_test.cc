// The results of Loop and Scan whose body never runs: the same with and without passes, and like ONNX Runtime's if it knows the
// shape of an element.

#include <gtest/gtest.h>

#include "onnx/writer.h"
#include "support/session.h"

namespace sdx {
namespace {

using testing::floats;

const Tensor kNoTurns = Tensor::scalar<std::int64_t>(0);

NamedValues run(const Model& model, const NamedValues& inputs, bool optimize) {
  SessionOptions options;
  options.optimize = optimize;
  return testing::open(model, options).run(inputs);
}

// The shape of `name` with and without passes.
void expect_shape(const Model& model, const NamedValues& inputs, const Shape& shape, const std::string& name = "s") {
  for (const bool optimize : {true, false}) {
    EXPECT_EQ(run(model, inputs, optimize).tensor(name).shape(), shape) << (optimize ? "optimised" : "plain");
  }
}

Model loop(const std::string& inputs, const std::string& call, const std::string& body, const std::string& rest = "") {
  return testing::parse_model("opset 17\ninput m: int64[]\n" + inputs + "\n" + call +
                              "\nbody {\ninput i: int64[]\ninput go: bool[]\n" + body + "\n}\n" + rest + "\noutput s\n");
}

NamedValues rows() { return {{"m", kNoTurns}, {"x", floats({3, 2}, {1, 2, 3, 4, 5, 6})}}; }

constexpr const char* kStates = "t, s = Loop(m, _, x)";

TEST(UnrunBody, AStateThatTheBodyDeclares) {
  expect_shape(loop("input x: float32[n,2]", kStates, R"(
    input state: float32[3,2]
    on = Identity(go)
    next = Identity(state)
    item = Exp(state)
    output on
    output next
    output item)"),
               rows(), {0, 3, 2});
}

TEST(UnrunBody, AStateThatIsPassedOn) {
  expect_shape(loop("input x: float32[n,2]", kStates, R"(
    input state: float32[3,2]
    on = Identity(go)
    next = Identity(state)
    item = Identity(state)
    output on
    output next
    output item)"),
               rows(), {0, 3, 2});
}

TEST(UnrunBody, AnInnerValueThatTheFileDeclares) {
  Model model = loop("input x: float32[n,2]", kStates, R"(
    input state: float32
    on = Identity(go)
    next = Identity(state)
    inner = Exp(state)
    item = Identity(inner)
    output on
    output next
    output item)");
  Graph& body = *model.graph.node(0).subgraphs[0].graph;
  ValueInfo& inner = body.value(*body.find("inner"));
  inner.type = inner.declared = Type::tensor(DataType::float32, to_sym(Shape{3, 2}));
  expect_shape(model, rows(), {0, 3, 2});
}

TEST(UnrunBody, AnOutputThatTheBodyDeclares) {
  expect_shape(loop("input x: float32[n,2]", "s = Loop(m, _)", R"(
    on = Identity(go)
    found = NonZero(x)
    item = Cast(found) {to=1}
    output on
    output item: float32[2,6])"),
               rows(), {0, 2, 6});
}

TEST(UnrunBody, UnknownExtentsAreZero) {
  expect_shape(loop("input x: float32[n,2]", "s = Loop(m, _)", R"(
    on = Identity(go)
    item = Exp(x)
    output on
    output item)"),
               rows(), {0, 0, 2});
}

// A declaration that cannot be true leaves what is inferred.
TEST(UnrunBody, AFalseDeclaration) {
  expect_shape(loop("input x: float32[3,2]", kStates, R"(
    input state: float32[5,7]
    on = Identity(go)
    next = Identity(state)
    item = Add(state, x)
    output on
    output next
    output item)"),
               rows(), {0, 3, 2});
}

TEST(UnrunBody, ALoopInALoopInABranch) {
  const Model model = testing::parse_model(R"(
    opset 17
    input m: int64[]
    input c: bool[]
    input x: float32[n,2]
    constant axes: int64[2] 0 1
    s = If(c)
      then_branch {
        u, all = Loop(m, _, x)
          body {
            input i: int64[]
            input go: bool[]
            input state: float32[3,2]
            on = Identity(go)
            next = Identity(state)
            v, item = Loop(m, _, state)
              body {
                input j: int64[]
                input more: bool[]
                input deep: float32[3,2]
                again = Identity(more)
                kept = Identity(deep)
                e = Neg(deep)
                output again
                output kept
                output e
              }
            output on
            output next
            output item
          }
        output all
      }
      else_branch {
        four = Unsqueeze(x, axes)
        output four
      }
    output s
  )");
  NamedValues inputs = rows();
  inputs.add("c", Tensor::scalar(true));
  expect_shape(model, inputs, {0, 0, 3, 2});
}

// Values computed from the result's shape agree with it.
TEST(UnrunBody, ExtentsOfTheResultAreNotTakenFromTheInputs) {
  const Model model = loop("input x: float32[n,2]\nconstant one: int64[1] 1", "all = Loop(m, _)", R"(
    on = Identity(go)
    item = Exp(x)
    output on
    output item)",
                           "sizes = Shape(all)\nrow = Gather(sizes, one)\ns = ConstantOfShape(row)\noutput all");
  expect_shape(model, rows(), {0, 0, 2}, "all");
  expect_shape(model, rows(), {0});
  const NamedValues twice{{"m", Tensor::scalar<std::int64_t>(2)}, {"x", rows().tensor("x")}};
  expect_shape(model, twice, {2, 3, 2}, "all");
  expect_shape(model, twice, {3});
}

TEST(UnrunBody, AScanOfNoSlices) {
  const Model model = testing::parse_model(R"(
    opset 17
    input x: float32[n,2]
    input y: float32[k,2]
    t, s = Scan(y, x) {num_scan_inputs=1, scan_output_axes=[1]}
      body {
        input state: float32[3,2]
        input slice: float32[2]
        next = Identity(state)
        item = Add(state, slice)
        output next
        output item
      }
    output s
  )");
  const NamedValues none{{"x", floats({0, 2}, {})}, {"y", floats({3, 2}, {1, 2, 3, 4, 5, 6})}};
  expect_shape(model, none, {3, 0, 2});
}

TEST(UnrunBody, ABatchOfNoSamplesAndSamplesOfNoSlices) {
  const Model model = testing::parse_model(R"(
    opset 8
    input lengths: int64[b]
    input y: float32[b,k]
    input x: float32[b,n,k]
    t, s = Scan(lengths, y, x) {num_scan_inputs=1}
      body {
        input state: float32
        input slice: float32
        next = Add(state, slice)
        item = Identity(next)
        output next
        output item
      }
    output t
    output s
  )");
  const Tensor no_lengths = Tensor::of<std::int64_t>(Shape{0}, {});
  const NamedValues none{{"lengths", no_lengths}, {"y", floats({0, 2}, {})}, {"x", floats({0, 3, 2}, {})}};
  expect_shape(model, none, {0, 2}, "t");
  const NamedValues some{{"lengths", Tensor::of<std::int64_t>(Shape{2}, {0, 1})},
                         {"y", floats({2, 2}, {1, 2, 3, 4})},
                         {"x", floats({2, 1, 2}, {1, 1, 1, 1})}};
  expect_shape(model, some, {2, 1, 2});
  EXPECT_EQ(testing::elements(run(model, some, true).tensor("s")), (testing::Floats{0, 0, 4, 5}));
}

// The engine's own notes stay out of files.
TEST(UnrunBody, FilesHaveNoAttributeOfTheEngine) {
  Model model = loop("input x: float32[n,2]", "s = Loop(m, _)", "on = Identity(go)\nitem = Exp(x)\noutput on\noutput item");
  const std::string before = write_model(model);
  model.graph.node(0).attributes.set("sdx:element_types", std::vector<Type>{Type::tensor(DataType::float32)});
  EXPECT_EQ(write_model(model), before);
}

}  // namespace
}  // namespace sdx
