#pragma once
// Selects the elements of an axis that a slice takes.

#include <cstdint>

namespace sdx::ops {

struct SliceRange {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;
};

// Source: ONNX Slice-13: negative positions count from the end, then everything is clamped. Throws Error(invalid_model) if the
// step is 0.
SliceRange slice_range(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t extent);

}  // namespace sdx::ops
