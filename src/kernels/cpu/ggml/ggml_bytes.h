#pragma once
// Products of GgmlArgs whose activations are rounded to 8 bits; internal to this folder.

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/cpu/ggml/ggml.h"

namespace sdx::cpu {

// Computes the products that may round activations, and of which ggml_multiplies_bytes() is true. Threads share the work of all
// of them. Returns the numbers of the others, which are left to be computed in float32.
std::vector<std::size_t> ggml_gemms_of_bytes(std::span<const GgmlArgs> all);

}  // namespace sdx::cpu
