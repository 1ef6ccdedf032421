#pragma once
// Shared by the com.microsoft attention operators with fewer key than query heads.

#include <sdx/tensor.hpp>

#include "ops/attention/attention_core.h"
#include "ops/context.h"

namespace sdx::ops {

struct HeadCounts {
  std::int64_t q = 0, kv = 0;
};

// num_heads and kv_num_heads. Throws Error(invalid_model) unless the first is a positive multiple of the second.
HeadCounts head_counts(const Attributes& attrs);

// Inputs 0 to 2, the new tokens' query, key and value, as float32 and as views of [batch, heads, length, size]; key and value may
// be packed behind the query.
struct GroupedQuery {
  Tensor query, key, value;  // key and value undefined when packed
  HeadView<float> q, k, v;
};

// `query` is input 0, [batch, length, heads * size], checked by the caller. Throws if key or value have other shapes.
GroupedQuery grouped_query(OpContext& c, const HeadCounts& heads, std::int64_t size);

}  // namespace sdx::ops
