// Runs whose inputs give one symbol two sizes, and other declarations that do not hold: results are those of the graph as it
// stands in the file, or an error.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "onnx/writer.h"
#include "support/session.h"

namespace sdx::session {
namespace {

using testing::elements;
using testing::error_of;
using testing::expect_parts;
using testing::floats;
using testing::Floats;
using testing::open;

Tensor numbers(DataType type, Shape shape) {
  Tensor t(type, std::move(shape));
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const std::int64_t v = 1 + i * 7 % 23;
    if (type == DataType::float32) t.mutable_values<float>()[i] = static_cast<float>(v);
    if (type == DataType::uint8) t.mutable_values<std::uint8_t>()[i] = static_cast<std::uint8_t>(v);
  }
  return t;
}

std::size_t warnings_of_sizes(const Session& s) {
  const std::vector<std::string> warnings = s.report().warnings;
  return static_cast<std::size_t>(std::count_if(warnings.begin(), warnings.end(), [](const std::string& w) {
    return w.starts_with("symbol '") && w.find("a symbol of its own") != std::string::npos;
  }));
}

std::optional<NamedValues> run_or_refuse(const Session& s, const NamedValues& inputs) {
  try {
    return s.run(inputs);
  } catch (const Error& e) {
    EXPECT_NE(e.code(), ErrorCode::internal) << e.what();
    return std::nullopt;
  }
}

void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.type_string(), b.type_string());
  if (a.dtype() != DataType::float32) {
    EXPECT_TRUE(a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
    return;
  }
  for (std::int64_t i = 0; i < a.size(); ++i) EXPECT_FLOAT_EQ(a.values<float>()[i], b.values<float>()[i]) << i;
}

Session open_bytes(const std::string& bytes, bool optimize) {
  SessionOptions options;
  options.optimize = optimize;
  return Session::from_bytes(std::as_bytes(std::span<const char>(bytes.data(), bytes.size())), options);
}

enum class Expect { runs, refused };

// With passes and without them; twice, for plans that are kept.
void compare_bytes(const std::string& bytes, const NamedValues& inputs, Expect expected = Expect::runs) {
  const Session plain = open_bytes(bytes, false), fast = open_bytes(bytes, true);
  const auto want = run_or_refuse(plain, inputs);
  EXPECT_EQ(want.has_value(), expected == Expect::runs);
  for (int i = 0; i < 2; ++i) {
    const auto got = run_or_refuse(fast, inputs);
    ASSERT_EQ(got.has_value(), want.has_value());
    for (std::size_t k = 0; want && k < want->size(); ++k) expect_same((*got)[k].value.tensor(), (*want)[k].value.tensor());
  }
}

void compare(const std::string& text, const NamedValues& inputs, Expect expected = Expect::runs) {
  SCOPED_TRACE(text);
  compare_bytes(testing::model_bytes(text), inputs, expected);
}

// The model with other extents declared for one of its inputs.
std::string declared_anew(const std::string& text, const std::string& input, SymShape shape) {
  Model model = testing::parse_model(text);
  ValueInfo& info = model.graph.value(*model.graph.find(input));
  info.declared.shape = info.type.shape = std::move(shape);
  return write_model(model);
}

constexpr const char* kQuantised = R"(
  opset com.microsoft 1
  constant s: float32[] 0.5
  constant z: uint8[] 3
  constant sy: float32[] 1.5
)";

TEST(Symbols, QuantisedSumsOfTwoSizesBroadcast) {
  const std::string text = std::string(kQuantised) + R"(
    input a: uint8[b,n]
    input b: uint8[b,n]
    y = com.microsoft.QLinearAdd(a, s, z, b, s, z, sy, z)
    output y
  )";
  for (const Shape& other : {Shape{1, 64}, Shape{5, 1}, Shape{1, 1}, Shape{5, 64}}) {
    compare(text, {{"a", numbers(DataType::uint8, {5, 64})}, {"b", numbers(DataType::uint8, other)}});
    compare(text, {{"a", numbers(DataType::uint8, other)}, {"b", numbers(DataType::uint8, {5, 64})}});
  }
}

TEST(Symbols, QuantisedProductsOfTwoSizesBroadcast) {
  const std::string text = std::string(kQuantised) + R"(
    input a: uint8[b,n]
    input b: uint8[b,n]
    y = com.microsoft.QLinearMul(a, s, z, b, s, z, sy, z)
    output y
  )";
  compare(text, {{"a", numbers(DataType::uint8, {5, 64})}, {"b", numbers(DataType::uint8, {1, 64})}});
  compare(text, {{"a", numbers(DataType::uint8, {1, 64})}, {"b", numbers(DataType::uint8, {5, 1})}});
  const std::string images = std::string(kQuantised) + R"(
    input a: uint8[n,h,w,c]
    input b: uint8[n,1,1,c]
    y = com.microsoft.QLinearMul(a, s, z, b, s, z, sy, z)
    output y
  )";
  compare(images, {{"a", numbers(DataType::uint8, {2, 3, 3, 8})}, {"b", numbers(DataType::uint8, {1, 1, 1, 8})}});
  compare(images, {{"a", numbers(DataType::uint8, {2, 3, 3, 8})}, {"b", numbers(DataType::uint8, {2, 1, 1, 1})}});
  compare(images, {{"a", numbers(DataType::uint8, {1, 3, 3, 8})}, {"b", numbers(DataType::uint8, {4, 1, 1, 8})}});
}

TEST(Symbols, ResizeToTheBatchOfAnotherInput) {
  const std::string text = R"(
    input x: float32[n,c,h,w]
    input like: float32[n,c,q]
    constant at: int64[2] 0 1
    constant size: int64[2] 6 8
    all = Shape(like)
    lead = Gather(all, at)
    sizes = Concat(lead, size) {axis=0}
    y = Resize(x, _, _, sizes) {mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"}
    output y
  )";
  compare(text, {{"x", numbers(DataType::float32, {2, 3, 3, 4})}, {"like", numbers(DataType::float32, {2, 3, 1})}});
  compare(text, {{"x", numbers(DataType::float32, {1, 3, 3, 4})}, {"like", numbers(DataType::float32, {2, 3, 1})}});
  compare(text, {{"x", numbers(DataType::float32, {2, 3, 3, 4})}, {"like", numbers(DataType::float32, {4, 6, 1})}});
}

TEST(Symbols, WhatTheSameSymbolsMakeNeedlessIsNeededForTwoSizes) {
  const std::string expand = R"(
    input x: float32[b,n]
    input like: float32[b,n]
    to = Shape(like)
    y = Expand(x, to)
    output y
  )";
  compare(expand, {{"x", numbers(DataType::float32, {1, 4})}, {"like", numbers(DataType::float32, {3, 4})}});
  compare(expand, {{"x", numbers(DataType::float32, {3, 4})}, {"like", numbers(DataType::float32, {1, 4})}});
  compare(expand, {{"x", numbers(DataType::float32, {3, 4})}, {"like", numbers(DataType::float32, {2, 4})}}, Expect::refused);
  const std::string reshape = R"(
    input x: float32[b,n]
    input like: float32[b,n]
    to = Shape(like)
    y = Reshape(x, to)
    output y
  )";
  compare(reshape, {{"x", numbers(DataType::float32, {2, 6})}, {"like", numbers(DataType::float32, {3, 4})}});
  compare(reshape, {{"x", numbers(DataType::float32, {2, 6})}, {"like", numbers(DataType::float32, {2, 4})}}, Expect::refused);
  const std::string slice = R"(
    input x: float32[n]
    input like: float32[n]
    constant zero: int64[1] 0
    end = Shape(like)
    y = Slice(x, zero, end)
    output y
  )";
  compare(slice, {{"x", numbers(DataType::float32, {5})}, {"like", numbers(DataType::float32, {3})}});
  const std::string pad = R"(
    input x: float32[n]
    input like: float32[n]
    a = Shape(x)
    b = Shape(like)
    more = Sub(b, a)
    constant zero: int64[1] 0
    pads = Concat(zero, more) {axis=0}
    y = Pad(x, pads)
    output y
  )";
  compare(pad, {{"x", numbers(DataType::float32, {3})}, {"like", numbers(DataType::float32, {5})}});
}

TEST(Symbols, MayRepeatWithinOneInput) {
  const std::string text = R"(
    input x: float32[n,n]
    constant at: int64[] 0
    s = Shape(x)
    first = Gather(s, at) {axis=0}
    constant axis: int64[1] 0
    one = Unsqueeze(first, axis)
    to = Concat(one, one) {axis=0}
    y = Reshape(x, to)
    output y
  )";
  compare(text, {{"x", numbers(DataType::float32, {3, 3})}});
  compare(text, {{"x", numbers(DataType::float32, {2, 3})}}, Expect::refused);
}

TEST(Symbols, OfTwoSizesAreReportedOnce) {
  const Session s = open("input a: float32[n]\ninput b: float32[n]\ny = Add(a, b)\noutput y\n");
  const Tensor one = floats({1}, {10}), three = floats({3}, {1, 2, 3});
  EXPECT_EQ(elements(s.run({{"a", three}, {"b", three}}).tensor("y")), (Floats{2, 4, 6}));
  EXPECT_EQ(warnings_of_sizes(s), 0U);
  EXPECT_EQ(elements(s.run({{"a", three}, {"b", one}}).tensor("y")), (Floats{11, 12, 13}));
  EXPECT_EQ(elements(s.run({{"a", one}, {"b", three}}).tensor("y")), (Floats{11, 12, 13}));
  ASSERT_EQ(warnings_of_sizes(s), 1U);
  expect_parts(s.report().warnings.back(), {"'n'", "3 in input 'a'", "1 in input 'b'", "float32[n]"});
  EXPECT_EQ(elements(s.run({{"a", one}, {"b", one}}).tensor("y")), (Floats{20}));
}

TEST(Symbols, OfTensorsWithoutElementsAreNotReported) {
  const Session s =
      open("input a: float32[n,2]\ninput b: float32[n,2]\ninput c: float32[n,2]\ny = Concat(a, b, c) {axis=0}\noutput y\n");
  const Tensor none = numbers(DataType::float32, {0, 2}), one = floats({1, 2}, {1, 2}), two = floats({2, 2}, {3, 4, 5, 6});
  EXPECT_EQ(elements(s.run({{"a", none}, {"b", one}, {"c", one}}).tensor("y")), (Floats{1, 2, 1, 2}));
  EXPECT_EQ(warnings_of_sizes(s), 0U);
  EXPECT_EQ(elements(s.run({{"a", none}, {"b", one}, {"c", two}}).tensor("y")), (Floats{1, 2, 3, 4, 5, 6}));
  ASSERT_EQ(warnings_of_sizes(s), 1U);
  expect_parts(s.report().warnings.back(), {"1 in input 'b'", "2 in input 'c'"});
}

TEST(Symbols, ThatCannotWorkNameBothSizes) {
  const Session s = open("input a: float32[n]\ninput b: float32[n]\ny = Add(a, b)\noutput y\n");
  const NamedValues inputs{{"a", floats({2}, {1, 2})}, {"b", floats({3}, {1, 2, 3})}};
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { s.run(inputs); }),
               {"symbol 'n' is 2 in input 'a'", "3 in input 'b'", "does not work at this size"});
  EXPECT_EQ(warnings_of_sizes(s), 0U);
}

TEST(Symbols, OfDefaultsThatAreOverridden) {
  const std::string text = R"(
    input x: float32[n]
    input w: float32[3] = 1 2 3
    input v: float32[1] = 5
    to = Shape(w)
    y = Expand(x, to)
    z = Add(y, v)
    output z
  )";
  const Tensor one = floats({1}, {7}), four = floats({4}, {1, 2, 3, 4});
  for (const std::string& bytes :
       {testing::model_bytes(text), declared_anew(text, "w", {Dim::symbol("n")}), declared_anew(text, "v", {Dim::symbol("n")})}) {
    compare_bytes(bytes, {{"x", one}});
    compare_bytes(bytes, {{"x", one}, {"w", four}});
    compare_bytes(bytes, {{"x", floats({3}, {1, 2, 3})}, {"v", floats({3}, {1, 2, 3})}});
    compare_bytes(bytes, {{"x", one}, {"v", floats({3}, {1, 2, 3})}});
  }
}

// Nobody compares what a sequence holds with its declaration.
TEST(Symbols, OfWhatSequencesAndOptionalsHold) {
  const std::string text = R"(
    input s: sequence(float32[2,n])
    input like: float32[2,n]
    constant at: int64[] 0
    x = SequenceAt(s, at)
    to = Shape(like)
    y = Expand(x, to)
    z = Mul(x, x)
    output y
    output z
  )";
  Sequence s{DataType::float32, {numbers(DataType::float32, {1, 4})}};
  compare(text, {{"s", Value(s)}, {"like", numbers(DataType::float32, {2, 4})}});
  const std::string optional = R"(
    input o: optional(float32[2,n])
    input like: float32[2,n]
    x = OptionalGetElement(o)
    to = Shape(like)
    y = Expand(x, to)
    output y
  )";
  compare(optional, {{"o", numbers(DataType::float32, {1, 4})}, {"like", numbers(DataType::float32, {2, 4})}});
}

// Inference gives up in a branch that cannot be valid: what the file declares there is not believed instead.
TEST(Symbols, OfBranchesThatCannotBeValid) {
  const std::string text = R"(
    input c: bool[]
    input x: float32[n]
    y = If(c)
      then_branch {
        a = Einsum() {equation="->"}
        output a
      }
      else_branch {
        b = Identity(x)
        output b
      }
    output y
  )";
  const Session session = open_bytes(testing::model_bytes(text), false);
  const Tensor x = floats({2}, {1, 2});
  EXPECT_EQ(elements(session.run({{"c", Tensor::scalar(false)}, {"x", x}}).tensor("y")), (Floats{1, 2}));
  EXPECT_THROW(session.run({{"c", Tensor::scalar(true)}, {"x", x}}), Error);
}

// An initializer may have the name of a value that the loop gives; its extents say nothing of that.
TEST(Symbols, DefaultsInLoopBodiesAreNeverUsed) {
  const std::string text = R"(
    input x: float32[n]
    input trips: int64[]
    constant one: float32[1] 1
    y = Loop(trips, _, x)
      body {
        input i: int64[]
        input go: bool[]
        input state: float32[64] = 5
        next = Add(state, one)
        output go
        output next
      }
    output y
  )";
  const NamedValues inputs{{"x", floats({2}, {10, 20})}, {"trips", Tensor::scalar<std::int64_t>(2)}};
  compare(text, inputs);
  EXPECT_EQ(elements(open(text).run(inputs).tensor("y")), (Floats{12, 22}));
}

TEST(Symbols, OfLoopBodies) {
  const std::string text = R"(
    input x: float32[?]
    input w: float32[?]
    input trips: int64[]
    y = Loop(trips, _, x)
      body {
        input i: int64[]
        input go: bool[]
        input state: float32[?]
        next = Add(state, w)
        output go
        output next
      }
    to = Shape(x)
    z = Expand(y, to)
    output y
    output z
  )";
  Model model = testing::parse_model(text);
  for (const NodeId id : {0U}) {
    Graph& body = *model.graph.node(id).subgraphs[0].graph;
    body.value(body.inputs()[2]).declared = Type::tensor(DataType::float32, {Dim(64)});
  }
  // The symbol that a file names "?" is a symbol all the same.
  for (const ValueId v : {model.graph.inputs()[0], model.graph.inputs()[1]}) {
    model.graph.value(v).declared = model.graph.value(v).type = Type::tensor(DataType::float32, {Dim::symbol("?")});
  }
  const std::string bytes = write_model(model);
  const auto inputs = [](std::int64_t x, std::int64_t w) {
    return NamedValues{{"x", numbers(DataType::float32, {x})},
                       {"w", numbers(DataType::float32, {w})},
                       {"trips", Tensor::scalar<std::int64_t>(3)}};
  };
  for (const auto& [x, w] : {std::pair<std::int64_t, std::int64_t>{1, 5}, {5, 1}, {5, 5}, {1, 1}}) {
    compare_bytes(bytes, inputs(x, w));
  }
}

// Kernels pack weights, and the graph drops them: a run whose shapes are settled late does not need them.
TEST(Symbols, WeightsOfNodesWhoseInputHasAnyRank) {
  const auto constant = [](std::string_view name, const Shape& shape) {
    std::string text = fmt::format("constant {}: float32[{}]", name, fmt::join(shape, ","));
    for (std::int64_t i = 0; i < element_count(shape); ++i) text += fmt::format(" {}", static_cast<double>(i % 13 - 6) / 64);
    return text + "\n";
  };
  const std::string text = "input x: float32[n]\ninput to: int64[k]\n" + constant("w", {1, 64, 24}) + constant("u", {1, 64, 16}) +
                           "r = Reshape(x, to)\ny = LSTM(r, w, u) {hidden_size=16}\noutput y\n";
  Tensor to(DataType::int64, {3});
  std::ranges::copy(std::array<std::int64_t, 3>{5, 2, 24}, to.mutable_values<std::int64_t>().begin());
  compare(text, {{"x", numbers(DataType::float32, {240})}, {"to", to}});
}

}  // namespace
}  // namespace sdx::session
