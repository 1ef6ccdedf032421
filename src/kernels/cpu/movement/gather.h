#pragma once
// Slices along one axis, picked by indices (ONNX Gather).

#include <cstdint>
#include <optional>

namespace sdx::cpu {

// `data` has extents [outer, extent, ...]; the extents after the second take `run` bytes together. `indices` has `picks`
// elements.
struct GatherArgs {
  std::int64_t outer = 1, extent = 0, picks = 0;
  std::int64_t run = 0;
  const void* data = nullptr;     // at any alignment
  const void* indices = nullptr;  // int64, or int32 if not `wide`; at any alignment
  bool wide = true;
};

// The first index that is not in [-extent, extent).
std::optional<std::int64_t> index_out_of_range(const GatherArgs& g);

// y[outer, picks, ...]: slice i of the last axes is that of index i, where negative indices count from the end. The indices must
// be in range. `y` must not overlap the operands. Thread-safe, split over current_pool(); no scratch beyond the stack.
void gather(const GatherArgs& g, void* y);

}  // namespace sdx::cpu
