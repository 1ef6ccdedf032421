#pragma once
// Where results of operations lie: in blocks that are counted, and kept for the next results when they are free.

#include <sdx/array/memory.hpp>
#include <sdx/tensor.hpp>

#include "base/memory.h"

namespace sdx::array::detail {

// Smaller blocks are malloc's. Larger ones would leave holes in its memory, into which the programs go that are compiled
// meanwhile: ten thousand sums of arrays of different lengths took 500 MB of which nothing was in use.
inline constexpr std::size_t kLeastKept = 2048;

// For LentAllocation: what allocate() takes while arrays are computed.
AllocationContext array_memory() noexcept;

// An uninitialised tensor in such memory.
Tensor new_tensor(DataType dtype, Shape shape);

}  // namespace sdx::array::detail
