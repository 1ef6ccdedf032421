#pragma once
// Shared by kernels of sdx PagedAttention: the shapes of its inputs, the places of a step's tokens, and int8 rows.

#include <array>
#include <cstdint>
#include <optional>

#include <sdx/tensor.hpp>

#include "ops/attention/grouped_query.h"
#include "ops/attention/signatures.h"

namespace sdx::ops {

struct PagedShapes {
  HeadCounts heads;
  bool packed = false, quantised = false;
  std::int64_t tokens = 0, size = 0, blocks = 0, block_size = 0, sequences = 0, table_width = 0;
  std::int64_t positions = 0, angles = 0;  // rows and columns of cos_cache
  std::int64_t window = -1;                // -1: none

  // The position of row `row` of head `head` of a block, counted in rows of `size` elements.
  std::int64_t cache_row(std::int64_t block, std::int64_t head, std::int64_t row) const {
    return (block * heads.kv + head) * block_size + row;
  }
};

// The shapes of all inputs, where they are given, in the order of PagedIn.
using PagedInputShapes = std::array<std::optional<Shape>, PagedIn::kCount>;

// Throws Error(runtime_failure) for shapes that do not fit together, and Error(invalid_model) for impossible attributes.
PagedShapes paged_shapes(const PagedAttrs& attrs, const HeadCounts& heads, const PagedInputShapes& inputs);

// Sequence s has the tokens [starts[s], starts[s + 1]) of the step, behind past[s] cached ones.
struct PagedBatch {
  const std::int64_t* starts = nullptr;
  const std::int64_t* past = nullptr;
  const std::int32_t* table = nullptr;  // [sequences, table_width]
  std::int64_t table_width = 0, block_size = 0;

  std::int64_t length(std::int64_t s) const { return starts[s + 1] - starts[s]; }
  std::int64_t total(std::int64_t s) const { return past[s] + length(s); }
  std::int64_t block(std::int64_t s, std::int64_t position) const { return table[s * table_width + position / block_size]; }
};

// Starts rise from 0 to the number of tokens; each block that a token reads or writes exists; no row is written twice; positions
// lie within cos_cache. Throws Error(runtime_failure) otherwise. Blocks in front of a window may be missing.
PagedBatch checked_batch(const PagedShapes& shapes, const std::int64_t* starts, const std::int64_t* past,
                         const std::int32_t* table);

// to[i] = from[i] / scale, rounded to the nearest even; returns the scale, the largest magnitude / 127. A row with a NaN or an
// infinity gets a scale that is none either, so that all of it reads as NaN.
float quantize_row(const float* from, std::int64_t size, std::int8_t* to);

}  // namespace sdx::ops
