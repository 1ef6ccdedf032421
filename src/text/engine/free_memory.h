#pragma once

#include <cstdint>

namespace sdx::text {

// Bytes that this process could take now without others' having to give some up: of the machine, and of its group of processes.
// 0: not known.
std::uint64_t free_memory();

}  // namespace sdx::text
