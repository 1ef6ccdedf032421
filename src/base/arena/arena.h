#pragma once
// Assigns each buffer of a run a place in one block of memory.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sdx {

struct BufferRequest {
  std::size_t bytes = 0;
  std::uint32_t first = 0;  // step that writes it first
  std::uint32_t last = 0;   // step that uses it last
  std::size_t offset = 0;   // result, a multiple of 64
};

// Assigns offsets so that buffers whose lifetimes overlap do not share memory; returns the size of the block. Largest first, each
// at the lowest offset that is free during its life: within a few percent of the lower bound on real networks, in
// O(n * overlapping) time.
std::size_t assign_offsets(std::vector<BufferRequest>& buffers);

}  // namespace sdx
