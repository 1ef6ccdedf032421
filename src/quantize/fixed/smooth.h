#pragma once
// SmoothQuant (Xiao and others 2022): moves large magnitudes of single channels from activations into the weights that multiply
// them.

#include <sdx/quantize.hpp>

#include "graph/graph.h"

namespace sdx::quantize {

// Divides each channel of the inputs of MatMul and Gemm with constant weights by max|input|^alpha / max|weight|^(1 - alpha), and
// multiplies the weights by the same: the float model computes what it did. The divisors go into the node that gives the input
// (norms, products, Mul, Add), or into a Mul where it has other readers. Returns how many nodes read smoother inputs. Throws
// Error(invalid_argument) for an alpha outside 0 to 1.
std::int64_t smooth(Model& model, CalibrationDataReader& data, const StaticQuantOptions& options);

}  // namespace sdx::quantize
