#pragma once
// Prefetches memory that is read later.

#include <cstdint>

namespace sdx::cpu {

// Prefetches the line `bytes` after p. It may lie beyond the array, where a pointer must not point, but an address may.
inline void prefetch_after(const void* p, std::int64_t bytes) {
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(bytes);
  __builtin_prefetch(reinterpret_cast<const void*>(at));  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace sdx::cpu
