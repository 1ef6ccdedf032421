#pragma once
// The activations of kernels/cpu/elementwise/ for other types than float32.

#include <cstdint>

#include <sdx/dtype.hpp>

#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// y[i] = f(x[i]) for i < n, elements of float64, float16 or bfloat16; the 16-bit types are computed in float32 and rounded once.
// In place allowed; pointers are aligned to their elements. Thread-safe, split over current_pool().
void activation(const UnarySpec& spec, DataType type, const void* x, void* y, std::int64_t n);

}  // namespace sdx::cpu
