#pragma once
// Reduces the candidates for one face to one.

#include <sdx/faces.hpp>
#include <vector>

#include "vision/detect/family.h"

namespace sdx::vision {

// Intersection over union of continuous boxes; 0 where both are empty.
float overlap(const faces::Box& a, const faces::Box& b);

// The candidates that no better one overlaps by more than `limit`, best first; of equal ones the earlier. Only the best `top_k`
// are looked at (0 or less: all).
std::vector<faces::Face> suppress(const std::vector<faces::Face>& candidates, Overlap rule, float score, float limit, int top_k);

}  // namespace sdx::vision
