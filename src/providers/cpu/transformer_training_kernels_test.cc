// The fast kernels of training graphs of transformers and perceptrons against the operators' references.

#include <gtest/gtest.h>

#include "support/compare_kernels.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::compare;
using test::for_each_isa;

// Lengths around multiples of the vectors' width.
constexpr int kLengths[] = {1, 2, 3, 7, 8, 15, 16, 17, 33, 100};

TEST(TransformerTrainingKernels, Slopes) {
  for_each_isa([] {
    for (const char* op : {"LeakyReluGrad", "SigmoidGrad", "TanhGrad", "GeluGrad", "FastGeluGrad", "QuickGeluGrad"}) {
      for (const int n : kLengths) {
        const std::string graph =
            fmt::format("input g: float32[3,{0}]\ninput x: float32[3,{0}]\ny = com.microsoft.{1}(g, x)\noutput y\n", n, op);
        compare({"slope-f32", graph.c_str()});
      }
    }
  });
}

TEST(TransformerTrainingKernels, Dropout) {
  for_each_isa([] {
    const std::string graph =
        "input g: float32[21]\nconstant m: bool[21] true true false true false false true true true false true false true true "
        "true "
        "true false false true false true\n";
    compare({"dropout-grad-f32", (graph + "y = com.microsoft.DropoutGrad(g, m)\noutput y\n").c_str()});
    compare(
        {"dropout-grad-f32",
         (graph + "constant r: float32[] 0.2\nconstant t: bool[] false\ny = com.microsoft.DropoutGrad(g, m, r, t)\noutput y\n")
             .c_str()});
  });
}

TEST(TransformerTrainingKernels, Softmax) {
  for_each_isa([] {
    for (const int n : kLengths) {
      for (const char* node : {"SoftmaxGrad_13(g, y)", "SoftmaxGrad_13(g, y) {axis=0}", "SoftmaxGrad_13(g, y) {axis=1}",
                               "SoftmaxGrad(g, y)", "LogSoftmaxGrad_13(g, y) {axis=0}", "LogSoftmaxGrad_13(g, y)"}) {
        const bool log = std::string(node).starts_with("Log");
        const std::string graph =
            fmt::format("input g: float32[2,3,{0}]\nconstant y: float32[2,3,{0}] {2}\nd = com.microsoft.{1}\noutput d\n", n, node,
                        log ? "-0.75" : "0.25");
        compare({"softmax-grad-f32", graph.c_str()});
      }
    }
  });
}

std::string in_float64(std::string graph) {
  for (std::size_t at = 0; (at = graph.find("float32", at)) != std::string::npos;) graph.replace(at, 7, "float64");
  return graph;
}

TEST(TransformerTrainingKernels, LayerNormalisation) {
  for_each_isa([] {
    for (const int n : kLengths) {
      const std::string plain = fmt::format(
          "input g: float32[5,{0}]\ninput x: float32[5,{0}]\ninput s: float32[{0}]\ninput m: float32[5,1]\ninput i: "
          "float32[5,1]\n"
          "dx, ds, db = com.microsoft.LayerNormalizationGrad(g, x, s, m, i)\noutput dx\noutput ds\noutput db\n",
          n);
      const std::string rms = fmt::format(
          "input g: float32[2,3,{0}]\ninput x: float32[2,3,{0}]\ninput s: float32[3,{0}]\ninput i: float32[2,1,1]\n"
          "dx, ds = com.microsoft.SimplifiedLayerNormalizationGrad(g, x, s, i) {{axis=1}}\noutput dx\noutput ds\n",
          n);
      compare({"layer-norm-grad-f32", plain.c_str()});
      compare({"rms-norm-grad-f32", rms.c_str()});
      compare({"layer-norm-grad-f64", in_float64(plain).c_str()});
      compare({"rms-norm-grad-f64", in_float64(rms).c_str()});
    }
    // Several parts, whose sums are added up.
    const std::string parts =
        "input g: float32[700,33]\ninput x: float32[700,33]\ninput s: float32[33]\ninput m: float32[700,1]\n"
        "input i: float32[700,1]\n"
        "dx, _, db = com.microsoft.LayerNormalizationGrad(g, x, s, m, i)\noutput dx\noutput db\n";
    compare({"layer-norm-grad-f32", parts.c_str()});
    compare({"layer-norm-grad-f64", in_float64(parts).c_str()});
  });
}

TEST(TransformerTrainingKernels, LossesOfClasses) {
  for_each_isa([] {
    const std::string flat = "input x: float32[5,17]\nconstant l: int64[5] 0 16 3 3 9\ninput w: float32[17]\n";
    const std::string slices = "input x: float32[2,3,4]\nconstant l: int32[2,4] 0 1 2 2 1 1 0 2\ninput w: float32[3]\n";
    for (const std::string& scores : {flat, slices}) {
      for (const char* node : {"(x, l)", "(x, l, w)", "(x, l) {reduction=\"sum\"}", "(x, l, w) {reduction=\"none\"}",
                               "(x, l, w) {ignore_index=2}"}) {
        compare({"class-loss-f32", (scores + "y, p = SoftmaxCrossEntropyLoss" + node + "\noutput y\noutput p\n").c_str()});
        compare({"class-loss-f32", (scores + "y = SoftmaxCrossEntropyLoss" + node + "\noutput y\n").c_str()});
      }
    }
    const std::string flat_grad =
        "input g: float32[]\nconstant p: float32[3,2] -0.5 -1.5 -3 -0.01 0 -9\nconstant l: int64[3] 0 1 0\n";
    const std::string slice_grad =
        "input g: float32[1]\nconstant p: float32[1,2,3] -0.5 -1.5 -3 -0.01 0 -9\nconstant l: int32[1,3] 0 1 0\n";
    for (const std::string& start : {flat_grad, slice_grad}) {
      for (const char* node : {"(g, p, l)", "(g, p, l, w) {reduction=\"sum\"}", "(g, p, l, w) {ignore_index=1}",
                               "(g, p, l) {ignore_index=0, reduction=\"mean\"}"}) {
        const std::string graph =
            start + "input w: float32[2]\ny = com.microsoft.SoftmaxCrossEntropyLossGrad" + node + "\noutput y\n";
        compare({"class-loss-grad-f32", graph.c_str()});
      }
    }
    compare({"class-loss-grad-f32",
             "input g: float32[3]\nconstant p: float32[3,2] -0.5 -1.5 -3 -0.01 0 -9\nconstant l: int64[3] 0 1 0\n"
             "y = com.microsoft.SoftmaxCrossEntropyLossGrad(g, p, l) {reduction=\"none\"}\noutput y\n"});
  });
}

TEST(TransformerTrainingKernels, GatherGradient) {
  for_each_isa([] {
    for (const int n : kLengths) {
      const std::string graph = fmt::format(
          "constant s: int64[2] 6 {0}\nconstant i: int64[2,2] 5 0 -1 3\ninput g: float32[2,2,{0}]\n"
          "y = com.microsoft.GatherGrad(s, i, g)\noutput y\n",
          n);
      compare({"gather-grad-f32", graph.c_str()});
    }
    compare({"gather-grad-f32",
             "constant s: int64[3] 2 3 4\nconstant i: int32[2] 1 1\ninput g: float32[2,2,4]\n"
             "y = com.microsoft.GatherGrad(s, i, g) {axis=1}\noutput y\n"});
    compare({"gather-grad-f32",
             "constant s: int64[2] 900 64\nconstant i: int64[3] 899 0 450\ninput g: float32[3,64]\n"
             "y = com.microsoft.GatherGrad(s, i, g)\noutput y\n"});
  });
}

TEST(TransformerTrainingKernels, ProductsOfTransposedMatrices) {
  for_each_isa([] {
    const auto product = [](const std::string& a, const std::string& b, const char* attributes) {
      const std::string graph = "opset com.microsoft 1\ninput a: float32[" + a + "]\ninput b: float32[" + b +
                                "]\ny = com.microsoft.FusedMatMul(a, b) {" + attributes + "}\noutput y\n";
      compare({"gemm-f32", graph.c_str()});
    };
    product("7,33", "7,18", "transA=1");
    product("33,7", "18,7", "transB=1, alpha=0.5");
    product("2,5,9", "17,9", "transB=1");  // rows of all matrices make one product
    product("2,9,5", "9,17", "transA=1");
    product("2,3,9,5", "3,17,9", "transA=1, transB=1");
    product("4,1,6", "4,5,6", "transB=1");
    product("3,1,1", "3,1,1", "transA=1");
    product("0,3,2", "2,4", "transA=0");
  });
}

}  // namespace
}  // namespace sdx::cpu
