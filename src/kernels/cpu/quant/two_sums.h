#pragma once
// Two sums of products in one 64-bit integer, for machines without vectors: (low + 2^32 high) x computes both products at once.

#include <cstdint>

namespace sdx::cpu {

inline std::uint64_t two_values(std::int32_t low, std::int32_t high) {
  return static_cast<std::uint64_t>(std::int64_t{low}) + (static_cast<std::uint64_t>(std::int64_t{high}) << 32);
}
inline std::uint64_t times(std::uint64_t two, std::int32_t x) { return two * static_cast<std::uint64_t>(std::int64_t{x}); }
// Else GCC vectorizes these 64-bit multiplications, for which vectors have no instruction, and reaches a third of the speed.
inline void keep_whole(std::uint64_t& a, std::uint64_t& b) { __asm__("" : "+r"(a), "+r"(b)); }
// The low sum must fit int32.
inline std::uint32_t low_sum(std::uint64_t two) { return static_cast<std::uint32_t>(two); }
inline std::uint32_t high_sum(std::uint64_t two) {
  return static_cast<std::uint32_t>((two - static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(two)})) >> 32);
}

}  // namespace sdx::cpu
