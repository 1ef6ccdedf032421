#pragma once
// Weight-only products in integers; internal to this folder. Multiplying codes of 4 bits as floats takes three instructions for
// eight of them, longer than reading them from memory. Here a row of activations becomes fixed-point numbers, in parts of up to
// 32 with one scale each, which are cut into digits of 8 bits (16 for codes of 8 bits): one instruction multiplies 32 or more
// codes by them. The sums of a part are exact. Three digits have 23 bits: a float32 product's own rounding is larger.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/nbits/nbits_simd.h"

namespace sdx::cpu {

// One row: for each part of `part` activations a record of
//   float scale; float sum (of the part, as rounded); int32 correction[digits]; then per word of codes and digit 8 bytes:
// codes of 4 bits: int8 of the activations 0 2 4 6, then 1 3 5 7, in the order of a word's even and odd codes;
// codes of 8 bits: int16 of the activations 0 2, then 1 3; with byte digits, per two words int8 of 0 to 3, then 4 to 7.
// A part's sum starts from its correction: the digits' sum times -2^(bits-1) if blocks have no zero points; times -1 if they have
// integer ones, by which the kernel multiplies it; 0 if these are floats. It is an int32 for codes of 8 bits and on Arm; else,
// for codes of 4 bits, two int16, for the activations multiplied by the lower and the upper half of a word's bytes.
struct NBitsRowFormat {
  int digits;
  std::int64_t part;
  std::int64_t parts;  // of a block
  std::int64_t words;  // of a part and column
  std::int64_t record_bytes;
  std::int64_t row_bytes;
};

// `exact`: as many digits as float32 needs. `half`: 16 bits. `coarse`: 8 bits if codes have 4 or with byte digits, else 16.
enum class NBitsDigits { exact, half, coarse };
// byte_digits: those for codes of 8 bits have 8 bits, too.
NBitsRowFormat nbits_row_format(const NBitsLayout& layout, NBitsDigits digits, bool byte_digits);

}  // namespace sdx::cpu
