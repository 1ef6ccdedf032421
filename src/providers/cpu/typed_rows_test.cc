// Reductions, orders and normalisations of other types than float32 against the operators' references.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/compare_kernels.h"

namespace sdx::cpu {
namespace {

using test::compare;

const char* const kFloats[] = {"float64", "float16", "bfloat16"};
const char* const kIntegers[] = {"int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64"};

bool is_half_name(const std::string& type) { return type == "float16" || type == "bfloat16"; }

// Through the kernel for float32, or the one for all types.
std::string kernel_for(const std::string& type, const std::string& of_floats, const std::string& of_all) {
  return is_half_name(type) ? "widened-" + of_floats : of_all;
}

struct Shapes {
  const char* x;
  const char* axes;  // as a constant's shape and values
};

// Rows, columns, all, between, not neighbours, extents of 1; odd lengths, and rows beyond a block.
const Shapes kShapes[] = {{"[3,67]", "[1] 1"},  {"[67,19]", "[1] 0"},     {"[3,5,7]", "[3] 0 1 2"}, {"[4,33,9]", "[1] 1"},
                          {"[2,1,3]", "[1] 1"}, {"[3,4,5,6]", "[2] 0 2"}, {"[2,3,2,5]", "[2] 1 3"}, {"[2,2063]", "[1] -1"}};

void reduction(const std::string& kernel, const std::string& type, const char* op, bool special = false) {
  for (const Shapes& s : kShapes) {
    const std::string text = "opset 20\ninput x: " + type + s.x + "\nconstant axes: int64" + s.axes + "\ny = " + op +
                             "(x, axes) {keepdims=0}\noutput y\n";
    test::KernelCase c{kernel.c_str(), text.c_str()};
    c.special = special;
    // Sums near 0, whose logarithm rounding errors would decide on, are exact.
    c.sixteenths = std::string(op) == "ReduceLogSum";
    compare(c);
  }
}

TEST(TypedRows, Reductions) {
  for (const char* type : {"float64", "float16", "bfloat16"}) {
    const std::string kernel = kernel_for(type, "reduce-f32", "reduce-typed");
    for (const char* op :
         {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSumExp"}) {
      reduction(kernel, type, op);
      reduction(kernel, type, op, true);
    }
    reduction(kernel, type, "ReduceLogSum");
    test::KernelCase c;
    const std::string product =
        "input x: " + std::string(type) + "[3,5,7]\nconstant axes: int64[1] 1\ny = ReduceProd(x, axes)\noutput y\n";
    c.kernel = kernel.c_str();
    c.graph = product.c_str();
    compare(c);
  }
  for (const char* type : {"int32", "int64", "uint32", "uint64"}) {
    for (const char* op : {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum",
                           "ReduceLogSumExp"}) {
      reduction("reduce-typed", type, op);
    }
  }
  for (const char* type : kIntegers) {
    for (const char* op : {"ReduceMax", "ReduceMin"}) reduction("reduce-typed", type, op);
  }
  for (const char* op : {"ReduceMax", "ReduceMin"}) reduction("reduce-typed", "bool", op);
}

void along(const std::string& kernel, const std::string& type, const std::string& call, const char* outputs = "y") {
  for (const bool special : {false, true}) {
    for (const char* shape : {"[3,67]", "[67,19]", "[5,33,9]", "[2,2063]", "[4,1]", "[1,1,5]", "[0,4]", "[3,2,130]"}) {
      if (call.find("Arg") != std::string::npos && shape == std::string_view("[0,4]") && call.find("axis=0") != std::string::npos)
        continue;
      const std::string text = "opset 26\ninput x: " + type + shape + "\n" + call + "\n";
      std::string graph = text;
      for (const char* name = outputs; *name != 0; ++name) graph += std::string("output ") + *name + "\n";
      test::KernelCase c{kernel.c_str(), graph.c_str()};
      c.special = special;
      compare(c);
    }
  }
}

void orders(const std::string& type) {
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (const char* attrs :
         {"{axis=0}", "{axis=1, keepdims=0}", "{axis=-1, select_last_index=1}", "{axis=0, select_last_index=1}"}) {
      along(kernel_for(type, "arg-extreme-f32", "arg-extreme-typed"), type, std::string("y = ") + op + "(x) " + attrs);
    }
  }
  for (const char* attrs : {"{axis=-1}", "{axis=-1, largest=0}", "{axis=1}"}) {
    along(kernel_for(type, "top-k-f32", "top-k-typed"), type, std::string("constant k: int64[1] 1\ny, z = TopK(x, k) ") + attrs,
          "yz");
  }
  for (const char* k : {"5", "40", "60"}) {
    for (const char* attrs : {"{axis=-1}", "{axis=0}", "{largest=0}"}) {
      test::KernelCase c;
      const std::string kernel = kernel_for(type, "top-k-f32", "top-k-typed");
      const std::string text =
          "input x: " + type + "[67,61]\nconstant k: int64[1] " + k + "\ny, z = TopK(x, k) " + attrs + "\noutput y\noutput z\n";
      c.kernel = kernel.c_str();
      c.graph = text.c_str();
      compare(c);
      c.special = true;
      compare(c);
    }
  }
}

TEST(TypedRows, Orders) {
  for (const char* type : kFloats) orders(type);
  for (const char* type : kIntegers) orders(type);
}

TEST(TypedRows, RunningSums) {
  const auto running = [](const std::string& type) {
    for (const char* axis : {"0", "-1", "1"}) {
      for (const char* attrs : {"", "{exclusive=1}", "{reverse=1}", "{exclusive=1, reverse=1}"}) {
        const std::string rest = std::string(axis) + "\ny = CumSum(x, axis) " + attrs;
        along(kernel_for(type, "running-sum-f32", "running-sum-typed"), type, "constant axis: int64[] " + rest);
      }
    }
    const std::string text = "opset 26\ninput x: " + type + "[5,9]\nconstant axis: int64[] 1\ny = CumProd(x, axis)\noutput y\n";
    compare({kernel_for(type, "running-product-f32", "running-product-typed").c_str(), text.c_str()});
  };
  for (const char* type : kFloats) running(type);
  for (const char* type : kIntegers) running(type);
}

std::string of_type(std::string text, const std::string& type) {
  for (std::size_t at; (at = text.find("TYPE")) != std::string::npos;) text.replace(at, 4, type);
  return text;
}

TEST(TypedRows, MatrixProducts) {
  const char* pairs[][2] = {
      {"[3,67]", "[67,19]"},  {"[2,3,5,7]", "[7,4]"}, {"[2,1,5,7]", "[3,7,4]"}, {"[5,7]", "[2,7,33]"},  {"[7]", "[2,7,5]"},
      {"[2,3,7]", "[7]"},     {"[7]", "[7]"},         {"[3,0]", "[0,4]"},       {"[2,3,0]", "[2,0,4]"}, {"[0,4]", "[4,5]"},
      {"[2,0,4]", "[4,5]"},   {"[0,2,4]", "[1,4,5]"}, {"[1,600]", "[600,1]"},   {"[300,70]", "[70]"},   {"[6,9,70]", "[6,70,33]"},
      {"[4,1,1]", "[4,1,33]"}};
  for (const char* type : {"float64", "float16", "bfloat16", "int32", "int64", "uint32", "uint64"}) {
    for (const auto& [a, b] : pairs) {
      const std::string text =
          of_type("input a: TYPE" + std::string(a) + "\ninput b: TYPE" + b + "\ny = MatMul(a, b)\noutput y\n", type);
      test::KernelCase c{is_half_name(type) ? "widened-gemm-f32" : "matmul-typed", text.c_str()};
      compare(c);
      c.sixteenths = true;
      compare(c);
    }
  }
}

TEST(TypedRows, Gemm) {
  const std::string straight = "input a: TYPE[5,7]\ninput b: TYPE[7,9]\n", turned = "input a: TYPE[7,5]\ninput b: TYPE[9,7]\n";
  for (const char* type : {"float64", "float16", "bfloat16", "int32", "int64", "uint32", "uint64"}) {
    const bool floats = std::string(type).find("int") == std::string::npos;
    const std::string kernel = is_half_name(type) ? "widened-gemm-f32" : "gemm-typed";
    const auto gemm = [&](const std::string& inputs, const std::string& call) {
      const std::string text = of_type("opset 13\n" + inputs + "y = Gemm" + call + "\noutput y\n", type);
      compare({kernel.c_str(), text.c_str()});
    };
    gemm(straight, "(a, b)");
    gemm(turned, "(a, b) {transA=1, transB=1}");
    for (const char* offset : {"[]", "[9]", "[1,9]", "[5,1]", "[5,9]", "[1,1]"}) {
      const std::string c = "input c: TYPE" + std::string(offset) + "\n";
      gemm(straight + c, "(a, b, c)");
      if (floats) gemm(turned + c, "(a, b, c) {transA=1, transB=1, alpha=0.5, beta=-2.0}");
      if (floats) gemm(straight + c, "(a, b, c) {alpha=2.0, beta=0.0}");
    }
    // A row, a column, and what is large enough to be packed.
    const int sizes[][3] = {{1, 70, 40}, {40, 70, 1}, {33, 70, 40}};
    for (const auto& [m, k, n] : sizes) {
      for (const bool ta : {false, true}) {
        for (const bool tb : {false, true}) {
          gemm(fmt::format("input a: TYPE[{},{}]\ninput b: TYPE[{},{}]\n", ta ? k : m, ta ? m : k, tb ? n : k, tb ? k : n),
               fmt::format("(a, b) {{transA={}, transB={}}}", ta ? 1 : 0, tb ? 1 : 0));
        }
      }
    }
    gemm("input a: TYPE[5,0]\ninput b: TYPE[0,9]\ninput c: TYPE[9]\n", "(a, b, c)");
    gemm("input a: TYPE[0,7]\ninput b: TYPE[7,9]\n", "(a, b)");
  }
}

TEST(TypedRows, SoftmaxAndItsLike) {
  for (const std::string type : kFloats) {
    for (const char* axis : {"{axis=-1}", "{axis=0}", "{axis=1}"}) {
      along(kernel_for(type, "softmax-f32", "softmax-f64"), type, std::string("y = Softmax(x) ") + axis);
      along(kernel_for(type, "log-softmax-f32", "log-softmax-f64"), type, std::string("y = LogSoftmax(x) ") + axis);
      along(kernel_for(type, "hardmax-f32", "hardmax-f64"), type, std::string("y = Hardmax(x) ") + axis);
    }
    const std::string flat = "opset 11\ninput x: " + type + "[3,5,7]\ny = Softmax(x)\noutput y\n";
    compare({kernel_for(type, "softmax-f32", "softmax-f64").c_str(), flat.c_str()});
  }
}

TEST(TypedRows, Norms) {
  for (const std::string type : kFloats) {
    const auto norm = [&](const std::string& kernel, const std::string& inputs, const std::string& call) {
      std::string text = "opset 24\n" + inputs + "\ny = " + call + "\noutput y\n";
      for (std::size_t at; (at = text.find("TYPE")) != std::string::npos;) text.replace(at, 4, type);
      compare({kernel_for(type, kernel + "-f32", kernel + "-f64").c_str(), text.c_str()});
    };
    for (const char* shape : {"[3,67]", "[2,5,33]", "[1,1]", "[0,4]"}) {
      const std::string x = std::string("input x: TYPE") + shape,
                        last = std::string(shape).substr(std::string(shape).rfind(',') + 1);
      const std::string scale = "\ninput s: TYPE[" + last + "\ninput b: TYPE[" + last;
      norm("layer-norm", x + scale, "LayerNormalization(x, s, b)");
      norm("layer-norm", x + scale, "LayerNormalization(x, s)");
      norm("rms-norm", x + scale, "RMSNormalization(x, s)");
      if (type != "float64") continue;
      const std::string head = "opset 17\ninput x: float64" + std::string(shape) + "\ninput s: float64[" + last + "\n";
      compare({"layer-norm-f64",
               (head + "y, m, i = LayerNormalization(x, s) {stash_type=11}\noutput y\noutput m\noutput i\n").c_str()});
      compare({"rms-norm-f64",
               (head + "y, i = com.microsoft.SimplifiedLayerNormalization(x, s) {stash_type=11}\noutput y\noutput i\n").c_str()});
      for (const char* attrs : {"{axis=-1, p=1}", "{axis=0, p=2}", "{axis=1, p=2}"}) {
        norm("lp-norm", x, std::string("LpNormalization(x) ") + attrs);
      }
    }
    for (const char* shape : {"[2,6,35]", "[3,6,5,7]", "[2,6]"}) {
      const std::string x = std::string("input x: TYPE") + shape, scale = "\ninput s: TYPE[6]\ninput b: TYPE[6]";
      norm("instance-norm", x + scale, "InstanceNormalization(x, s, b)");
      norm("group-norm", x + scale, "GroupNormalization(x, s, b) {num_groups=3}");
      const std::string statistics =
          "\nconstant s: TYPE[6] 1 2 0.5 -1 3 1\nconstant b: TYPE[6] 0 1 2 3 -4 5\nconstant m: TYPE[6] 0 "
          "0.5 -1 1 2 0\nconstant v: TYPE[6] 1 2 0.5 1 3 4";
      norm("batch-norm", x + statistics, "BatchNormalization(x, s, b, m, v)");
    }
    norm("mean-variance-norm", "input x: TYPE[2,3,5,7]", "MeanVarianceNormalization(x)");
    norm("mean-variance-norm", "input x: TYPE[2,3,5,7]", "MeanVarianceNormalization(x) {axes=[2, 3]}");
  }
}

}  // namespace
}  // namespace sdx::cpu
