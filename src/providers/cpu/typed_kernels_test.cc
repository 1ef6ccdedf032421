// The fast kernels of other types than float against the operators' references.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/cpu/elementwise/convert.h"
#include "ops/math/convert.h"
#include "support/compare_kernels.h"
#include "tensor/element.h"

namespace sdx::cpu {
namespace {

using test::compare;
using test::KernelCase;

TEST(TypedKernels, ComparisonsLogicAndIntegers) {
  const std::string pair[] = {"float32[2,3,17]\ninput b: float32[3,1]", "int64[17]\ninput b: int64[2,3,17]",
                              "int32[4,1,5]\ninput b: int32[]", "int64[0,3]\ninput b: int64[3]"};
  for (const std::string& types : pair) {
    for (const char* op : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Add", "Sub", "Mul", "Min", "Max"}) {
      const bool arithmetic = op[0] == 'A' || op[0] == 'S' || op[0] == 'M';
      const char* kernel = arithmetic && types[0] == 'f' ? "binary-f32" : "pair-typed";
      compare({kernel, ("input a: " + types + "\ny = " + op + "(a, b)\noutput y\n").c_str()});
    }
  }
  for (const char* type : {"uint8", "int8", "uint16", "int16", "uint32", "uint64"}) {
    for (const char* op : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Add", "Sub", "Mul", "Min", "Max"}) {
      const std::string text =
          "input a: " + std::string(type) + "[3,1,131]\ninput b: " + type + "[2,131]\ny = " + op + "(a, b)\noutput y\n";
      compare({"pair-typed", text.c_str()});
    }
  }
  for (const char* op : {"And", "Or", "Xor", "Equal"}) {
    const std::string text = "input a: bool[5,1,7]\ninput b: bool[6,7]\ny = " + std::string(op) + "(a, b)\noutput y\n";
    compare({"pair-typed", text.c_str()});
  }
  const KernelCase cases[] = {
      {"map-typed", "input a: bool[33]\ny = Not(a)\noutput y\n"},
      {"map-typed", "input a: int64[33]\ny = Neg(a)\noutput y\n"},
      {"map-typed", "input a: int32[33]\ny = Abs(a)\noutput y\n"},
      {"map-typed", "input a: int8[133]\ny = Neg(a)\noutput y\n"},
      {"map-typed", "input a: int16[133]\ny = Abs(a)\noutput y\n"},
      {"map-typed", "input a: float32[33]\ny = IsNaN(a)\noutput y\n"},
      {"map-typed", "input a: float32[33]\ny = IsInf(a) {detect_negative=0}\noutput y\n"},
      {"where", "input c: bool[4,1,9]\ninput a: float32[4,3,9]\ninput b: float32[]\ny = Where(c, a, b)\noutput y\n"},
      {"where", "input c: bool[9]\ninput a: int64[1]\ninput b: int64[4,3,9]\ny = Where(c, a, b)\noutput y\n"},
      {"where", "input c: bool[4,1]\ninput a: bool[9]\ninput b: bool[2,1,9]\ny = Where(c, a, b)\noutput y\n"},
      {"where", "input c: bool[2,0]\ninput a: float32[1]\ninput b: float32[2,1]\ny = Where(c, a, b)\noutput y\n"},
  };
  for (const KernelCase& c : cases) compare(c);
}

// Every function of elements has a kernel for the types that the operator permits.
TEST(TypedKernels, EveryFunctionForEveryType) {
  const char* floats[] = {"float64", "float16", "bfloat16"};
  const char* integers[] = {"int32", "int64", "uint8", "int16"};
  const auto of_one = [](const char* kernel, const std::string& type, const std::string& call) {
    compare({kernel, ("opset 24\ninput x: " + type + "[3,67]\ny = " + call + "\noutput y\n").c_str()});
  };
  const auto of_two = [](const char* kernel, const std::string& type, const std::string& call) {
    const std::string text = "opset 24\ninput a: " + type + "[3,67]\ninput b: " + type + "[67]\ny = " + call + "\noutput y\n";
    compare({kernel, text.c_str()});
  };
  for (const char* type : floats) {
    for (const char* op : {"Neg",  "Abs",  "Sign", "Sqrt", "Reciprocal", "Floor", "Ceil",  "Round", "Sin",  "Cos",   "Tan",
                           "Asin", "Acos", "Atan", "Sinh", "Cosh",       "Asinh", "Acosh", "Atanh", "Relu", "IsNaN", "IsInf"}) {
      of_one("map-typed", type, std::string(op) + "(x)");
    }
    for (const char* op :
         {"Sigmoid(x)", "Tanh(x)", "Softplus(x)", "Exp(x)", "Log(x)", "Erf(x)", "Softsign(x)", "Mish(x)", "HardSwish(x)",
          "LeakyRelu(x) {alpha=0.25}", "HardSigmoid(x)", "Elu(x)", "Selu(x)", "Celu(x) {alpha=2.0}",
          "ThresholdedRelu(x) {alpha=0.5}", "Shrink(x) {bias=0.25}", "Swish(x)", "Gelu(x)", "Gelu(x) {approximate=\"tanh\"}"}) {
      of_one("activation-typed", type, op);
    }
    for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Sum", "PRelu", "Equal", "Less", "LessOrEqual",
                           "Greater", "GreaterOrEqual"}) {
      of_two("pair-typed", type, std::string(op) + "(a, b)");
    }
    of_two("pair-typed", type, "Mod(a, b) {fmod=1}");
    of_two("fold-typed", type, "Mean(a, b)");
    of_two("fold-typed", type, "Sum(a, b, a)");
    of_two("fold-typed", type, "Max(b, a, b)");
  }
  of_two("fold-typed", "float32", "Mean(a, b, b)");
  for (const char* type : integers) {
    for (const char* op : {"Abs", "Sign", "BitwiseNot"}) of_one("map-typed", type, std::string(op) + "(x)");
    for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "PRelu"})
      of_two("pair-typed", type, std::string(op) + "(a, b)");
    of_two("pair-typed", type, "BitShift(a, b) {direction=\"LEFT\"}");
    of_two("pair-typed", type, "BitShift(a, b) {direction=\"RIGHT\"}");
    of_two("fold-typed", type, "Min(a, b, a)");
    for (const char* op : {"Div(a, b)", "Mod(a, b)", "Mod(a, b) {fmod=1}"}) {
      const std::string text =
          "input a: " + std::string(type) + "[3,67]\nconstant b: " + type + "[67] 7\ny = " + op + "\noutput y\n";
      compare({"pair-typed", text.c_str()});
    }
  }
  for (const char* type : {"int32", "int64"}) {
    of_one("map-typed", type, "Relu(x)");
    of_two("pair-typed", type, "Pow(a, b)");
  }
}

TEST(TypedKernels, ClipTakesBoundsOfTheRun) {
  for (const char* type : {"float64", "float16", "int32", "int64", "uint8", "float32"}) {
    const std::string text = "input x: " + std::string(type) + "[5,67]\ninput low: " + type + "[]\ninput high: " + type + "[]\n";
    compare({"clip-typed", (text + "y = Clip(x, low, high)\noutput y\n").c_str()});
    compare({"clip-typed", (text + "y = Clip(x, _, high)\noutput y\n").c_str()});
  }
}

constexpr DataType kNumbers[] = {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16, DataType::int8,
                                 DataType::int16,   DataType::int32,   DataType::int64,   DataType::uint8,    DataType::uint16,
                                 DataType::uint32,  DataType::uint64,  DataType::boolean};

TEST(TypedKernels, Casts) {
  for (const DataType from : kNumbers) {
    for (const DataType to : kNumbers) {
      const std::string cast = "[5,67]\ny = Cast(x) {to=" + std::to_string(static_cast<int>(to)) + "}\noutput y\n";
      if (from != to) compare({"cast", ("input x: " + std::string(name(from)) + cast).c_str()});
    }
  }
  compare({"cast", "input x: float32[5,67]\ninput like: float16[1]\ny = CastLike(x, like)\noutput y\n"});
}

// Any bits at all: also numbers that the other type rounds, or cannot hold.
TEST(TypedKernels, CastsOfAnyBits) {
  std::mt19937_64 rng(7);
  for (const DataType from : kNumbers) {
    for (const bool small : {false, true}) {  // exponents near those of integers
      Tensor x(from, {3000});
      auto* bytes = static_cast<std::uint8_t*>(x.mutable_data());
      for (std::size_t i = 0; i < x.bytes(); ++i)
        bytes[i] = static_cast<std::uint8_t>(rng() % (from == DataType::boolean ? 2 : 256));
      for (std::int64_t i = 0; small && i < x.size(); ++i)
        set_element(x, i, std::ldexp(static_cast<double>(rng()) - 0x1p63, static_cast<int>(rng() % 70) - 66));
      for (const DataType to : kNumbers) {
        Tensor fast(to, x.shape()), slow(to, x.shape());
        ops::convert(x, slow);
        cast_elements(from, to, x.data(), fast.mutable_data(), x.size());
        for (std::int64_t i = 0; i < x.size(); ++i) {
          const double a = element_as_double(fast, i), b = element_as_double(slow, i);
          ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
              << name(from) << " to " << name(to) << ": " << element_as_double(x, i) << " gave " << a << ", not " << b;
        }
      }
    }
  }
}

}  // namespace
}  // namespace sdx::cpu
