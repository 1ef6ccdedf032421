#include "quantize/fixed/smooth.h"

#include "base/error.h"
#include "support/quantize_models.h"

namespace sdx::quantize {
namespace {

using namespace sdx::testing;

// Some channels are much larger than others, as behind the norms of transformers.
NamedValues uneven(Shape shape, unsigned seed) {
  Tensor x = noise(std::move(shape), seed);
  const auto values = x.mutable_values<float>();
  const auto width = static_cast<std::size_t>(x.shape().back());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= i % width % 8 == 3 ? 60.0F : 1.0F;
  return {{"x", std::move(x)}};
}

StaticQuantOptions smoothing() {
  StaticQuantOptions o;
  o.extra.smooth_quant = true;
  return o;
}

TEST(SmoothQuant, SharesDivisorsAmongReadersAndKeepsOthersInput) {
  const Model model = model_of(
      "opset 17\ninput x: float32[n,16]\nconstant w1: float32[16,8] 0\nconstant w2: float32[24,16] 0\n"
      "a = MatMul(x, w1)\nb = Gemm(x, w2) {transB=1}\nc = Neg(x)\noutput a\noutput b\noutput c\n");
  Batches data({uneven({12, 16}, 5), uneven({7, 16}, 6)});
  Model changed = model;
  EXPECT_EQ(smooth(changed, data, smoothing()), 2);
  EXPECT_EQ(ops_of(changed), (std::vector<std::string>{"Neg", "Mul", "MatMul", "Gemm"}));
  const NamedValues inputs = uneven({5, 16}, 7);
  for (const std::size_t i : {0U, 1U, 2U}) EXPECT_LT(difference(answer(model, inputs, i), answer(changed, inputs, i)), 1e-5);
}

TEST(SmoothQuant, FoldsIntoWhatComesBefore) {
  struct Case {
    const char *before, *ops;
  };
  for (const Case& c :
       {Case{"b = LayerNormalization(a, wg, wb)\n", "Relu LayerNormalization MatMul"},
        Case{"p = Mul(a, wg)\nb = Mul(p, wb)\n", "Relu Mul Mul MatMul"},
        Case{"p = Mul(a, wg)\nb = Add(p, wb)\n", "Relu Mul Add MatMul"},
        Case{"p = MatMul(a, ws)\nq = Add(p, wb)\nb = Relu(q)\n", "Relu Mul MatMul Add Relu MatMul"},
        Case{"b = Gemm(a, ws, wb) {transB=1}\n", "Relu Mul Gemm MatMul"}, Case{"b = Softmax(a)\n", "Relu Softmax Mul MatMul"}}) {
    const std::string text = std::string(
                                 "opset 17\ninput x: float32[n,16]\nconstant w1: float32[16,8] 0\n"
                                 "constant wg: float32[16] 0\nconstant wb: float32[16] 0\n"
                                 "constant ws: float32[16,16] 0\na = Relu(x)\n") +
                             c.before + "y = MatMul(b, w1)\noutput y\n";
    const Model model = model_of(text.c_str());
    Batches data({uneven({32, 16}, 5)});
    Model changed = model;
    EXPECT_GE(smooth(changed, data, smoothing()), 1);
    std::string ops;
    for (const std::string& op : ops_of(changed)) ops += (ops.empty() ? "" : " ") + op;
    EXPECT_EQ(ops, c.ops);
    const NamedValues inputs = uneven({5, 16}, 7);
    EXPECT_LT(difference(answer(model, inputs), answer(changed, inputs)), 1e-5) << c.before;
  }
}

TEST(SmoothQuant, WithoutFoldingAndWithBadSettings) {
  const Model model = model_of(
      "opset 17\ninput x: float32[n,16]\nconstant w1: float32[16,8] 0\nconstant wg: float32[16] 0\n"
      "a = Mul(x, wg)\ny = MatMul(a, w1)\noutput y\n");
  Batches data({uneven({4, 16}, 5)});
  StaticQuantOptions o = smoothing();
  o.extra.smooth_quant_folding = false;
  Model changed = model;
  smooth(changed, data, o);
  EXPECT_EQ(ops_of(changed), (std::vector<std::string>{"Mul", "Mul", "MatMul"}));
  o.extra.smooth_quant_alpha = 1.5;
  EXPECT_THROW(smooth(changed, data, o), Error);
  Batches none({});
  EXPECT_THROW(smooth(changed, none, smoothing()), Error);
}

}  // namespace
}  // namespace sdx::quantize
