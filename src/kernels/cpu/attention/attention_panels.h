#pragma once
// Attention for many queries, a vector panel of them at a time; internal to this folder.

#include "kernels/cpu/attention/attention.h"

namespace sdx::cpu {

// The keys [first, last) that query i may see, of the first `valid` ones.
struct VisibleKeys {
  std::int64_t first;
  std::int64_t last;
};
VisibleKeys visible_keys(const AttentionArgs& a, std::int64_t i, std::int64_t valid);

// Whether all magnitudes are at most `most`, which is finite.
bool all_within(const float* x, std::int64_t n, float most);
constexpr float kMostOrdinaryScore = 1e28F;
// AttentionArgs::odd for a query whose largest score, sum of weights and result these are.
void mark_if_odd(const AttentionArgs& a, std::int64_t b, std::int64_t h, std::int64_t query, float most, float total,
                 const float* out);

// With at most this many queries of a head, products are computed row by row: packing keys would cost more, and half of a panel
// would be empty.
inline constexpr std::int64_t kMostFewQueries = 16;
std::int64_t few_queries();

// Number of leading keys, of the first `valid`, whose weight is not 0 for queries [q0, q0 + rows) of the heads that share key
// head kv. A mask that is the same for all queries can lower the scores past the end of a shorter sequence so far that their
// weights are 0 whatever the scores are; the norms of queries and keys bound the scores. Keys and values that are infinite or NaN
// are kept: 0 times these is NaN.
std::int64_t keys_with_weight(const AttentionArgs& a, std::int64_t b, std::int64_t kv, std::int64_t q0, std::int64_t rows,
                              std::int64_t valid);

// Queries [q0, q0 + rows) of all heads that share key head `kv` of batch entry b.
void attend_panels(const AttentionArgs& a, std::int64_t b, std::int64_t kv, std::int64_t q0, std::int64_t rows,
                   std::int64_t valid);
// The most rows of one call, unless threads need smaller calls: keys and values are packed once per call. `group` heads share
// keys.
std::int64_t panel_queries(std::int64_t group, std::int64_t head_size, std::int64_t v_head_size);
// The panels of queries of one call: at most `most`, and fewer if there are too few `groups` of heads for the threads of the
// current pool, or if some threads would have one group more than the others. Each call packs the group's keys and values again,
// as long as a quarter of a panel takes. Three heads of 197 queries take two threads 0.113 ms in three calls, and 0.096 in six.
std::int64_t panels_per_task(std::int64_t groups, std::int64_t panels, std::int64_t most);

}  // namespace sdx::cpu
