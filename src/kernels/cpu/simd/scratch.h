#pragma once
// Memory per thread, for a kernel's intermediate results.

#include <cstddef>

namespace sdx::cpu {

// Room for `floats` floats, 64-byte aligned, kept between calls; its contents are lost when it grows. Slot 0: A tiles of
// gemm_block(), 1: its B panels, 2 and 3: the caller's, 4: results that a caller's tasks leave for it, 5: operands split for
// gemm_split.h. Throws std::bad_alloc.
float* thread_scratch(int slot, std::size_t floats);

}  // namespace sdx::cpu
