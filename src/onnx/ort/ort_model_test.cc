#include "onnx/ort/ort_model.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "onnx/ort/versions.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "ops/infer.h"
#include "support/errors.h"
#include "support/graph_text.h"

namespace sdx {
namespace {

// Scalars, unknown and named extents, inputs that are left out, text, a subgraph with captures, sequences, unused constants.
const std::string kEverything =
    "opset 17\n"
    "opset com.microsoft 1\n"
    "input x: float32[n,3,?,?]\n"
    "input c: bool[]\n"
    "input words: string[?]\n"
    "constant k: float32[] 2.5\n"
    "constant unused: int64[2] 3 4\n"
    "constant names: string[2] \"a\" \"b\"\n"
    "a = Clip(x, _, k)\n"
    "b = If(c)\n"
    "  then_branch {\n"
    "    t = Mul(a, k)\n"
    "    output t\n"
    "  }\n"
    "  else_branch {\n"
    "    e = Add(a, a)\n"
    "    output e\n"
    "  }\n"
    "g = com.microsoft.Gelu(b)\n"
    "s = SequenceConstruct(g, a)\n"
    "m, _ = MaxPool(g) {kernel_shape=[2, 2], auto_pad=\"SAME_UPPER\"}\n"
    "q = Equal(words, words)\n"
    "output m as result\n"
    "output s\n"
    "output names\n"
    "output a\n";

Model inferred(const std::string& text) {
  Model model = testing::parse_model(text);
  ops::infer_in_place(model.graph);
  return model;
}

Model read(std::string_view bytes) { return read_model(std::as_bytes(std::span(bytes.data(), bytes.size())), nullptr, {}); }

TEST(OrtModel, HoldsWhatTheOnnxFileHolds) {
  Model model = inferred(kEverything);
  model.graph.name = "graph";  // the format has no name for it
  model.metadata = {{"author", "somebody"}, {"empty", ""}};
  model.doc = "What it is for";
  model.producer_name = "tests";
  model.model_version = 7;
  const Model onnx = read(write_model(model)), ort = read(write_ort_model(model));
  ort.graph.verify();
  EXPECT_EQ(ort.graph.dump(), onnx.graph.dump());
  EXPECT_EQ(ort.metadata, onnx.metadata);
  EXPECT_EQ(ort.doc, onnx.doc);
  EXPECT_EQ(ort.producer_name, onnx.producer_name);
  EXPECT_EQ(ort.model_version, onnx.model_version);
  EXPECT_EQ(ort.opsets, onnx.opsets);
}

TEST(OrtModel, ConstantNodesBecomeConstants) {
  const Model ort = read(write_ort_model(
      inferred("input x: float32[1]\nk = Constant() {value=float32[1](2)}\ny = Add(x, k)\noutput y\noutput k\n")));
  ASSERT_EQ(ort.graph.nodes().size(), 1);
  EXPECT_TRUE(ort.graph.value(ort.graph.node(0).inputs[1]).constant.has_value());
}

TEST(OrtModel, LargeConstantsLieInTheFile) {
  const std::string file =
      write_ort_model(inferred("input x: float32[1]\nconstant w: float32[40000] 3\ny = Mul(x, w)\noutput y\n"));
  const auto owner = std::make_shared<std::vector<std::uint64_t>>(file.size() / 8 + 1);
  std::memcpy(owner->data(), file.data(), file.size());
  const auto* const bytes = reinterpret_cast<const std::byte*>(owner->data());
  const Model model = read_model({bytes, file.size()}, owner, {});
  const Tensor& w = *model.graph.value(*model.graph.find("w")).constant;
  const auto* const data = static_cast<const std::byte*>(w.data());
  EXPECT_TRUE(data >= bytes && data < bytes + file.size());
  EXPECT_EQ(w.values<float>()[39999], 3.0F);
}

TEST(OrtModel, WhatTheFormatCannotSayIsAnError) {
  const std::string optional = "input x: float32[2]\no = Optional(x)\ny = OptionalHasElement(o)\noutput y\n";
  EXPECT_THROW(write_ort_model(inferred(optional)), Error);
}

TEST(OrtModel, OtherVersionsAreNotRead) {
  std::string file = write_ort_model(inferred("input x: float32[2]\ny = Relu(x)\noutput y\n"));
  const std::string version("\1\0\0\0006", 5);  // a text of one character
  const std::size_t at = file.find(version);
  ASSERT_NE(at, std::string::npos);
  file[at + 4] = '9';
  testing::expect_error([&] { read(file); }, {"format version '9'"});
}

// Whatever a damaged file says, it is read or refused.
TEST(OrtModel, DamagedFilesAreErrors) {
  const std::string file = write_ort_model(inferred(kEverything));
  const auto survives = [](const std::string& bytes) {
    try {
      read(bytes).graph.verify();
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  ASSERT_TRUE(survives(file));
  int refused = 0;
  for (std::size_t size = 0; size < file.size(); size += 7) refused += survives(file.substr(0, size)) ? 0 : 1;
  EXPECT_GT(refused, 0);
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const int bits : {0x01, 0x7F, 0xFF}) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ bits);
      refused += survives(changed) ? 0 : 1;
    }
  }
  EXPECT_LT(refused, static_cast<int>(4 * file.size()));
}

TEST(OrtModel, OperatorsHaveTheVersionsOfOnnx) {
  EXPECT_EQ(since_version("", "Abs", 5), 1);
  EXPECT_EQ(since_version("", "Abs", 12), 6);
  EXPECT_EQ(since_version("", "Abs", 20), 13);
  EXPECT_EQ(since_version("", "Pool", 20), 1);
  EXPECT_EQ(since_version("", "LayerNormalization", 13), 1);
  EXPECT_EQ(since_version("", "MaxPool", 21), 12);
  EXPECT_EQ(since_version("ai.onnx.ml", "TreeEnsembleClassifier", 3), 3);
  EXPECT_EQ(since_version("com.microsoft", "Abs", 13), 1);
}

}  // namespace
}  // namespace sdx
