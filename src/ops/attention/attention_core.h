#pragma once
// Scaled dot-product attention and its surroundings, shared by the attention operators of ai.onnx and com.microsoft.
// Plain reference code: float (or double) accumulation, one row of scores per thread at a time.

#include <cstdint>
#include <functional>
#include <utility>

#include <sdx/tensor.hpp>

#include "base/cancel.h"
#include "ops/math/convert.h"

namespace sdx::ops {

// Returns `num_heads`. Throws Error(invalid_model) unless it is in [1, 2^20].
std::int64_t checked_heads(std::int64_t num_heads);

// Vectors [batch, head, row, :] somewhere in memory; strides in elements, the vectors themselves contiguous.
template <class T>
struct HeadView {
  const T* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0;
  const T* at(std::int64_t b, std::int64_t h, std::int64_t r) const { return data + b * batch + h * head + r * row; }
};

// Extents of empty arrays may be anything: products and sums of extents are taken with care, and the views below throw
// Error(invalid_argument) where a stride would not fit.
// The view of a [batch, heads, rows, size] array ("BNSH"), and of a [batch, rows, heads * size] one ("BSD").
template <class T>
HeadView<T> view_bnsh(const T* data, std::int64_t heads, std::int64_t rows, std::int64_t size) {
  return {data, element_count(Shape{heads, rows, size}), element_count(Shape{rows, size}), size};
}
template <class T>
HeadView<T> view_bsd(const T* data, std::int64_t heads, std::int64_t rows, std::int64_t size) {
  return {data, element_count(Shape{rows, heads, size}), size, element_count(Shape{heads, size})};
}

// Y = softmax(cap(scale * Q K^T) + bias) V for every batch, head and query row. All pointers are valid for the extents given;
// heads is a multiple of kv_heads.
template <class T>
struct AttentionProblem {
  // Called with the row of scores [0, kv_len) of query row (batch, head, query); from several threads at once.
  using RowHook = std::function<void(std::int64_t batch, std::int64_t head, std::int64_t query, T* row)>;

  std::int64_t batch = 0, heads = 0, kv_heads = 0, q_len = 0, kv_len = 0, size = 0, v_size = 0;
  HeadView<T> q, k, v;
  T* out = nullptr;  // strides as in HeadView
  std::int64_t out_batch = 0, out_head = 0, out_row = 0;
  T scale = 1;
  T softcap = 0;  // > 0: scores become softcap * tanh(score / softcap)
  // Whether rows that see no key, NaN and infinities give the same as single operators: q_scale and k_scale, parts of `scale`,
  // apply before the product, and no key is skipped for its weight of 0. zero_nan: weights that are NaN become 0.
  bool by_steps = false, zero_nan = false;
  T q_scale = 1, k_scale = 1;
  // Keys [first, second) that a query row may see; all when null.
  std::function<std::pair<std::int64_t, std::int64_t>(std::int64_t batch, std::int64_t query)> visible;
  RowHook add_bias;         // adds masks and biases, after the softcap
  const T* sink = nullptr;  // per head: a logit that takes part in the softmax's denominator alone
  // Observers, for operators that also give the scores: after scaling, after the softcap, with masks, and after softmax.
  RowHook see_scores, see_capped, see_masked, see_probabilities;
  const StopCondition* stop = nullptr;
};

// A row that may see no key, or only keys at -infinity, gives zeros, unless by_steps.
void attend(const AttentionProblem<float>& problem);
void attend(const AttentionProblem<double>& problem);

// past + fresh rows. Throws Error(runtime_failure) beyond 2^40, which no cache reaches.
std::int64_t total_rows(std::int64_t past, std::int64_t fresh);

// The beam that each cached row comes from: source batch = group * beams + beam. (com.microsoft cache_indirection)
struct Indirection {
  const std::int32_t* data = nullptr;  // [batch, max_len]
  std::int64_t beams = 1, max_len = 0;
};

// The rows of a key or value cache: [batch, heads, capacity, size], `past_len` rows of `past` first, then `len` new rows (plus
// bias[heads * size] if given). The rest is zero, or keeps the content of `past` if that is a shared buffer. `past` is [batch,
// heads, past_capacity, size].
template <class T>
struct CacheParts {
  std::int64_t batch = 0, heads = 0, size = 0;
  const T* past = nullptr;
  std::int64_t past_capacity = 0, past_len = 0;
  HeadView<T> fresh;
  std::int64_t len = 0;
  const T* bias = nullptr;
  std::int64_t capacity = 0;  // at least past_len + len
  Indirection indirection;
  bool shared = false;
};
Tensor gather_rows(const CacheParts<float>& parts);
Tensor gather_rows(const CacheParts<double>& parts);

// Rotates the first `dim` elements of a vector by the angles whose cosines and sines are given (dim / 2 of each). Pairs are
// (i, i + dim/2), or neighbours when interleaved. Source: RoFormer, arXiv:2104.09864. `in` and `out` may be the same.
template <class T>
void rotate(const T* in, T* out, std::int64_t dim, const T* cos, const T* sin, bool interleaved) {
  const std::int64_t half = dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const std::int64_t a = interleaved ? 2 * i : i;
    const std::int64_t b = interleaved ? 2 * i + 1 : i + half;
    const T x = in[a], y = in[b];
    out[a] = x * cos[i] - y * sin[i];
    out[b] = x * sin[i] + y * cos[i];
  }
}

// Converts all elements of `from` into `to`; same number of elements, both of float types.
void convert_into(Tensor& to, const Tensor& from);

// The sum of a[i] * b[i].
float dot(const float* a, const float* b, std::int64_t count);
double dot(const double* a, const double* b, std::int64_t count);

// out[rows, cols] = x[rows, inner] * w[inner, cols] + bias[cols] (may be null); in parallel over rows.
void dense(const float* x, const float* w, const float* bias, float* out, std::int64_t rows, std::int64_t inner,
           std::int64_t cols);

}  // namespace sdx::ops
