#pragma once
// Makes reads of uninitialised memory visible. With SDX_POISON=1 in the environment, everything that a run may write to (arenas,
// outputs, workspaces, new tensors) is filled before it is written, and filled again when it is no longer needed. A read of such
// memory then shows in the results, in the same way each time.

#include <cstddef>
#include <cstdint>

namespace sdx {

// Whether SDX_POISON is 1. Read once.
bool poisoning() noexcept;

// Fills with the words A5 A5 A5 7F: a signalling NaN as float32, 7.6e306 as float64, large or negative as integers.
void poison(void* data, std::size_t bytes) noexcept;

// Fills with `pattern` over and over, whose lowest `width` bytes (at most 8) come first in memory.
void poison(void* data, std::size_t bytes, std::uint64_t pattern, std::size_t width) noexcept;

}  // namespace sdx
