#include <gtest/gtest.h>

#include <fstream>
#include <sdx/sdx.hpp>
#include <string>
#include <vector>

#include "dropin/custom/libraries.h"
#include "session/custom_ops.h"
#include "support/graph_text.h"

namespace sdx {
namespace {

const char* const kModel = R"(
  opset example 1
  input x: float32[n]
  y = example.ScaledSquare(x) {scale=3.0}
  z = example.Positive(x)
  w = Neg(z)
  output y
  output w
)";

std::string library(const std::string& name) { return std::string(SDX_TEST_LIBRARIES) + "/lib" + name + ".so"; }

Session open(const std::string& lib, const char* text = kModel) {
  const std::string bytes = testing::model_bytes(text);
  SessionOptions options;
  if (!lib.empty()) options.custom_ops = {lib};
  return Session::from_bytes(std::as_bytes(std::span<const char>(bytes.data(), bytes.size())), options);
}

NamedValues run(const Session& session) { return session.run({{"x", Tensor::of<float>({3}, {1.0F, -2.0F, 4.0F})}}); }

template <class F>
void expect_error(F&& call, const std::vector<std::string>& parts) {
  try {
    call();
  } catch (const Error& e) {
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << "'" << part << "' in: " << e.what();
    }
    return;
  }
  ADD_FAILURE() << "nothing was thrown";
}

TEST(CustomOps, KernelInferenceAndShapesThatOnlyTheDataKnow) {
  const Session session = open(library("example_ops"));
  EXPECT_EQ(session.outputs()[0].type, "float32[n]");
  const NamedValues out = run(session);
  EXPECT_EQ(out.tensor("y").values<float>()[2], 48.0F);
  ASSERT_EQ(out.tensor("w").shape(), (Shape{2}));
  EXPECT_EQ(out.tensor("w").values<float>()[1], -4.0F);
  EXPECT_EQ(session.report().nodes[0].kernel, "custom:libexample_ops.so");
}

TEST(CustomOps, BelongToTheSessionThatNamedThem) {
  const Session with = open(library("example_ops"));
  expect_error([] { open(""); }, {"ScaledSquare", "custom_ops"});
  const Session other = open(library("bad_ops_4"), "opset example 1\ninput x: float32[n]\ny = example.ScaledSquare(x)\noutput y");
  expect_error([&] { run(other); }, {"not to my taste", "libbad_ops_4.so"});
  EXPECT_EQ(run(with).tensor("y").values<float>()[0], 3.0F);
}

TEST(CustomOps, LibrariesThatCannotBeUsedAreNamedWithTheReason) {
  expect_error([] { open("nowhere.so"); }, {"nowhere.so", "there is no library"});
  expect_error([] { open("/etc/passwd"); }, {"/etc/passwd", "cannot load"});
  expect_error([] { open(library("bad_ops_1")); }, {"libbad_ops_1.so", "no licence"});
  expect_error([] { open(library("bad_ops_2")); }, {"libbad_ops_2.so", "version 99"});
  expect_error([] { open(library("bad_ops_6")); }, {"libbad_ops_6.so", "Relu", "built in"});
}

TEST(CustomOps, LibrariesMadeForOnnxRuntime) {
  session::read_ort_operators_with(&dropin::operators_of_library);
  const Session session = open(library("ort_ops"),
                               "opset ort.example 1\ninput x: float32[n]\ninput i: int64[2]\n"
                               "y = ort.example.Twice(x)\nj = ort.example.Twice(i)\noutput y\noutput j");
  const NamedValues out =
      session.run({{"x", Tensor::of<float>({3}, {1.0F, -2.0F, 4.0F})}, {"i", Tensor::of<std::int64_t>({2}, {5, -6})}});
  EXPECT_EQ(out.tensor("y").values<float>()[1], -4.0F);
  EXPECT_EQ(out.tensor("j").values<std::int64_t>()[1], -12);
  EXPECT_EQ(session.report().nodes[0].kernel, "custom:libort_ops.so");
  expect_error([] { open(library("ort_ops_refused")); }, {"libort_ops_refused.so", "no licence"});
  expect_error([] { open(library("ort_ops"), "opset ort.example 1\ninput x: bool[2]\ny = ort.example.Twice(x)\noutput y"); },
               {"Twice", "bool"});
}

TEST(CustomOps, WhatARunReportsThrowsOrForgets) {
  const char* const model = "opset example 1\ninput x: float32[n]\ny = example.ScaledSquare(x)\noutput y";
  expect_error([&] { run(open(library("bad_ops_3"), model)); }, {"libbad_ops_3.so", "run went wrong"});
  expect_error([&] { run(open(library("bad_ops_5"), model)); }, {"libbad_ops_5.so", "output 0 was not made"});
}

TEST(CustomOps, GradientInASession) {
  const Session s = open(library("example_ops"),
                         "opset 20\nopset example 1\nopset ai.onnx.preview.training 1\n"
                         "input x: float32[n]\n"
                         "y = example.ScaledSquare(x) {scale=3.0}\n"
                         "z = Mul(y, x)\n"
                         "g = ai.onnx.preview.training.Gradient(x) {xs=[\"x\"], y=\"z\"}\n"
                         "output g\n");
  const NamedValues out = s.run({{"x", Tensor::of<float>({2}, {1, 2})}});  // 3 x^3
  EXPECT_FLOAT_EQ(out.tensor("g").values<float>()[0], 9);
  EXPECT_FLOAT_EQ(out.tensor("g").values<float>()[1], 36);
}

TEST(CustomOps, GradientAsNodes) {
  Model model = testing::parse_model(kModel);
  session::bind_custom_ops(model.graph, session::load_custom_ops({library("example_ops")}));
  const ops::GradientNodes g = ops::custom_gradient(model.graph.node(0), {{"x"}, {"y"}, {"dy"}});
  ASSERT_EQ(g.nodes.size(), 3U);
  EXPECT_EQ(g.nodes[0].attributes.get_float("value_float"), 6.0F);
  EXPECT_EQ(g.nodes[2].inputs, (std::vector<std::string>{"dy", "slope"}));
  EXPECT_EQ(g.of_inputs, (std::vector<std::string>{"dx"}));
  expect_error([&] { ops::custom_gradient(model.graph.node(1), {{"x"}, {"z"}, {"dz"}}); }, {"no gradient", "Positive"});
}

}  // namespace
}  // namespace sdx
