#pragma once
// Attention as single operators compute it, for the few queries whose result attention_f32() marks: rows that see no key, and
// those that NaN, infinities or numbers beyond 1e28 reach.

#include <cstdint>

#include "kernels/cpu/attention/attention.h"

namespace sdx::cpu {

// Broadcast to [batch, head, query, key]; a stride of 0 broadcasts.
template <class T>
struct ScoreTerm {
  const T* data = nullptr;  // null: none
  std::int64_t batch = 0, head = 0, row = 0, key = 0;
  const T* of(std::int64_t b, std::int64_t h, std::int64_t i) const { return data + b * batch + h * head + i * row; }
};

struct AttentionSteps {
  float q_scale = 1, k_scale = 1;  // the parts of the scale that apply before the product of queries and keys
  ScoreTerm<float> add;            // added to the scores
  ScoreTerm<bool> see;             // where this does not hold, `hidden` takes the score's place
  ScoreTerm<float> hidden;
  bool zero_nan = false;  // weights that are NaN become 0
};

// Recomputes the queries for which args.odd is set. args.mask, causal and window are not read: `steps` says which keys are
// hidden. Split over current_pool().
void attention_by_steps_f32(const AttentionArgs& args, const AttentionSteps& steps);

}  // namespace sdx::cpu
