#pragma once
// Matrices whose rows are quantised in blocks: each block of a row has a step (scale) and the code that stands for 0.

#include <cstdint>
#include <span>
#include <vector>

#include <sdx/dtype.hpp>

namespace sdx::quantize {

struct BlockFormat {
  int bits = 4;             // 2, 4 or 8
  std::int64_t block = 32;  // elements of a row that share a scale: a power of two from 16
  bool symmetric = false;   // the zero point is the middle code, 2^(bits - 1)
  // Scales are rounded to it before codes are chosen, so that codes fit the scales that the model holds.
  DataType scale_type = DataType::float32;

  int most() const { return (1 << bits) - 1; }
  int middle() const { return 1 << (bits - 1); }
};

enum class Rounding {
  nearest,  // steps from the smallest and the largest element of the block
  search,   // of a few dozen narrower ranges the one with the least squared error
  hqq,      // zero points that are no integers, by half-quadratic splitting (Badri and Shaji 2023); not symmetric
};

// The meaning of a block's codes: (code - zero) * scale.
struct BlockScale {
  float scale = 0, zero = 0;
};

// [rows, columns], every row padded to whole blocks with codes of 0.
struct BlockMatrix {
  BlockFormat format;
  std::int64_t rows = 0, columns = 0, blocks = 0;
  bool float_zeros = false;         // zero points are no integers
  std::vector<std::uint8_t> codes;  // [rows, blocks * block], one byte each
  std::vector<float> scales;        // [rows, blocks]
  std::vector<float> zeros;         // [rows, blocks]

  BlockMatrix() = default;
  BlockMatrix(const BlockFormat& f, std::int64_t row_count, std::int64_t column_count);
  std::int64_t width() const { return blocks * format.block; }
  float at(std::int64_t row, std::int64_t column) const;
};

// The scale for one block. `importance` weighs squared errors by element; empty: all alike. The zero is an integer unless
// `rounding` is hqq.
BlockScale choose_scale(std::span<const float> block, const BlockFormat& format, Rounding rounding,
                        std::span<const float> importance = {});

// The nearest code.
std::uint8_t encode(float value, const BlockScale& scale, const BlockFormat& format);

// `weights` is [rows, columns], `importance` [columns] or empty. Runs on the current pool's threads.
BlockMatrix quantize_blocks(std::span<const float> weights, std::int64_t rows, std::int64_t columns, const BlockFormat& format,
                            Rounding rounding, std::span<const float> importance = {});

// Square root of the mean squared error over that of the weights.
double relative_error(std::span<const float> weights, const BlockMatrix& matrix);

// Codes of `bits` bits, low bits first, `per_row` codes a row of whole bytes.
std::vector<std::uint8_t> packed_rows(std::span<const std::uint8_t> codes, std::int64_t rows, std::int64_t per_row, int bits);

}  // namespace sdx::quantize
