#pragma once
// Keys and values as attention kernels read them, with a cache of earlier ones.

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/cpu/attention/attention.h"

namespace sdx::cpu {

// Q, K or V of one layer: [batch, heads, rows, size], or [batch, rows, heads * size] where `flat`.
struct Heads {
  std::int64_t batch = 0, heads = 0, rows = 0, size = 0;
  bool flat = false;
  std::int64_t batch_step() const { return heads * rows * size; }
  std::int64_t head_step() const { return flat ? size : rows * size; }
  std::int64_t row_step() const { return flat ? heads * size : size; }
};

// The heads that share key head number i of all batch entries' ones.
inline AttentionArgs one_group(const AttentionArgs& a, std::int64_t i) {
  const std::int64_t b = i / a.kv_heads, kv = i % a.kv_heads, group = a.heads / a.kv_heads, h = kv * group;
  AttentionArgs one = a;
  one.batch = one.kv_heads = 1;
  one.heads = group;
  one.q += b * a.q_batch + h * a.q_head;
  one.k += b * a.k_batch + kv * a.k_head;
  one.v += b * a.v_batch + kv * a.v_head;
  one.out += b * a.out_batch + h * a.out_head;
  if (a.mask != nullptr) one.mask += b * a.mask_batch + h * a.mask_head;
  if (a.sink != nullptr) one.sink += h;
  if (a.odd != nullptr) one.odd += b * a.odd_batch + h * a.odd_head;
  if (a.key_lengths != nullptr) one.keys = std::clamp<std::int64_t>(a.key_lengths[b], 0, a.keys);
  one.key_lengths = nullptr;
  return one;
}

// Attention of all groups, where `join(i)` makes the keys and values of key head number i of all batch entries'. With few queries
// each head's cache is made and then read while it is in the second-level cache. `offset(b)`: causal_offset of batch entry b.
template <class Join, class Offset>
void attend_joined(const AttentionArgs& a, const Join& join, const Offset& offset) {
  constexpr std::int64_t kFewQueries = 8;
  const std::int64_t groups = a.batch * a.kv_heads;
  const std::int64_t work = std::max<std::int64_t>(1, a.keys * (a.head_size + a.v_head_size));
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / work);
  const bool few = a.queries <= kFewQueries;
  parallel_for(groups, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      join(i);
      if (!few) continue;
      AttentionArgs one = one_group(a, i);
      one.causal_offset = offset(i / a.kv_heads);
      one.share_keys = groups >= current_pool().threads();
      attention_f32(one);
    }
  });
  if (few) return;
  for (std::int64_t b = 0; b < a.batch;) {
    // Batch entries that are equally far go together.
    std::int64_t end = b + 1;
    while (end < a.batch && offset(end) == offset(b)) ++end;
    AttentionArgs some = a;
    some.batch = end - b;
    some.q += b * a.q_batch, some.k += b * a.k_batch, some.v += b * a.v_batch, some.out += b * a.out_batch;
    if (a.mask != nullptr) some.mask += b * a.mask_batch;
    if (a.key_lengths != nullptr) some.key_lengths += b;
    if (a.odd != nullptr) some.odd += b * a.odd_batch;
    some.causal_offset = offset(b);
    attention_f32(some);
    b = end;
  }
}

}  // namespace sdx::cpu
