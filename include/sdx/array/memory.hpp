#pragma once
// Memory that arrays use. All functions are thread-safe; all numbers are bytes.

#include <cstddef>

#include <sdx/export.hpp>

namespace sdx::array {

// Current memory of results and of computing them, and its peak since the start or reset_peak_memory(). Tensors passed in by
// callers are not counted.
SDX_API std::size_t get_active_memory();
SDX_API std::size_t get_peak_memory();
SDX_API void reset_peak_memory();

// Unused memory kept for future results, since taking a fresh page from the system costs more than writing it.
SDX_API std::size_t get_cache_memory();
// Returns the cache to the system.
SDX_API void clear_cache();
// Limits the cache; the default is an eighth of the machine's memory. Returns the previous limit.
SDX_API std::size_t set_cache_limit(std::size_t limit);

// Limits active memory; 0, the default: no limit. Beyond it, evaluation throws Error(out_of_memory) and leaves arrays unchanged.
// Returns the previous limit.
SDX_API std::size_t set_memory_limit(std::size_t limit);

}  // namespace sdx::array
