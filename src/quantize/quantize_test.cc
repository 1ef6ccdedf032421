// Whole files: what is written, and how near it is to the float model.

#include <filesystem>
#include <sdx/quantize_weights.hpp>

#include "base/error.h"
#include "onnx/reader.h"
#include "quantize/dynamic/at_load.h"
#include "session/quantize_at_load.h"
#include "support/quantize_models.h"
#include "support/session.h"
#include "support/temporary_folder.h"

namespace sdx::quantize {
namespace {

using namespace sdx::testing;
namespace fs = std::filesystem;

// One layer, "bad", has a weight beside which 8 bits for all of them hardly hold the others.
Model two_layers() {
  Model m = model_of(
      "opset 17\ninput x: float32[n,32]\nconstant w1: float32[32,32] 0\nconstant w2: float32[32,8] 0\n"
      "a = MatMul(x, w1)\nb = Relu(a)\ny = MatMul(b, w2)\noutput y\n");
  m.graph.node(0).name = "good";
  m.graph.node(2).name = "bad";
  m.graph.value(*m.graph.find("w2")).constant->mutable_values<float>()[0] = 100;
  return m;
}

class Quantizing : public ::testing::Test {
 protected:
  void SetUp() override {
    write_model(two_layers(), folder_ / "float.onnx");
    std::vector<NamedValues> all;
    for (unsigned i = 0; i < 4; ++i) all.push_back({{"x", noise({6, 32}, 40 + i)}});
    data_.emplace(std::move(all));
  }

  const testing::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  std::optional<Batches> data_;
};

TEST_F(Quantizing, KeepsWhatLosesMostInEveryMode) {
  const auto check = [&](auto options, const auto& quantize) {
    options.measure_accuracy = true;
    const double all = quantize(options).accuracy->loss;
    options.max_loss = all / 2;
    const QuantReport r = quantize(options);
    EXPECT_LE(r.accuracy->loss, all / 2) << r.mode;
    ASSERT_EQ(r.kept.size(), 1U) << r.mode;
    EXPECT_EQ(r.kept[0].node, "bad") << r.mode;
    EXPECT_NE(r.kept[0].why.find("alone it costs"), std::string::npos) << r.kept[0].why;
    EXPECT_GT(r.quantized, 0) << r.mode;
  };
  const fs::path from = folder_ / "float.onnx", to = folder_ / "q.onnx";
  check(DynamicQuantOptions{}, [&](const auto& o) { return quantize_dynamic(from, to, o, &*data_); });
  check(StaticQuantOptions{}, [&](const auto& o) { return quantize_static(from, to, *data_, o); });
  WeightOnlyOptions few;
  few.format = {8, 32, false};
  few.node_formats = {{"bad", {2, 32, false}}};
  check(few, [&](const auto& o) { return quantize_weights(from, to, o, &*data_).summary(); });
}

TEST_F(Quantizing, WithoutDataThereIsNothingToMeasure) {
  DynamicQuantOptions dynamic;
  dynamic.measure_accuracy = true;
  EXPECT_THROW(quantize_dynamic(folder_ / "float.onnx", folder_ / "d.onnx", dynamic), Error);
  WeightOnlyOptions few;
  few.max_loss = 0.1;
  EXPECT_THROW(quantize_weights(folder_ / "float.onnx", folder_ / "d.onnx", few), Error);
  few = {};
  EXPECT_THROW(quantize_weights(folder_ / "float.onnx", folder_ / "float.onnx", few), Error);
  EXPECT_FALSE(fs::exists(folder_ / "d.onnx"));
}

TEST_F(Quantizing, SixteenBits) {
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    for (const bool keep_io : {false, true}) {
      HalfOptions o;
      o.dtype = type;
      o.keep_io = keep_io;
      o.measure_accuracy = true;
      const QuantReport r = convert_to_half(folder_ / "float.onnx", folder_ / "h.onnx", o, &*data_);
      EXPECT_EQ(r.mode, name(type));
      EXPECT_EQ(r.quantized, 3);
      ASSERT_TRUE(r.accuracy);
      EXPECT_LT(r.accuracy->loss, 1e-3);
      EXPECT_LT(r.bytes_after * 10, r.bytes_before * 7);
      const Session session = Session::open(folder_ / "h.onnx");
      EXPECT_EQ(session.inputs()[0].dtype, keep_io ? DataType::float32 : type);
    }
  }
}

TEST_F(Quantizing, SmoothQuantIsNearerWhereChannelsDiffer) {
  std::vector<NamedValues> all;
  for (unsigned i = 0; i < 4; ++i) {
    Tensor x = noise({16, 32}, 70 + i);
    const auto v = x.mutable_values<float>();
    for (std::size_t j = 0; j < v.size(); ++j) v[j] *= j % 32 == 5 ? 80.0F : 1.0F;
    all.push_back({{"x", std::move(x)}});
  }
  Batches data(std::move(all));
  Model m = model_of("opset 17\ninput x: float32[n,32]\nconstant w1: float32[32,16] 0\ny = MatMul(x, w1)\noutput y\n");
  const auto w = m.graph.value(*m.graph.find("w1")).constant->mutable_values<float>();
  for (std::size_t c = 0; c < 16; ++c) w[5 * 16 + c] *= 0.02F;  // the large channel counts as much as the others
  write_model(m, folder_ / "uneven.onnx");
  double losses[2];
  for (const bool smooth : {false, true}) {
    StaticQuantOptions o;
    o.extra.smooth_quant = smooth;
    o.measure_accuracy = true;
    losses[smooth ? 1 : 0] = quantize_static(folder_ / "uneven.onnx", folder_ / "q.onnx", data, o).accuracy->loss;
  }
  EXPECT_LT(losses[1] * 5, losses[0]);
}

// Branches joined as Caffe2 does it: a float sum would keep its neighbours from computing in bytes.
TEST_F(Quantizing, SumsOfTwoAsAdditions) {
  write_model(model_of("opset 17\ninput x: float32[1,4,6,6]\nconstant v: float32[4,4,1,1] 0\nconstant w: float32[4,4,1,1] 0\n"
                       "a = Conv(x, v)\nb = Conv(x, w)\nc = Sum(a, b)\nd = Relu(c)\ny = Conv(d, v)\noutput y\n"),
              folder_ / "sum.onnx");
  std::vector<NamedValues> all;
  all.push_back({{"x", noise({1, 4, 6, 6}, 3)}});
  Batches data(std::move(all));
  const QuantReport r = quantize_static(folder_ / "sum.onnx", folder_ / "q.onnx", data, {});
  EXPECT_EQ(r.quantized, r.nodes);
}

// In float it would keep what lies between convolutions out of the bytes.
TEST_F(Quantizing, ProductsWithTheirSigmoid) {
  write_model(model_of("opset 17\ninput x: float32[1,4,6,6]\nconstant v: float32[4,4,1,1] 0\nconstant w: float32[4,8,1,1] 0\n"
                       "a = Conv(x, v)\nb = Sigmoid(a)\nc = Mul(a, b)\nd = MaxPool(c) {kernel_shape=[3,3], pads=[1,1,1,1]}\n"
                       "e = Concat(c, d) {axis=1}\ny = Conv(e, w)\noutput y\n"),
              folder_ / "silu.onnx");
  std::vector<NamedValues> all;
  all.push_back({{"x", noise({1, 4, 6, 6}, 3)}});
  Batches data(std::move(all));
  const QuantReport r = quantize_static(folder_ / "silu.onnx", folder_ / "q.onnx", data, {});
  EXPECT_EQ(r.quantized, r.nodes);
}

// A squeeze-and-excitation branch between convolutions: HardSwish is a table of bytes, with nothing between quantised, and so is
// HardSigmoid.
TEST_F(Quantizing, FactorsForChannels) {
  write_model(model_of("opset 17\ninput x: float32[1,4,6,6]\nconstant v: float32[4,4,1,1] 0\nconstant w: float32[4,4,1,1] 0\n"
                       "constant u: float32[4,4,1,1] 0\nconstant three: float32[] 3\nconstant zero: float32[] 0\n"
                       "constant six: float32[] 6\na = Conv(x, v)\nb = Add(a, three)\nc = Clip(b, zero, six)\nd = Mul(a, c)\n"
                       "e = Div(d, six)\nf = GlobalAveragePool(e)\ng = Conv(f, w)\nh = HardSigmoid(g)\ni = Mul(e, h)\n"
                       "y = Conv(i, u)\noutput y\n"),
              folder_ / "se.onnx");
  std::vector<NamedValues> all;
  all.push_back({{"x", noise({1, 4, 6, 6}, 3)}});
  Batches data(std::move(all));
  const QuantReport r = quantize_static(folder_ / "se.onnx", folder_ / "q.onnx", data, {});
  EXPECT_EQ(r.quantized, 5);  // three convolutions, the mean and the product
  const Graph g = read_model(folder_ / "q.onnx").graph;
  const auto quantised = [&](const char* value) {
    const ValueId v = g.find(value).value();
    return std::ranges::any_of(g.nodes(), [&](const Node& n) { return n.op_type == "QuantizeLinear" && n.inputs[0] == v; });
  };
  for (const char* value : {"a", "e", "h", "i"}) EXPECT_TRUE(quantised(value)) << value;
  for (const char* value : {"b", "c", "d"}) EXPECT_FALSE(quantised(value)) << value;
}

// The engine picks rows of the table; a product of bytes would be slower.
TEST_F(Quantizing, OneHotRowsStayFloat) {
  write_model(model_of("opset 17\ninput i: int64[5,1]\nconstant k: int64[4] 0 1 2 3\nconstant w1: float32[4,32] 0\n"
                       "constant w2: float32[32,8] 0\ne = Equal(i, k)\nx = Cast(e) {to=1}\na = MatMul(x, w1)\ny = MatMul(a, w2)\n"
                       "output y\n"),
              folder_ / "one_hot.onnx");
  EXPECT_EQ(quantize_dynamic(folder_ / "one_hot.onnx", folder_ / "q.onnx").quantized, 1);
  DynamicQuantOptions asked;
  asked.op_types_to_quantize = {"MatMul"};
  EXPECT_EQ(quantize_dynamic(folder_ / "one_hot.onnx", folder_ / "q.onnx", asked).quantized, 2);
}

// ONNX Runtime makes Gemm of both, and computes that with bytes where the bias is int32 in steps of both scales.
TEST_F(Quantizing, VectorsAddedToProductsAreBiases) {
  write_model(model_of("opset 17\ninput x: float32[n,32]\nconstant w: float32[32,16] 0\nconstant w_added: float32[16] 0\n"
                       "a = MatMul(x, w)\ny = Add(w_added, a)\noutput y\n"),
              folder_ / "bias.onnx");
  for (const bool per_channel : {false, true}) {
    StaticQuantOptions o;
    o.per_channel = per_channel;
    o.measure_accuracy = true;
    const QuantReport r = quantize_static(folder_ / "bias.onnx", folder_ / "q.onnx", *data_, o);
    EXPECT_LT(r.accuracy->loss, 1e-3);
    const Model m = read_model(folder_ / "q.onnx");
    const auto constant = [&](std::string_view value) -> const Tensor& { return *m.graph.value(*m.graph.find(value)).constant; };
    EXPECT_EQ(constant("w_added_quantized").dtype(), DataType::int32);
    const Tensor &scale = constant("w_added_scale"), &w = constant("w_scale");
    ASSERT_EQ(scale.size(), per_channel ? 16 : 1);
    for (std::size_t i = 0; i < static_cast<std::size_t>(scale.size()); ++i) {
      EXPECT_EQ(scale.values<float>()[i], constant("x_scale").values<float>()[0] * w.values<float>()[i]);
    }
  }
  StaticQuantOptions operators;
  operators.quant_format = QuantFormat::qoperator;
  quantize_static(folder_ / "bias.onnx", folder_ / "q.onnx", *data_, operators);
  EXPECT_FALSE(read_model(folder_ / "q.onnx").graph.find("w_added_quantized"));
}

TEST_F(Quantizing, WhenASessionOpensTheModel) {
  session::quantize_with(&at_load);
  SessionOptions options;
  options.quantize = Quantize::dynamic;
  const Session plain = Session::open(folder_ / "float.onnx"), quantized = Session::open(folder_ / "float.onnx", options);
  const auto runs = [](const Session& s, std::string_view op) {
    const Report r = s.report();
    return std::any_of(r.nodes.begin(), r.nodes.end(), [&](const NodeReport& n) { return n.op.find(op) != std::string::npos; });
  };
  EXPECT_FALSE(runs(plain, "Integer"));
  EXPECT_TRUE(runs(quantized, "Integer"));
  const NamedValues inputs{{"x", noise({3, 32}, 9)}};
  const Tensor a = plain.run(inputs)[0].value.tensor(), b = quantized.run(inputs)[0].value.tensor();
  EXPECT_LT(difference(a, b), 0.05);
  EXPECT_GT(difference(a, b), 0);
  const Model none = model_of("opset 17\ninput x: float32[n,32]\ny = Relu(x)\noutput y\n");
  const Session nothing = testing::open(none, options);
  ASSERT_EQ(nothing.report().warnings.size(), 1U);
  EXPECT_NE(nothing.report().warnings[0].find("nothing was quantised"), std::string::npos);
}

}  // namespace
}  // namespace sdx::quantize
