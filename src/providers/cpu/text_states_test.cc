// The fast kernels of operators with states of texts against their references.

#include "support/compare_kernels.h"

namespace sdx::cpu {
namespace {

// Three texts in one step: a new one, one that goes on in another slot, and one that goes on where it is.
constexpr const char* kTexts = R"(
constant starts: int64[4] 0 3 4 9
constant past: int64[3] 0 7 2
constant slots: int32[3,2] -1 2 3 0 4 4
)";

std::string with_texts(std::string text) {
  const std::size_t at = text.find("TEXTS\n");
  return text.replace(at, 6, kTexts);
}

TEST(TextStates, FastKernelsAreAsTheirReferences) {
  for (const char* tiled : {"", ", tiled=1"}) {
    const std::string delta = with_texts(R"(opset 21
input qkv: float32[1,9,240]
input alpha: float32[1,9,6]
input beta: float32[1,9,6]
constant a: float32[6] -0.5 -0.1 -1 -0.2 -0.7 -0.3
constant bias: float32[6] 0.1 -0.3 0.5 0 1 -1
input state: float32[5,6,12,32]
TEXTS
y, new_state = sdx.GatedDelta(qkv, alpha, beta, a, bias, state, starts, past, slots) {key_heads=2)") +
                              tiled + "}\noutput y\noutput new_state\n";
    test::compare({.kernel = "gated-delta-f32", .graph = delta.c_str()});
  }
  const std::string scan = with_texts(R"(opset 21
input xbc: float32[1,9,186]
input time: float32[1,9,6]
constant a: float32[6] -0.5 -0.1 -1 -0.2 -0.7 -0.3
constant bias: float32[6] 0.1 -0.3 0.5 0 1 -1
input skip: float32[6]
input state: float32[5,6,9,25]
TEXTS
y, new_state = sdx.SelectiveScan(xbc, time, a, bias, skip, state, starts, past, slots) {groups=2, least_step=0.25, most_step=1.5}
output y
output new_state
)");
  test::compare({.kernel = "selective-scan-f32", .graph = scan.c_str()});
  for (const char* bias : {"_", "bias"}) {
    std::string convolution = with_texts(R"(opset 21
input x: float32[1,9,37]
input w: float32[4,37]
input bias: float32[37]
input state: float32[5,3,37]
TEXTS
y, new_state = sdx.StateConvolution(x, w, BIAS, state, starts, past, slots)
output y
output new_state
)");
    convolution.replace(convolution.find("BIAS"), 4, bias);
    test::compare({.kernel = "state-convolution-f32", .graph = convolution.c_str()});
  }
}

}  // namespace
}  // namespace sdx::cpu
