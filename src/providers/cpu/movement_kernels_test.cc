// Operators that move elements have a kernel for every type of whole bytes.

#include <gtest/gtest.h>

#include "support/compare_kernels.h"

namespace sdx::cpu {
namespace {

using test::compare;

constexpr const char* kTypes[] = {"float64", "float16", "bfloat16", "float32", "int32", "int64", "uint8", "int16", "bool"};

// The statements of one node, T for the type of elements.
struct Movement {
  const char* kernel;
  const char* text;
};

constexpr Movement kMovements[] = {
    {"move", "input x: T[4,5]\nconstant i: int64[4,3] 0 1 2 -1 4 3 0 0 0 2 1 -5\ny = GatherElements(x, i) {axis=1}"},
    {"move", "input x: T[3,5]\nconstant i: int32[3,5] 0 1 2 0 1 1 1 1 1 1 2 2 0 -3 2\ny = GatherElements(x, i)"},
    {"move", "input x: T[4,5]\nconstant i: int64[3,2] 0 1 -1 4 2 2\ny = GatherND(x, i)"},
    {"move", "input x: T[2,3,4]\nconstant i: int64[2,2,1] 0 2 1 -1\ny = GatherND(x, i) {batch_dims=1}"},
    {"move", "input x: T[4,5]\nconstant i: int64[4,2] 0 4 3 1 2 -1 0 1\ninput u: T[4,2]\ny = ScatterElements(x, i, u) {axis=1}"},
    {"scatter-stretches", "input x: T[4,5]\nconstant i: int64[2,1] 3 1\ninput u: T[2,5]\ny = ScatterND(x, i, u)"},
    {"split", "input x: T[4,6]\ny, z = Split(x) {axis=1, num_outputs=2}\noutput z"},
    {"move", "input x: T[4,5]\nconstant p: int64[4] 1 -2 2 1\ny = Pad(x, p)"},
    {"move", "input x: T[4,5]\nconstant p: int64[4] 1 2 2 1\ny = Pad(x, p) {mode=\"reflect\"}"},
    {"move", "input x: T[4,5]\nconstant p: int64[4] 1 2 2 1\ny = Pad(x, p) {mode=\"edge\"}"},
    {"move", "input x: T[4,5]\nconstant p: int64[4] 1 2 2 1\ny = Pad(x, p) {mode=\"wrap\"}"},
    {"move", "input x: T[4,5]\nconstant s: int64[2] 6 3\ny = CenterCropPad(x, s)"},
    {"move", "input x: T[4,5]\nconstant r: int64[2] 2 3\ny = Tile(x, r)"},
    {"move", "input x: T[4,1]\nconstant s: int64[3] 2 4 5\ny = Expand(x, s)"},
    {"move", "input x: T[2,8,3,5]\ny = DepthToSpace(x) {blocksize=2}"},
    {"move", "input x: T[2,8,3,5]\ny = DepthToSpace(x) {blocksize=2, mode=\"CRD\"}"},
    {"move", "input x: T[2,2,6,4]\ny = SpaceToDepth(x) {blocksize=2}"},
    {"move", "input x: T[2,4,5]\ny = Trilu(x)"},
    {"move", "input x: T[4,5]\nconstant k: int64[] -1\ny = Trilu(x, k) {upper=0}"},
    {"move", "input x: T[4,3,2]\nconstant n: int64[3] 4 0 2\ny = ReverseSequence(x, n)"},
    {"move", "input x: T[3,4]\nconstant n: int64[3] 4 1 2\ny = ReverseSequence(x, n) {batch_axis=0, time_axis=1}"},
    {"move", "input x: T[2,4,3]\ninput u: T[2,2,3]\nconstant w: int64[2] 1 2\ny = TensorScatter(x, u, w) {axis=1}"},
    {"fill", "constant i: int64[3] 0 -1 7\nconstant d: int64[] 5\ninput v: T[2]\ny = OneHot(i, d, v)"},
    {"fill", "input x: T[4,5]\ny = EyeLike(x) {k=1}"},
    {"gather", "input x: T[4,5]\nconstant i: int64[3] 3 0 -1\ny = Gather(x, i)"},
    {"transpose", "input x: T[4,5]\ny = Transpose(x)"},
    {"concat", "input x: T[4,5]\ninput z: T[4,3]\ny = Concat(x, z) {axis=1}"},
    {"slice",
     "input x: T[4,5]\nconstant s: int64[2] 3 0\nconstant e: int64[2] 0 5\nconstant a: int64[2] 0 1\n"
     "constant p: int64[2] -1 2\ny = Slice(x, s, e, a, p)"},
    {"where", "input c: bool[4,1]\ninput x: T[4,5]\ninput z: T[5]\ny = Where(c, x, z)"},
};

std::string of_type(std::string_view text, std::string_view type) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool stands_alone = text[i] == 'T' && (i + 1 == text.size() || text[i + 1] == '[') && text[i - 1] == ' ';
    out += stands_alone ? std::string(type) : std::string(1, text[i]);
  }
  return "opset 24\n" + out + "\noutput y\n";
}

TEST(MovementKernels, EveryOperatorForEveryType) {
  for (const char* type : kTypes) {
    for (const Movement& m : kMovements) {
      compare({m.kernel, of_type(m.text, type).c_str()});
    }
  }
}

TEST(MovementKernels, ReductionsOfScatteredUpdates) {
  for (const char* type : kTypes) {
    if (std::string_view(type) == "bool") continue;
    for (const char* reduction : {"add", "mul", "min", "max"}) {
      const std::string attribute = "reduction=\"" + std::string(reduction) + "\"}";
      const std::string elements =
          "input x: T[3,5]\nconstant i: int64[3,2] 0 4 3 3 -1 4\ninput u: T[3,2]\ny = ScatterElements(x, i, u) {axis=1, ";
      compare({"move", of_type(elements + attribute, type).c_str()});
      const std::string nd = "input x: T[4,5]\nconstant i: int64[3,1] 3 1 3\ninput u: T[3,5]\ny = ScatterND(x, i, u) {";
      compare({"move", of_type(nd + attribute, type).c_str()});
    }
  }
}

TEST(MovementKernels, NearestAndRange) {
  for (const char* type : {"float64", "float16", "int32", "int64"}) {
    const std::string nearest =
        of_type("input x: T[1,2,3,4]\nconstant s: float32[4] 1 1 2 3\ny = Resize(x, _, s) {mode=\"nearest\"}", type);
    compare({"move", nearest.c_str()});
  }
  for (const char* type : {"float32", "float64", "int32", "int64"}) {
    const std::string t(type);
    const std::string text = "constant a: " + t + "[] 3\nconstant b: " + t + "[] 40\nconstant d: " + t + "[] 5\n";
    compare({"fill", (text + "y = Range(a, b, d)\noutput y\n").c_str()});
  }
}

}  // namespace
}  // namespace sdx::cpu
