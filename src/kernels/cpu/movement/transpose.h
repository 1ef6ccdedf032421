#pragma once
// Data movement by element size. Elements are 1, 2, 4, 8 or 16 bytes, at any alignment; outputs must not overlap inputs.
// Thread-safe, split over current_pool(); no scratch beyond the stack.

#include <cstddef>
#include <cstdint>

#include "base/tools_api.h"

namespace sdx::cpu {

// y[permuted] = x: y's axis i is x's axis perm[i]; `dims` are x's extents. rank <= 32, here and below.
void transpose(const void* x, void* y, std::size_t element_size, int rank, const std::int64_t* dims, const int* perm);

// A strided gather: y (dense, extents dims) [i...] = x[sum i * strides], strides in elements, of any sign or 0. Covers Slice and
// Expand and, together with copy_strided_to, the copies of Concat, Split and Pad.
SDX_TOOLS_API void copy_strided(const void* x, void* y, std::size_t element_size, int rank, const std::int64_t* dims,
                                const std::int64_t* x_strides);
// A strided scatter: y[sum i * strides] = x (dense).
SDX_TOOLS_API void copy_strided_to(const void* x, void* y, std::size_t element_size, int rank, const std::int64_t* dims,
                                   const std::int64_t* y_strides);

}  // namespace sdx::cpu
