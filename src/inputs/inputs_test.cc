#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "inputs/index_bounds.h"
#include "inputs/random_input.h"
#include "inputs/shapes.h"
#include "ops/infer.h"
#include "support/graph_text.h"
#include "tensor/element.h"

namespace sdx::inputs {
namespace {

ValueSpec spec(std::string name, DataType dtype, Shape shape, std::vector<std::string> symbols) {
  ValueSpec s;
  s.name = std::move(name);
  s.dtype = dtype;
  s.has_shape = true;
  s.shape = std::move(shape);
  s.symbols = std::move(symbols);
  return s;
}

TEST(Shapes, OpenExtentsGetWhatIsUsual) {
  EXPECT_EQ(concrete_shape(spec("image", DataType::float32, {-1, 3, -1, -1}, {"N", "", "", ""}), {}), (Shape{1, 3, 224, 224}));
  EXPECT_EQ(concrete_shape(spec("image", DataType::uint8, {-1, -1, -1, 3}, {"", "h", "w", ""}), {}), (Shape{1, 224, 224, 3}));
  EXPECT_EQ(concrete_shape(spec("ids", DataType::int64, {-1, -1}, {"batch", "sequence"}), {}), (Shape{1, 16}));
  EXPECT_EQ(concrete_shape(spec("ids", DataType::int64, {-1, -1}, {"", ""}), {}), (Shape{1, 16}));
  EXPECT_EQ(concrete_shape(spec("mask", DataType::int64, {-1, -1}, {"b", "past + new"}), {{"b", 2}, {"past", 3}, {"new", 4}}),
            (Shape{2, 7}));
  std::vector<ChosenExtent> chosen;
  concrete_shape(spec("x", DataType::float32, {-1, -1}, {"batch", "time"}), {}, &chosen);
  EXPECT_EQ(describe(chosen), "time = 16");
}

TEST(Shapes, ASymbolHasOneSizeInAllInputs) {
  const ValueSpec a = spec("a", DataType::int8, {-1, -1}, {"M", "K"}), b = spec("b", DataType::float32, {-1, -1}, {"K", "N"});
  std::vector<ChosenExtent> chosen;
  const Dimensions both = with_symbols({a, b}, {}, {}, &chosen);
  EXPECT_EQ(concrete_shape(a, both), (Shape{1, 16}));
  EXPECT_EQ(concrete_shape(b, both), (Shape{16, 1}));
  EXPECT_EQ(describe(chosen), "K = 16, N = 1");
  const Dimensions given = with_symbols({a, b}, {{"b", {5, 7}}}, {});
  EXPECT_EQ(concrete_shape(a, given), (Shape{1, 5}));
  EXPECT_EQ(concrete_shape(a, with_symbols({a, b}, {{"b", {5, 7}}}, {{"K", 9}})), (Shape{1, 9}));
}

TEST(Shapes, SumsFollowTheirParts) {
  const ValueSpec ids = spec("ids", DataType::int64, {-1, -1}, {"batch", "seq"});
  const ValueSpec past = spec("past", DataType::float32, {-1, 2, -1, 4}, {"batch", "", "past", ""});
  const ValueSpec mask = spec("mask", DataType::int64, {-1, -1}, {"batch", "past + seq"});
  EXPECT_EQ(concrete_shape(mask, with_symbols({ids, past, mask}, {}, {})), (Shape{1, 32}));
}

TEST(Shapes, AWordForAnyExtentIsNoSymbol) {
  const ValueSpec image = spec("image", DataType::float32, {-1, -1, -1, 3}, {"None", "None", "None", ""});
  const ValueSpec other = spec("other", DataType::float32, {-1, 4}, {"None", ""});
  const Dimensions none = with_symbols({image, other}, {{"other", {5, 4}}}, {});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(concrete_shape(image, none), (Shape{1, 224, 224, 3}));
}

TEST(Shapes, BatchAxis) {
  const ValueSpec open = spec("a", DataType::float32, {-1, 4}, {"batch", ""});
  const ValueSpec fixed = spec("b", DataType::float32, {1, 4}, {"", ""});
  EXPECT_EQ(find_batch_axis({fixed, open}).inputs, (std::vector<std::string>{"a"}));
  EXPECT_EQ(find_batch_axis({fixed, open}).symbol, "batch");
  EXPECT_EQ(find_batch_axis({fixed}).fixed, 1);
  EXPECT_TRUE(find_batch_axis({}).inputs.empty());
}

TEST(Shapes, RowsRepeat) {
  const Tensor t = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor r = repeat_rows(t, 3);
  EXPECT_EQ(r.shape(), (Shape{3, 2}));
  EXPECT_EQ(r.values<float>()[4], 1);
  EXPECT_EQ(repeat_rows(t, 1).size(), 2);
  EXPECT_THROW(repeat_rows(Tensor::scalar<float>(1), 2), Error);
}

TEST(RandomInput, IsRepeatable) {
  const Tensor a = random_tensor(DataType::float32, {100}, 1);
  const Tensor b = random_tensor(DataType::float32, {100}, 1);
  const Tensor c = random_tensor(DataType::float32, {100}, 2);
  EXPECT_EQ(to_floats(a), to_floats(b));
  EXPECT_NE(to_floats(a), to_floats(c));
  for (const float v : to_floats(a)) EXPECT_TRUE(v >= 0 && v <= 1);
  for (const std::int64_t v : to_ints(random_tensor(DataType::int64, {100}, 3))) EXPECT_TRUE(v >= 0 && v < 10);
  EXPECT_EQ(random_tensor(DataType::string, {2}, 0).values<std::string>()[0].size(), 1U);
}

IndexBounds bounds_in(std::string_view text) {
  Graph graph = testing::parse_model(text).graph;
  ops::infer_in_place(graph);
  return index_bounds(graph);
}

TEST(IndexBounds, OfTables) {
  const IndexBounds bounds = bounds_in(R"(
input ids: int64[1,n]
input types: int32[1,n]
input positions: int64[1,n]
input mask: int64[1,n]
constant words: float32[9,4] 0
constant kinds: float32[2,4] 0
constant places: float32[6,4] 0
constant two: int64[] 2
constant axis: int64[1] 0
a = Gather(words, ids)
wide = Cast(types) {to=7}
flat = Squeeze(wide, axis)
b = Gather(kinds, flat)
after = Add(positions, two)
c = Gather(places, after)
m = Cast(mask) {to=1}
s = Add(a, b)
t = Add(s, c)
output t
output m
)");
  EXPECT_EQ(bounds, (IndexBounds{{"ids", {0, 8}}, {"types", {0, 1}}, {"positions", {-2, 3}}}));
}

TEST(IndexBounds, AttentionMasksHideNothing) {
  const IndexBounds bounds = bounds_in(R"(
input attention_mask: int64[1,n]
input other: int64[1,n]
y = Add(attention_mask, other)
output y
)");
  ASSERT_EQ(bounds.size(), 1U);
  EXPECT_EQ(bounds.at("attention_mask").low, 1);
  EXPECT_EQ(bounds.at("attention_mask").high, 1);
}

TEST(IndexBounds, ThroughArithmeticWithConstants) {
  const IndexBounds bounds = bounds_in(R"(
input below: int64[3]
input from: int64[3]
input double: int64[3]
input half: int64[3]
input negative: int64[3]
input unknown: int64[3]
constant table: float32[10,4] 0
constant c: int64[3] 20 21 22
constant two: int64[] 2
constant seven: int64[] 7
i = Sub(below, c)
j = Sub(seven, from)
k = Mul(double, two)
l = Div(half, two)
m = Neg(negative)
p = Mul(unknown, unknown)
a = Gather(table, i)
b = Gather(table, j)
d = Gather(table, k)
e = Gather(table, l)
f = Gather(table, m)
g = Gather(table, p)
r = Sum(a, b, d, e, f, g)
output r
)");
  EXPECT_EQ(bounds,
            (IndexBounds{{"below", {22, 29}}, {"from", {-2, 7}}, {"double", {0, 4}}, {"half", {0, 18}}, {"negative", {-9, 0}}}));
}

TEST(IndexBounds, AlongAxesAndInBranches) {
  const IndexBounds bounds = bounds_in(R"(
input c: bool[]
input i: int64[2,3]
input j: int64[2,1]
input k: int64[1]
input n: int32[2]
input x: float32[4,2,5]
constant w: float32[1,4,5] 0
constant f: float32[1,1,5] 0
constant r: float32[1,1,1] 0
b = If(c)
  then_branch {
    t = Gather(w, i) {axis=1}
    output t
  }
  else_branch {
    e = GatherND(x, j)
    output e
  }
values, places = TopK(x, k)
y, h = RNN(x, f, r, _, n) {hidden_size=1}
output values
output b
)");
  EXPECT_EQ(bounds.at("i"), (IntegerRange{0, 3}));
  EXPECT_EQ(bounds.at("j"), (IntegerRange{0, 3}));
  EXPECT_EQ(bounds.at("k"), (IntegerRange{0, 5}));
  EXPECT_EQ(bounds.at("n"), (IntegerRange{0, 4}));
}

TEST(RandomInput, IntegersStayInTheirRange) {
  const auto drawn = [](const IntegerRange& range) {
    const std::vector<std::int64_t> values = to_ints(random_tensor(DataType::int64, {1000}, 5, range));
    return IntegerRange{*std::min_element(values.begin(), values.end()), *std::max_element(values.begin(), values.end())};
  };
  EXPECT_EQ(drawn({}), (IntegerRange{0, 9}));
  EXPECT_EQ(drawn({0, 30000}), (IntegerRange{0, 9}));
  EXPECT_EQ(drawn({-2, 1}), (IntegerRange{0, 1}));
  EXPECT_EQ(drawn({22, 29}), (IntegerRange{22, 29}));
  EXPECT_EQ(drawn({100, 1000}), (IntegerRange{100, 109}));
  EXPECT_EQ(drawn({-30, -4}), (IntegerRange{-13, -4}));
  EXPECT_EQ(to_ints(random_tensor(DataType::int64, {50}, 5, {0, 500})), to_ints(random_tensor(DataType::int64, {50}, 5)));
}

TEST(RandomInput, FillsOpenExtents) {
  ValueSpec spec;
  spec.has_shape = true;
  spec.shape = {-1, 3, -1};
  spec.symbols = {"batch", "", ""};
  EXPECT_EQ(concrete_shape(spec, {{"batch", 4}}), (Shape{4, 3, 1}));
  spec.has_shape = false;
  EXPECT_EQ(concrete_shape(spec, {}), (Shape{1}));
}

}  // namespace
}  // namespace sdx::inputs
