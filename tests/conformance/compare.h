#pragma once
// Comparing values with the tolerances of ONNX's own test runner (onnx/backend/test/runner): rtol 1e-3, atol 1e-7.

#include <string>

#include <sdx/tensor.hpp>

namespace sdx::testing {

struct Tolerance {
  double rtol = 1e-3;
  double atol = 1e-7;
};

// "" when they agree, else the first difference. Integers, bool and strings must be equal, as must 8-bit and smaller floats; NaN
// equals NaN; float32 also gets 4 units in the last place of the largest expected element; float16 and bfloat16 get at least two
// units in the last place (2^-9 and 2^-6 relative). Sequences, maps and optionals element by element; the order of a map's keys
// does not matter.
std::string difference(const Value& actual, const Value& expected, const Tolerance& tolerance = {});

}  // namespace sdx::testing
