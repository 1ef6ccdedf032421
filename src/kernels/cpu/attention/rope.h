#pragma once
// Rotary position embedding for all floating types. Source: RoFormer, arXiv:2104.09864.

#include <cstdint>

#include <sdx/dtype.hpp>

namespace sdx::cpu {

struct Rope {
  std::int64_t rows = 0;       // all rows; of each `positions` in turn
  std::int64_t positions = 1;  // rows of one sequence
  std::int64_t elements = 0;   // of a row, of which the first `dims` are rotated
  std::int64_t dims = 0;
  bool interleaved = false;  // pairs are neighbours, not (i, i + dims / 2)
  bool inverse = false;      // rotates back
  double base = 0, scale = 1;
  const float* frequencies = nullptr;  // [dims / 2]; null: powers of the base
};

// Rotates each row of x by its number in the sequence plus an offset: one for all rows, or one for each of `count` equal parts.
// Split over current_pool().
void rope(DataType type, const Rope& r, const std::int64_t* offsets, std::int64_t count, const void* x, void* y);

}  // namespace sdx::cpu
