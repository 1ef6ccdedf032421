#pragma once
// Attention for several texts at once, with keys and values in blocks of one pool. Source of the layout: Kwon et al.,
// arXiv:2309.06180.

#include <cstdint>

#include <sdx/dtype.hpp>

namespace sdx::cpu {

// Keys or values: [blocks, kv_heads, block_size, head_size] of float32, float16, bfloat16 or int8. `scales`: one per row, int8
// only; else null.
struct PagedRows {
  DataType type = DataType::float32;
  void* data = nullptr;
  float* scales = nullptr;
};

// Row number `row` of [blocks * kv_heads * block_size] becomes x[head_size], rounded to the nearest.
void write_paged_row(const PagedRows& rows, std::int64_t row, const float* x, std::int64_t head_size);

// Text s has queries [starts[s], starts[s + 1]), which follow past[s] rows of earlier tokens; their own rows have been written.
// Query t sees the rows of positions up to past[s] + t - starts[s]. All numbers have been checked.
struct PagedArgs {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;  // heads is a multiple
  std::int64_t head_size = 0, block_size = 1;
  PagedRows keys, values;
  std::int64_t texts = 0;
  const std::int64_t* starts = nullptr;  // [texts + 1]
  const std::int64_t* past = nullptr;    // [texts]
  const std::int32_t* table = nullptr;   // [texts, table_width]: each text's blocks in order
  std::int64_t table_width = 0;
  const float* q = nullptr;  // rows of [heads, head_size], q_row apart
  std::int64_t q_row = 0;
  float* out = nullptr;  // [queries, heads, head_size], dense
  float scale = 1.0F;
  float softcap = 0.0F;         // > 0: scores become softcap * tanh(score / softcap)
  std::int64_t window = 0;      // > 0: a query sees only this many positions, its own last
  const float* sink = nullptr;  // per head (may be null): a score in the sum under the softmax that has no value
};

// Thread-safe, split over current_pool(). A text of one or a few queries is always read in parts of 512 positions, so its result
// depends neither on the other texts nor on the number of threads.
void paged_attention_f32(const PagedArgs& args);

}  // namespace sdx::cpu
