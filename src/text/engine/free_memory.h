#pragma once

#include <cstdint>

namespace sdx::text {

// Bytes that this process could allocate without others' having to free some: limited by the machine, and by its group of
// processes. 0: unknown.
std::uint64_t free_memory();

}  // namespace sdx::text
