#include "quantize/weights/weight_only.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "ops/infer.h"
#include "support/quantize_models.h"

namespace sdx::quantize {
namespace {

using namespace sdx::testing;

constexpr const char* kLayers =
    "opset 17\ninput x: float32[n,100]\nconstant w1: float32[100,40] 0\nconstant w2: float32[24,40] 0\n"
    "constant wb: float32[1,24] 0\nconstant w3: float32[1,24,10] 0\n"
    "a = MatMul(x, w1)\nb = Relu(a)\nc = Gemm(b, w2, wb) {transB=1}\ny = MatMul(c, w3)\noutput y\n";

TEST(WeightOnly, BothFormsMeanTheSame) {
  const Model model = model_of(kLayers);
  const NamedValues inputs{{"x", noise({5, 100}, 99)}};
  const Tensor exact = answer(model, inputs);
  for (const int bits : {2, 4, 8}) {
    for (const bool symmetric : {false, true}) {
      WeightOnlyOptions options;
      options.format = {bits, 16, symmetric};
      WeightOnlyReport report;
      Model packed = model;
      to_weight_only(packed, options, nullptr, report);
      EXPECT_EQ(ops_of(packed), (std::vector<std::string>{"MatMulNBits", "Relu", "MatMulNBits", "MatMul"}));
      ASSERT_EQ(report.kept.size(), 1U);  // one more axis than its input
      EXPECT_NE(report.kept[0].why.find("axes"), std::string::npos);
      const Tensor rounded = answer(packed, inputs);
      EXPECT_LT(difference(exact, rounded), bits == 8 ? 0.01 : bits == 4 ? 0.15 : 0.9);
      if (bits == 2) continue;
      options.form = WeightForm::qdq;
      Model plain = model;
      to_weight_only(plain, options, nullptr, report);
      EXPECT_EQ(plain.opsets.at(""), 21);
      EXPECT_GE(plain.ir_version, 10);
      static_cast<void>(ops::infer_in_place(plain.graph));
      EXPECT_LT(difference(rounded, answer(plain, inputs)), 1e-5);
    }
  }
}

TEST(WeightOnly, MethodsAndData) {
  const Model model = model_of(kLayers);
  const NamedValues inputs{{"x", noise({64, 100}, 98)}};
  const Tensor exact = answer(model, inputs);
  const auto error = [&](WeightMethod method, CalibrationDataReader* data) {
    WeightOnlyOptions options;
    options.method = method;
    options.accuracy_level = 1;
    WeightOnlyReport report;
    Model changed = model;
    to_weight_only(changed, options, data, report);
    EXPECT_EQ(report.quantized.size(), 2U);
    return difference(exact, answer(changed, inputs));
  };
  const double rtn = error(WeightMethod::rtn, nullptr);
  EXPECT_LT(error(WeightMethod::search, nullptr), rtn);
  EXPECT_LT(error(WeightMethod::hqq, nullptr), rtn);
  Batches data({inputs});
  EXPECT_LT(error(WeightMethod::gptq, &data), 0.8 * rtn);
  Batches none({});
  EXPECT_THROW(error(WeightMethod::gptq, &none), Error);
}

TEST(WeightOnly, TablesAndSharedWeights) {
  const char* text =
      "opset 17\ninput i: int64[n]\nconstant w: float32[50,64] 0\n"
      "e = Gather(w, i)\nt = Transpose(w) {perm=[1,0]}\ny = MatMul(e, t)\noutput y\n";
  const Model model = model_of(text);
  const NamedValues inputs{{"i", Tensor::of<std::int64_t>({4}, {0, 49, -1, 7})}};
  const Tensor exact = answer(model, inputs);
  for (const int bits : {2, 4, 8}) {
    for (const bool symmetric : {false, true}) {
      WeightOnlyOptions options;
      options.ops = {"MatMul", "Gather"};
      options.format = {bits, 32, symmetric};
      WeightOnlyReport report;
      Model changed = model;
      to_weight_only(changed, options, nullptr, report);
      EXPECT_EQ(ops_of(changed), (std::vector<std::string>{"GatherBlockQuantized", "MatMulNBits"}));
      EXPECT_LT(difference(exact, answer(changed, inputs)), bits == 8 ? 0.02 : bits == 4 ? 0.3 : 1.2);
      EXPECT_FALSE(changed.graph.find("w"));  // nothing reads the floats any more
    }
  }
}

TEST(WeightOnly, BranchesShareWhatTheyCapture) {
  const char* text =
      "opset 17\ninput x: float32[n,32]\ninput c: bool[]\nconstant w: float32[32,32] 0\n"
      "y = If(c)\n  then_branch {\n    a = MatMul(x, w)\n    output a\n  }\n  else_branch {\n    b = MatMul(x, w)\n    d = "
      "Neg(b)\n    output d\n  }\n"
      "output y\n";
  const Model model = model_of(text);
  Model changed = model;
  WeightOnlyReport report;
  to_weight_only(changed, {}, nullptr, report);
  EXPECT_EQ(report.quantized.size(), 2U);
  std::size_t bytes = 0;
  for (const ValueInfo& v : changed.graph.values()) bytes += v.constant && v.constant->dtype() == DataType::uint8 ? 1U : 0U;
  EXPECT_EQ(bytes, 2U);  // codes and zero points, once
  for (const bool c : {false, true}) {
    const NamedValues inputs{{"x", noise({3, 32}, 97)}, {"c", Tensor::scalar<bool>(c)}};
    EXPECT_LT(difference(answer(model, inputs), answer(changed, inputs)), 0.15);
  }
}

TEST(WeightOnly, Choices) {
  const char* text =
      "opset 17\ninput x: float32[n,32]\nconstant w1: float32[32,32] 0\nconstant w2: float32[32,32] 0\n"
      "a = MatMul(x, w1)\ny = MatMul(a, w2)\noutput y\n";
  Model model = model_of(text);
  model.graph.node(0).name = "first";
  model.graph.node(1).name = "second";
  WeightOnlyOptions options;
  options.exclude = {"second"};
  options.node_formats = {{"first", {8, 16, true}}};
  WeightOnlyReport report;
  Model changed = model;
  to_weight_only(changed, options, nullptr, report);
  ASSERT_EQ(report.quantized.size(), 1U);
  EXPECT_EQ(report.quantized[0].bits, 8);
  EXPECT_EQ(ops_of(changed), (std::vector<std::string>{"MatMulNBits", "MatMul"}));
  options.exclude = {"third"};
  EXPECT_THROW(to_weight_only(model, options, nullptr, report), Error);
  options.exclude.clear();
  options.format.bits = 3;
  EXPECT_THROW(check(options), Error);
}

TEST(WeightOnly, LeavesWhatIsNotFinite) {
  Model model = model_of("opset 17\ninput x: float32[n,32]\nconstant w: float32[32,32] 0\ny = MatMul(x, w)\noutput y\n");
  model.graph.value(*model.graph.find("w")).constant->mutable_values<float>()[3] = INFINITY;
  WeightOnlyReport report;
  to_weight_only(model, {}, nullptr, report);
  EXPECT_TRUE(report.quantized.empty());
  ASSERT_EQ(report.kept.size(), 1U);
  EXPECT_NE(report.kept[0].why.find("finite"), std::string::npos);
}

}  // namespace
}  // namespace sdx::quantize
