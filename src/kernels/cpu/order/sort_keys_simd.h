#pragma once
// Sorting unsigned numbers by vectors: Highway's quicksort. In place; equal numbers are the same.

#include <cstdint>

namespace sdx::cpu {

struct KeySorters {
  void (*u32)(std::uint32_t* keys, std::int64_t n);
  void (*u64)(std::uint64_t* keys, std::int64_t n);
};

const KeySorters& key_sorters();

}  // namespace sdx::cpu
