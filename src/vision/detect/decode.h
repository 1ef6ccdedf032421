#pragma once
// A detector's outputs into faces. Nothing that the tensors hold can do harm: their sizes are checked, and candidates whose
// numbers are not finite are dropped.

#include <cstdint>
#include <sdx/faces.hpp>
#include <sdx/session.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "vision/detect/family.h"

namespace sdx::vision {

struct Output {
  std::string_view name;
  std::span<const std::int64_t> shape;
  std::span<const float> values;
};

// The input that gave the outputs.
struct InputSize {
  int width = 0, height = 0;
};

// Candidates with a score of at least `score`, in the model's order, in pixels of the input. Throws Error(runtime_failure) if the
// outputs do not fit the family or the input's size, listing what was expected and received.
std::vector<faces::Face> decode(Family family, std::span<const Output> outputs, InputSize input, float score);

}  // namespace sdx::vision
