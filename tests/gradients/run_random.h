#pragma once

#include <cstdint>

namespace sdx::gradient_tests {

// Draws so many graphs from number `first` on, compares their gradients with differences in float64 (with declared, unknown and
// symbolic extents, of first and second order) and the gradients in float32, also with fused operators, with those in float64.
// Prints what fails, cut down to what it takes to fail. Returns how many failed.
int run_random(std::uint64_t first, std::uint64_t count);

}  // namespace sdx::gradient_tests
