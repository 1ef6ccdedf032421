#pragma once
// Counts how often the highest score is that of the label.

#include <cstdint>

#include <sdx/tensor.hpp>

namespace sdx::train::loop {

struct Hits {
  std::int64_t right = 0, counted = 0;
};

// `scores`: floating-point [N, C, ...]; `labels`: int64 or int32 [N, ...]. Labels that equal `ignored` do not count. Counts
// nothing if the shapes do not fit.
Hits count_hits(const Tensor& scores, const Tensor& labels, std::int64_t ignored);

}  // namespace sdx::train::loop
