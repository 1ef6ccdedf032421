#pragma once
// Products of ggml's codes with activations of 8 bits: per-target loops, internal to this folder. Weights of a block are codes
// times a scale, less a zero point that all blocks of the type share, or plus a minimum. Activations are rounded to 8 bits in
// blocks of 32, each with its own float32 scale. Products of codes are exact integers.

#include <cstdint>

#include "tensor/ggml.h"

// For #if in files that are compiled once per instruction set: whether byte_kernels() has a table.
#define SDX_BYTE_PRODUCTS ((HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_TARGET == HWY_NEON)

namespace sdx::cpu {

inline constexpr std::int64_t kByteBlock = 32;   // activations with one scale
inline constexpr std::int64_t kBytePart = 1024;  // so many elements of a row are multiplied at a time, at most
inline constexpr std::int64_t kByteGroups = kBytePart / 16;

// Codes of a type: weight = scale * (code - zero) + minimum. With 8 bits they are signed, else at least 0.
struct ByteCodes {
  int bits;  // 4, 5, 6, 8
  int zero;
  int group;  // weights with one scale: 16 or 32
  bool minimum;
};
// Null for types without codes, and for those that are always multiplied as floats.
const ByteCodes* byte_codes(GgmlType type);

// Rows of activations: [rows][32 * blocks] codes, [rows][blocks] scales; for each group of weights the sum of its codes: times
// its scale if the weights have minimums (`sums`), else as an integer, times the negated zero point (`starts`).
struct ByteRows {
  std::int64_t blocks = 0;
  int group = 32;
  std::int8_t* codes = nullptr;
  float* scales = nullptr;
  float* sums = nullptr;
  std::int32_t* starts = nullptr;

  std::int64_t groups() const { return blocks * (kByteBlock / group); }
  // The same rows from row i and block b on.
  ByteRows from(std::int64_t i, std::int64_t b) const {
    const std::int64_t at = i * groups() + b * (kByteBlock / group);
    return {blocks,
            group,
            codes + (i * blocks + b) * kByteBlock,
            scales + i * blocks + b,
            sums != nullptr ? sums + at : nullptr,
            starts != nullptr ? starts + at : nullptr};
  }
};

// Part of as many rows of weights as the kernel has columns: codes [k / 4][columns][4], the others [group][columns]. Codes of 8
// bits are moved by 128 if `unsigned_bytes` is set.
struct BytePanel {
  std::int64_t blocks = 0;
  const std::uint8_t* codes = nullptr;
  const float* scales = nullptr;
  const float* minimums = nullptr;
};

// out[i * columns + j] for m rows of activations, m <= 4 or 8.
using ByteTile = void (*)(const ByteCodes& format, const BytePanel& panel, const ByteRows& rows, std::int64_t m, float* out);
struct ByteKernels {
  // Takes `blocks` blocks of 32 weights of a row apart; a type's own blocks are whole.
  void (*unpack)(GgmlType type, const void* row, std::int64_t blocks, std::uint8_t* codes, float* scales, float* minimums);
  // Rounds one row of blocks of activations. `factor`: what starts are times sums. False if a number is not finite.
  bool (*round)(const float* x, const ByteRows& row, std::int64_t blocks, std::int32_t factor);
  ByteTile tile;
  int columns;          // of a panel
  int rows;             // most rows of a tile: 4 or 8
  bool unsigned_bytes;  // panels' codes of 8 bits are not signed
};

// Null if the instruction set has no byte product that pays off.
const ByteKernels* byte_kernels();

}  // namespace sdx::cpu
