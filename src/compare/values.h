#pragma once
// Whether a result is the expected one.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sdx/tensor.hpp>

#include "graph/graph.h"

namespace sdx::compare {

// The permitted difference of an element: scale * (largest finite |expected| of the tensor) + absolute + relative * |expected|.
// With max_steps > 0, elements may differ by that many times more, as long as the mean stays below mean_steps times.
struct Tolerance {
  double scale = 0;
  double absolute = 0;
  double relative = 0;
  double mean_steps = 0;
  double max_steps = 0;
  std::string reason;  // for people: "float32", "one quantisation step"
};

// The difference that a model's arithmetic permits.
struct Precision {
  int quantizers = 0;  // nodes that quantise activations: there a difference in rounding becomes a step of the grid
  bool half = false;   // it computes in float16 or bfloat16
  // The largest scale of the DequantizeLinear or QuantizeLinear that an output comes from, if it is a constant and the nodes
  // between enlarge no difference (Reshape, Concat, Relu, MaxPool, …; Sigmoid makes it a quarter).
  std::vector<std::optional<double>> output_step;  // parallel to the graph's outputs
};
Precision precision_of(const Graph& graph);

// The default for an expected output, `index` counting the model's outputs:
//  - text, bool and integers: exact; integers of 4 to 16 bits of a quantised model: 1 step;
//  - float32 and float64: 1e-4 of the tensor's largest magnitude; float16 1e-2; bfloat16 2e-2; 8-bit and smaller floats
//    one step of their mantissa at the largest magnitude;
//  - floats of a model that computes in half precision: 1e-2 of the largest magnitude;
//  - floats of a quantised model: the output's own step where it is known, else 1/127 of the largest magnitude (a symmetric
//    8-bit grid over the tensor's range).
// Where a model quantises more than once, a difference in one layer's rounding passes through those behind it: there at most
// 16 steps and on average 2 are allowed. (A 53-convolution face detector run in floats between its quantisers is up
// to 12 steps, 1.2 on average, away from ONNX Runtime's integer convolutions; with our own integer ones it agrees with them.)
Tolerance default_tolerance(const Precision& precision, std::size_t index, DataType expected);

struct Comparison {
  bool pass = true;
  std::string type;            // of the expected value
  double max_abs = 0;          // largest |actual - expected|
  double max_rel = 0;          // largest |actual - expected| / (largest finite |expected| of the tensor)
  std::int64_t differing = 0;  // elements outside the tolerance
  std::string why;             // the error, with the worst element; empty on a pass
};

// NaN equals NaN, infinities equal themselves. Element types and shapes must agree. Sequences and maps are compared item by
// item; a map's keys may come in any order.
Comparison compare_values(const Value& expected, const Value& actual, const Tolerance& tolerance);

}  // namespace sdx::compare
