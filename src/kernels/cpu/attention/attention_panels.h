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

// How many of the first `valid` keys have any weight for queries [q0, q0 + rows) of the heads that share key head kv. A mask that
// is the same for all queries gives the places behind a shorter sequence so little that their weights are 0 whatever the scores
// are; the bound is that of the norms of queries and keys. What hides infinities or NaN is not left out: 0 times these is NaN.
std::int64_t keys_with_weight(const AttentionArgs& a, std::int64_t b, std::int64_t kv, std::int64_t q0, std::int64_t rows,
                              std::int64_t valid);

// Queries [q0, q0 + rows) of all heads that share key head `kv` of batch entry b.
void attend_panels(const AttentionArgs& a, std::int64_t b, std::int64_t kv, std::int64_t q0, std::int64_t rows,
                   std::int64_t valid);
// Rows of one call at most, where threads do not ask for fewer: keys and values are packed once for them. `group` heads share
// keys.
std::int64_t panel_queries(std::int64_t group, std::int64_t head_size, std::int64_t v_head_size);

}  // namespace sdx::cpu
