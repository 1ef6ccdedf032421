#pragma once
// The part that com.microsoft's Attention, MultiHeadAttention and DecoderMaskedMultiHeadAttention share: masks, biases, softmax.

#include <cstdint>

#include <sdx/tensor.hpp>

#include "ops/attention/attention_core.h"
#include "ops/context.h"

namespace sdx::ops {

struct MsAttention {
  std::int64_t batch = 0, heads = 0, q_len = 0, past_len = 0;
  std::int64_t kv_len = 0;    // cached and new keys
  std::int64_t capacity = 0;  // rows of the key and value arrays, at least kv_len
  std::int64_t size = 0, v_size = 0;
  HeadView<float> q, k, v;
  float scale = 0;  // 0: 1 / sqrt(size)
  float filter = -10000.0F;
  bool causal = false;
  const Tensor* mask = nullptr;  // int32: ends [B], ends and starts [2B], lengths [3B+2], [B,kv], [B,q,kv], [B,1,max,max]
  const Tensor* bias = nullptr;  // [1 or B, 1 or heads, q, kv]
};

// The output [batch, q_len, heads * v_size] as float32. `scores`, if given, receives [batch, heads, q_len, kv_len]: the scores
// before softmax.
Tensor run_ms_attention(OpContext& c, const MsAttention& a, Tensor* scores);

}  // namespace sdx::ops
