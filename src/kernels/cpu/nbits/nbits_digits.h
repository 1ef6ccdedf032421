#pragma once
// Weight-only products in integers; internal to this folder. Multiplying codes of 4 bits as floats takes three instructions for
// eight of them, more time than reading them from memory does. Here a row of activations becomes fixed-point numbers, in parts of
// up to 32 with a scale each, and these are cut into digits of 8 bits (16 for codes of 8 bits), with which one instruction
// multiplies 32 codes or more. Sums of a part are exact. Three digits have 23 bits: a float32 product's own rounding is larger.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/nbits/nbits_simd.h"

namespace sdx::cpu {

// One row: for each part of `part` activations a record of
//   float scale; float sum (of the part, as rounded); int32 correction[digits]; then per word of codes and digit 8 bytes:
// codes of 4 bits: int8 of the activations 0 2 4 6, then 1 3 5 7, as a word's even and odd codes lie in its bytes;
// codes of 8 bits: int16 of the activations 0 2, then 1 3.
// A correction is what a part's sum starts from: digits' sums times -2^(bits-1) where blocks have no zero points, times -1 where
// they have integers, which the kernel multiplies with them; 0 for floats. As int32 for codes of 8 bits; for codes of 4 bits as
// two int16, of the activations that the lower and the upper half of a word's bytes meet.
struct NBitsRowFormat {
  int digits;
  std::int64_t part;
  std::int64_t parts;  // of a block
  std::int64_t words;  // of a part and column
  std::int64_t record_bytes;
  std::int64_t row_bytes;
};

// `exact` digits: as many as float32 needs; otherwise 16 bits, or 8 where codes have 4 and `coarse` is set.
enum class NBitsDigits { exact, half, coarse };
NBitsRowFormat nbits_row_format(const NBitsLayout& layout, NBitsDigits digits);

}  // namespace sdx::cpu
