// out = softmax(scale * q k' + mask) v, a workgroup per query: the keys pass by in blocks, with the largest score and the sum so far, so
// that no matrix of scores is stored. Q, K and V are [batch, heads, rows, size], or [batch, rows, heads * size] where they are flat; one
// entry may serve the whole batch. The mask has a step for each axis of the scores, 0 where it repeats.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "functions.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint kFlat = 0;    // bits: Q (and the result), K, V
layout(constant_id = 1) const uint kShared = 0;  // bits: Q, K, V serve the whole batch
layout(constant_id = 2) const bool kMask = false;
layout(constant_id = 3) const bool kCausal = false;
layout(constant_id = 4) const uint kUnseen = 0;  // of a query without keys: 0: zeros, 1: NaN
layout(push_constant, scalar) uniform Push {
  Floats q, k, v, mask, out_;
  uint heads, kv_heads, queries, keys, size, v_size;
  uint mask_batch, mask_head, mask_row, mask_key;
  float scale;
} p;

const uint kMostSize = 1024;  // of a head's values
const uint kEach = kMostSize / kGroup;
#define kLow uintBitsToFloat(0xFF800000u)
shared float parts[kGroup];
shared float weights[kGroup];

float most_of(float a, float b) { return is_nan(a) ? a : is_nan(b) ? b : max(a, b); }

float most_of_group(float x) {
  uint i = gl_LocalInvocationIndex;
  parts[i] = x;
  barrier();
  for (uint n = kGroup / 2; n > 0; n /= 2) {
    if (i < n) parts[i] = most_of(parts[i], parts[i + n]);
    barrier();
  }
  float r = parts[0];
  barrier();
  return r;
}

float sum_of_group(float x) {
  uint i = gl_LocalInvocationIndex;
  parts[i] = x;
  barrier();
  for (uint n = kGroup / 2; n > 0; n /= 2) {
    if (i < n) parts[i] += parts[i + n];
    barrier();
  }
  float r = parts[0];
  barrier();
  return r;
}

uint place(uint which, uint b, uint h, uint row, uint heads, uint rows, uint size) {
  if ((kShared >> which & 1u) == 1u) b = 0;
  return (kFlat >> which & 1u) == 1u ? ((b * rows + row) * heads + h) * size : ((b * heads + h) * rows + row) * size;
}

void main() {
  uint i = gl_LocalInvocationIndex, query = gl_WorkGroupID.x, h = gl_WorkGroupID.y, b = gl_WorkGroupID.z;
  uint kv = h / (p.heads / p.kv_heads);
  uint q_at = place(0, b, h, query, p.heads, p.queries, p.size);
  uint mask_at = b * p.mask_batch + h * p.mask_head + query * p.mask_row;
  uint end = kCausal ? min(p.keys, query + 1) : p.keys;
  float sums[kEach];
  for (uint c = 0; c < kEach; ++c) sums[c] = 0.0;
  float most = kLow, sum = 0.0;
  for (uint first = 0; first < end; first += kGroup) {
    uint key = first + i;
    float score = kLow;
    if (key < end) {
      uint k_at = place(1, b, kv, key, p.kv_heads, p.keys, p.size);
      score = 0.0;
      for (uint c = 0; c < p.size; ++c) score += p.q.at[q_at + c] * p.k.at[k_at + c];
      score *= p.scale;
      if (kMask) score += p.mask.at[mask_at + key * p.mask_key];
    }
    float top = most_of(most, most_of_group(score));
    float before = most == kLow ? 0.0 : exp_of(most - top);
    float weight = score == kLow ? 0.0 : exp_of(score - top);
    most = top;
    sum = sum * before + sum_of_group(weight);
    weights[i] = weight;
    barrier();
    uint count = min(kGroup, end - first);
    for (uint c = 0; c < kEach; ++c) {
      uint at = c * kGroup + i;
      if (at >= p.v_size) break;
      float s = sums[c] * before;
      for (uint j = 0; j < count; ++j) s += weights[j] * p.v.at[place(2, b, kv, first + j, p.kv_heads, p.keys, p.v_size) + at];
      sums[c] = s;
    }
    barrier();
  }
  // The result is laid out like Q, without a shared batch.
  uint out_at = (kFlat & 1u) == 1u ? ((b * p.queries + query) * p.heads + h) * p.v_size : ((b * p.heads + h) * p.queries + query) * p.v_size;
  bool unseen = most == kLow;
  for (uint c = 0; c < kEach; ++c) {
    uint at = c * kGroup + i;
    if (at >= p.v_size) break;
    p.out_.at[out_at + at] = unseen ? (kUnseen == 1u ? uintBitsToFloat(0x7FC00000u) : 0.0) : sums[c] / sum;
  }
}
