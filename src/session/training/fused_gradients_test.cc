// Gradients as single nodes of ONNX Runtime's training graphs beside those of ai.onnx's operators: the same numbers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sdx/session.hpp>

#include "ops/infer.h"
#include "passes/expand_gradients.h"
#include "support/graph_text.h"
#include "support/session.h"
#include "tensor/element.h"

namespace sdx::session {
namespace {

struct Case {
  const char* graph;                   // of float32; y, and w as large as y, which its gradient is weighed with
  std::vector<std::string> operators;  // that occur in the fused gradient, of whatever domain
  std::size_t most = 0;                // nodes that are added, the weighing left out; 0: any number
};

Tensor values_for(const Type& type, int seed) {
  Tensor t(type.elem, to_shape(*type.shape));
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const auto raw = static_cast<double>((i * 37 + seed * 101 + i * i % 11) % 97);
    set_element(t, i, is_floating(type.elem) ? raw / 24.0 - 2.0 : std::fmod(raw, 3.0));
  }
  return t;
}

// y's gradients by all inputs of float32 but w, as outputs "d.NAME". Returns the operators that were added.
std::vector<std::string> differentiate(Model& model, bool fused) {
  Graph& g = model.graph;
  ops::infer_in_place(g);
  std::vector<ValueId> xs;
  for (const ValueId v : g.inputs()) {
    if (g.value(v).type.elem == DataType::float32 && g.value(v).name != "w") xs.push_back(v);
  }
  model.opsets["com.microsoft"] = 1;
  const std::size_t before = g.nodes().size();
  GradientOptions options;
  options.fused = fused;
  options.seed = *g.find("w");
  const std::vector<ValueId> gradients = append_gradients(g, *g.find("y"), xs, options);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (gradients[i] != kNoValue) g.add_output(gradients[i], "d." + g.value(xs[i]).name);
  }
  std::vector<std::string> added;
  for (const Node& n : g.nodes()) added.push_back(n.op_type);
  EXPECT_GE(added.size(), before);
  return added;
}

NamedValues run(const Model& model) {
  const Session s = testing::open(model);
  NamedValues inputs;
  int seed = 0;
  for (const ValueId v : model.graph.inputs())
    inputs.add(model.graph.value(v).name, values_for(model.graph.value(v).type, ++seed));
  return s.run(inputs);
}

void check(const Case& test) {
  SCOPED_TRACE(test.graph);
  Model plain = testing::parse_model(test.graph);
  Model fused = testing::parse_model(test.graph);
  const std::size_t forward = fused.graph.nodes().size();
  differentiate(plain, false);
  const std::vector<std::string> operators = differentiate(fused, true);
  for (const std::string& op : test.operators) {
    EXPECT_NE(std::find(operators.begin(), operators.end(), op), operators.end()) << op << " in\n" << fused.graph.dump();
  }
  const std::size_t most = test.most != 0 ? test.most : operators.size();
  EXPECT_LE(operators.size() - forward, most) << fused.graph.dump();
  const NamedValues expected = run(plain);
  const NamedValues results = run(fused);
  ASSERT_EQ(results.size(), expected.size());
  ASSERT_GE(results.size(), 2U);
  for (const NamedValue& e : expected) {
    const Tensor& a = results.tensor(e.name);
    ASSERT_EQ(a.shape(), e.value.tensor().shape()) << e.name;
    for (std::int64_t i = 0; i < a.size(); ++i) {
      const double want = element_as_double(e.value.tensor(), i);
      ASSERT_NEAR(element_as_double(a, i), want, 1e-4 * (1 + std::fabs(want))) << e.name << " " << i;
    }
  }
}

TEST(FusedGradients, Activations) {
  const auto graph = [](const char* node) {
    return std::string("opset 21\ninput x: float32[4,5]\ninput w: float32[4,5]\ny = ") + node + "\noutput y\n";
  };
  for (const auto& [node, op] : {std::pair{"Relu(x)", "ReluGrad"},
                                 {"LeakyRelu(x) {alpha=0.2}", "LeakyReluGrad"},
                                 {"Sigmoid(x)", "SigmoidGrad"},
                                 {"Tanh(x)", "TanhGrad"},
                                 {"Gelu(x)", "GeluGrad"},
                                 {"Gelu(x) {approximate=\"tanh\"}", "FastGeluGrad"},
                                 {"Softmax(x)", "SoftmaxGrad_13"},
                                 {"Softmax(x) {axis=0}", "SoftmaxGrad_13"},
                                 {"LogSoftmax(x) {axis=0}", "LogSoftmaxGrad_13"}}) {
    check({graph(node).c_str(), {op}, 1});
  }
  check({graph("LeakyRelu(x) {alpha=-0.2}").c_str(), {"Where"}});  // its result says nothing of its input's sign
}

TEST(FusedGradients, Normalisations) {
  check(
      {"opset 21\ninput x: float32[3,2,6]\ninput s: float32[6]\ninput b: float32[6]\ninput w: float32[3,2,6]\n"
       "y = LayerNormalization(x, s, b)\noutput y\n",
       {"LayerNormalizationGrad"},
       1});
  check(
      {"opset 21\ninput x: float32[3,2,6]\ninput s: float32[2,6]\ninput w: float32[3,2,6]\n"
       "y = LayerNormalization(x, s) {axis=1}\noutput y\n",
       {"LayerNormalizationGrad"},
       1});
  check(
      {"opset 21\ninput x: float32[3,2,6]\ninput s: float32[6]\ninput w: float32[3,2,6]\n"
       "y = LayerNormalization(x, s) {axis=1}\noutput y\n",
       {"ReduceMean"}});  // a scale that is broadcast
}

TEST(FusedGradients, Losses) {
  const std::string scores = "opset 21\ninput x: float32[4,3]\ninput w: float32[]\ninput l: int64[4]\ninput c: float32[3]\n";
  for (const char* node : {"SoftmaxCrossEntropyLoss(x, l)", "SoftmaxCrossEntropyLoss(x, l) {reduction=\"sum\"}",
                           "SoftmaxCrossEntropyLoss(x, l) {ignore_index=1}"}) {
    check({(scores + "y = " + node + "\nz = Identity(c)\noutput y\n").c_str(), {"SoftmaxCrossEntropyLossGrad"}, 1});
  }
}

TEST(FusedGradients, Windows) {
  check(
      {"opset 21\ninput x: float32[2,4,6,5]\ninput k: float32[6,2,3,3]\ninput b: float32[6]\ninput w: float32[2,6,3,3]\n"
       "y = Conv(x, k, b) {group=2, pads=[1,1,1,1], strides=[2,2]}\noutput y\n",
       {"ConvGrad"},
       1});
  check(
      {"opset 21\ninput x: float32[2,2,6]\ninput k: float32[3,2,3]\ninput w: float32[2,3,6]\n"
       "y = Conv(x, k) {auto_pad=\"SAME_UPPER\"}\noutput y\n",
       {"ConvGrad"},
       1});
  check(
      {"opset 21\ninput x: float32[2,4,6]\ninput k: float32[6,2,3]\ninput w: float32[2,6,4]\n"
       "y = Conv(x, k) {group=2}\noutput y\n",
       {"Conv", "ConvTranspose"}});  // ONNX Runtime's kernel would write beyond the gradient
  check(
      {"opset 21\ninput x: float32[2,3,6,6]\ninput w: float32[2,3,3,3]\n"
       "y = MaxPool(x) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,0,0]}\noutput y\n",
       {"MaxPoolGrad"},
       1});
}

TEST(FusedGradients, TakenElements) {
  check({"opset 21\ninput x: float32[5,4]\ninput i: int64[2,3]\ninput w: float32[2,3,4]\ny = Gather(x, i)\noutput y\n",
         {"GatherGrad"},
         1});
  check({"opset 21\ninput x: float32[3,4]\ninput i: int64[2,3]\ninput w: float32[2,3]\ny = GatherElements(x, i)\noutput y\n",
         {"GatherElementsGrad"},
         1});
  check({"opset 21\ninput x: float32[3,3]\ninput i: int64[5,2]\ninput w: float32[5]\ny = GatherND(x, i)\noutput y\n",
         {"GatherNDGrad"},
         1});
  check(
      {"opset 21\ninput x: float32[4,6]\nconstant s: int64[2] 3 1\nconstant e: int64[2] -9 5\nconstant a: int64[2] 0 1\n"
       "constant p: int64[2] -2 1\ninput w: float32[2,4]\ny = Slice(x, s, e, a, p)\noutput y\n",
       {"SliceGrad"},
       1});
}

TEST(FusedGradients, ProductsTakeFewNodes) {
  check({"opset 21\ninput x: float32[3,4]\ninput b: float32[4,5]\ninput w: float32[3,5]\ny = MatMul(x, b)\noutput y\n",
         {"Gemm"},
         2});
  check(
      {"opset 21\ninput x: float32[2,3,4]\ninput b: float32[4,5]\ninput c: float32[5]\ninput w: float32[2,3,5]\n"
       "m = MatMul(x, b)\ny = Add(m, c)\noutput y\n",
       {"FusedMatMul", "Gemm", "ReduceSum"},
       5});
  check({"opset 21\ninput x: float32[2,3,4]\ninput b: float32[2,4,5]\ninput w: float32[2,3,5]\ny = MatMul(x, b)\noutput y\n",
         {"FusedMatMul"},
         2});
  check({"opset 21\ninput x: float32[2,1,3,4]\ninput b: float32[5,4,2]\ninput w: float32[2,5,3,2]\ny = MatMul(x, b)\noutput y\n",
         {"MatMul", "ReduceSum"}});
  check(
      {"opset 21\ninput x: float32[3,4]\ninput b: float32[5,4]\ninput c: float32[5]\ninput w: float32[3,5]\n"
       "y = Gemm(x, b, c) {transB=1}\noutput y\n",
       {"Gemm", "ReduceSum"},
       3});
  check({"opset 21\ninput x: float32[2,3,4]\ninput b: float32[3,1]\ninput w: float32[2,3,4]\ny = Mul(x, b)\noutput y\n",
         {"ReduceSum", "Reshape"},
         4});
  check(
      {"opset 21\ninput x: float32[2,3,4]\ninput w: float32[2,4]\nconstant a: int64[1] 1\n"
       "y = ReduceMean(x, a) {keepdims=0}\noutput y\n",
       {"Unsqueeze", "Expand"},
       4});
}

}  // namespace
}  // namespace sdx::session
