#include "session/graphs/convert_opset.h"

#include <gtest/gtest.h>

#include <sdx/session.hpp>

#include "base/error.h"
#include "ops/infer.h"
#include "support/errors.h"
#include "support/graph_text.h"
#include "support/session.h"

namespace sdx::session {
namespace {

Tensor numbers(const Shape& shape) {
  Tensor t(DataType::float32, shape);
  float next = -1.37F;
  for (float& f : t.mutable_values<float>()) {
    f = next;
    next = next > 1.5F ? next - 2.91F : next + 0.43F;
  }
  return t;
}

std::vector<Tensor> outputs(const Model& model, const NamedValues& feeds) {
  const Session s = testing::open(model);
  std::vector<Tensor> out;
  for (const NamedValue& v : s.run(feeds)) out.push_back(v.value.tensor());
  return out;
}

struct Case {
  const char* name;
  int opset;
  Shape shape;  // of the input x
  const char* nodes;
};

void PrintTo(const Case& c, std::ostream* to) { *to << c.name; }

const Case kCases[] = {
    {"Axes",
     11,
     {2, 3, 4},
     "a = ReduceMean(x) {axes=[1]}\nb = Squeeze(a) {axes=[1]}\nc = Unsqueeze(b) {axes=[0]}\ny = ReduceSum(c) {axes=[2], "
     "keepdims=0}"},
    {"EvenAndUnevenSplit",
     11,
     {4, 6},
     "a, b = Split(x) {axis=0}\nc, d = Split(a) {axis=1, split=[2, 4]}\ny = Concat(d, b) {axis=1}"},
    {"SplitOf13", 13, {4, 6}, "a, b = Split(x) {axis=0}\ny = Sub(a, b)"},
    {"SoftmaxOverSeveralAxes", 11, {2, 3, 4}, "a = Softmax(x)\nb = LogSoftmax(x) {axis=2}\ny = Add(a, b)"},
    {"SoftmaxOverAll", 9, {2, 3}, "y = Softmax(x) {axis=0}"},
    {"SliceAndTopK", 9, {3, 8}, "a = Slice(x) {starts=[0, 2], ends=[3, 7], axes=[0, 1]}\ny, i = TopK(a) {k=3}"},
    {"PadAndClip", 10, {2, 3}, "a = Pad(x) {pads=[1, 0, 0, 2], value=0.25}\ny = Clip(a) {min=-0.5, max=0.75}"},
    {"ClipFromAbove", 10, {2, 3}, "y = Clip(x) {max=0.5}"},
    {"Upsample", 9, {1, 1, 3, 2}, "constant s: float32[4] 1 1 2 2.5\ny = Upsample(x, s) {mode=\"nearest\"}"},
    {"UpsampleByAttribute", 8, {1, 1, 3, 2}, "y = Upsample(x) {mode=\"linear\", scales=[1.0, 1.0, 2.0, 2.0]}"},
    {"ResizeOf10", 10, {1, 1, 4, 4}, "constant s: float32[4] 1 1 0.5 1.75\ny = Resize(x, s) {mode=\"linear\"}"},
    {"Scatter", 10, {3, 3}, "constant i: int64[1,3] 2 0 1\nconstant u: float32[1,3] 9 8 7\ny = Scatter(x, i, u)"},
    {"DropoutInInference", 9, {2, 3}, "y = Dropout(x) {ratio=0.75}"},
    {"BatchNormalization",
     7,
     {2, 2, 3},
     "constant s: float32[2] 2 3\nconstant b: float32[2] 0.5 -1\nconstant m: float32[2] 0.1 "
     "0.2\nconstant v: float32[2] 0.7 1.3\ny = BatchNormalization(x, s, b, m, v) {epsilon=0.01}"},
    {"GridSample", 16, {1, 1, 3, 3}, "constant g: float32[1,1,2,2] 0.3 -0.2 0.9 0.1\ny = GridSample(x, g) {mode=\"bicubic\"}"},
    {"WhatMeansTheSame", 13, {2, 3}, "constant w: float32[3,2] 1 2 3 4 5 6\na = Relu(x)\nb = Exp(a)\ny = MatMul(b, w)"},
};

class ConvertedOpset : public ::testing::TestWithParam<Case> {};

TEST_P(ConvertedOpset, ComputesTheSame) {
  const Case& c = GetParam();
  std::string text = "opset " + std::to_string(c.opset) + "\ninput x: float32[";
  for (std::size_t i = 0; i < c.shape.size(); ++i) text += (i != 0 ? "," : "") + std::to_string(c.shape[i]);
  Model model = testing::parse_model(text + "]\n" + c.nodes + "\noutput y\n");
  ops::infer_in_place(model.graph);
  const NamedValues feeds{{"x", numbers(c.shape)}};
  const std::vector<Tensor> before = outputs(model, feeds);
  convert_opset(model.graph, 21);
  model.opsets.at("") = 21;
  ops::infer_in_place(model.graph);
  model.graph.verify();
  for (const Node& n : model.graph.nodes()) EXPECT_EQ(n.version, 21) << n.op_type;
  const std::vector<Tensor> after = outputs(model, feeds);
  ASSERT_EQ(before.size(), after.size());
  ASSERT_EQ(before[0].shape(), after[0].shape());
  for (std::size_t i = 0; i < before[0].values<float>().size(); ++i) {
    EXPECT_NEAR(before[0].values<float>()[i], after[0].values<float>()[i], 1e-6) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvertedOpset, ::testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

TEST(ConvertOpset, OfOtherOpsetsAlsoInSubgraphs) {
  Model model = testing::parse_model(
      "opset 11\ninput c: bool[]\ninput x: float32[2,3]\n"
      "y = If(c)\n  then_branch {\n    a = ReduceSum(x) {axes=[1]}\n    output a\n  }\n"
      "  else_branch {\n    b = ReduceMax(x) {axes=[1]}\n    output b\n  }\noutput y\n");
  ops::infer_in_place(model.graph);
  convert_opset(model.graph, 21);
  for (const Subgraph& s : model.graph.node(0).subgraphs) {
    EXPECT_EQ(s.graph->node(0).version, 21);
    EXPECT_EQ(s.graph->node(0).inputs.size(), 2U);
  }
}

TEST(ConvertOpset, NewerOnesWhereTheyMeanTheSame) {
  Model model = testing::parse_model("opset 23\ninput x: float32[2,3]\ny = Relu(x)\noutput y\n");
  ops::infer_in_place(model.graph);
  convert_opset(model.graph, 21);
  EXPECT_EQ(model.graph.node(0).version, 21);
}

TEST(ConvertOpset, WhatThereIsNoRuleForIsNamed) {
  Model model = testing::parse_model(
      "opset 18\ninput x: float32[1,4,2]\nconstant s: float32[2] 1 1\ny = GroupNormalization(x, s, s) {num_groups=2}\noutput "
      "y\n");
  ops::infer_in_place(model.graph);
  testing::expect_error(ErrorCode::not_implemented, [&] { convert_opset(model.graph, 21); }, {"GroupNormalization"});
}

}  // namespace
}  // namespace sdx::session
