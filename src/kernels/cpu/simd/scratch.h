#pragma once
// Memory of each thread's own, for what a kernel computes on the way.

#include <cstddef>

namespace sdx::cpu {

// Room for `floats` floats, 64-byte aligned, kept between calls; what it holds is lost when it grows. slot 0: A tiles of
// gemm_block(), 1: its B panels, 2 and 3: the caller's own, 4: what a caller's tasks leave
// for it. Throws std::bad_alloc.
float* thread_scratch(int slot, std::size_t floats);

}  // namespace sdx::cpu
