#pragma once
// Attention for many queries, a vector panel of them at a time; internal to this folder.

#include "kernels/cpu/attention/attention.h"

namespace sdx::cpu {

// Keys [first, last) that query i may see, of `valid` ones.
struct VisibleKeys {
  std::int64_t first;
  std::int64_t last;
};
VisibleKeys visible_keys(const AttentionArgs& a, std::int64_t i, std::int64_t valid);

// Up to so many queries of a head the products go row by row: packing keys costs more, and half of a panel would be empty.
inline constexpr std::int64_t kMostFewQueries = 16;
std::int64_t few_queries();

// Queries [q0, q0 + rows) of all heads that share key head `kv` of batch entry b.
inline constexpr std::int64_t kPanelQueries = 384;  // rows at most: keys and values are packed once for them
void attend_panels(const AttentionArgs& a, std::int64_t b, std::int64_t kv, std::int64_t q0, std::int64_t rows,
                   std::int64_t valid);

}  // namespace sdx::cpu
