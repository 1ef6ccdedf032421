#pragma once
// Scaled dot-product attention in float for a set of heads, without the full score matrix: keys are processed in blocks (of 128
// for few queries, of 384 for many), with the running maximum and sum of the online softmax (Milakov & Gimelshein 2018;
// FlashAttention).

#include <cstdint>
#include <limits>

#include "base/tools_api.h"

namespace sdx::cpu {

// Rows of keys or values, `stride` floats apart.
struct KeyRun {
  const float* data;
  std::int64_t stride, count;
};
// Keys and values stored outside k and v: returns the rows of a key head from `first` on, at most `most` of them, as far as they
// are contiguous. Rows not in float are widened into `spare`, which has room for `most` rows. Called from several threads.
struct KeySource {
  const void* self = nullptr;
  KeyRun (*run)(const void* self, bool values, std::int64_t kv_head, std::int64_t first, std::int64_t most,
                float* spare) = nullptr;
};

// One layer's attention. Strides count elements; the innermost axis (head_size) of q, k, v and out is contiguous.
// For batch b, head h, query i: scores over keys j of scale * q . k + mask, softcapped, softmax, times v.
struct AttentionArgs {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;  // heads must be a multiple: grouped queries share keys
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t head_size = 0;    // of q and k
  std::int64_t v_head_size = 0;  // of v and out
  const float* q = nullptr;
  std::int64_t q_batch = 0, q_head = 0, q_row = 0;
  const float* k = nullptr;
  std::int64_t k_batch = 0, k_head = 0, k_row = 0;
  const float* v = nullptr;
  std::int64_t v_batch = 0, v_head = 0, v_row = 0;
  float* out = nullptr;
  std::int64_t out_batch = 0, out_head = 0, out_row = 0;
  float scale = 1.0F;
  float softcap = 0.0F;  // > 0: scores become softcap * tanh(score / softcap), before the mask is added
  // Additive mask (may be null); a stride of 0 broadcasts. Its last axis is contiguous. With mask_row -1, what is added depends
  // on the distance between key and query alone.
  const float* mask = nullptr;
  std::int64_t mask_batch = 0, mask_head = 0, mask_row = 0;
  // Query i sees only keys j <= i + causal_offset. The offset is keys - queries for a cache that ends with the queries' own keys.
  bool causal = false;
  std::int64_t causal_offset = 0;
  // > 0: of these, only keys j > i + causal_offset - window (sliding window).
  std::int64_t window = 0;
  // 0 or more: of these, only keys j <= i + causal_offset + right.
  std::int64_t right = -1;
  // Valid keys per batch entry (may be null: all).
  const std::int32_t* key_lengths = nullptr;
  // Per head (may be null): a score that counts in the softmax's sum but has no value.
  const float* sink = nullptr;
  std::int64_t sink_head = 1, sink_row = 0;
  // With one query: computes heads that share keys together, so that keys are read once for all of them, even if threads stay
  // idle.
  bool share_keys = false;
  KeySource source;  // only attend_panels() uses it
  // Per query (may be null): set to 1 if the result may differ from that of single operators, and left alone otherwise. It may
  // differ if no score exceeds least_score, one exceeds 1e28 or is NaN, or an element of the result is not finite.
  std::uint8_t* odd = nullptr;
  std::int64_t odd_batch = 0, odd_head = 0, odd_row = 0;
  float least_score = -std::numeric_limits<float>::infinity();

  // Whether a query's place says which keys it sees.
  bool limits_keys() const { return causal || window > 0 || right >= 0; }
};

// x[size] with its first `dim` elements rotated by the angles whose cosines and sines are given (dim / 2 each), into y, which may
// be x. Pairs are (i, i + dim / 2), or neighbours if interleaved. Source: RoFormer, arXiv:2104.09864.
SDX_TOOLS_API void rotate_f32(const float* x, std::int64_t size, std::int64_t dim, const float* cos, const float* sin,
                              bool interleaved, float* y);

// A query that sees no key gives zeros. Float alignment; out must not overlap the inputs. Thread-safe, split over
// current_pool(); each computing thread keeps under 1 MB of scratch for head sizes up to 256.
void attention_f32(const AttentionArgs& args);

}  // namespace sdx::cpu
