#pragma once
// Products of floats by AMX's tiles of bfloat16; internal to this folder and to kernels that hold packed panels.
//
// A float is the sum of three bfloat16 of 8 bits each: high, middle and low. Of the nine products of two such sums, six are
// computed; the other three are below 2^-21 of the whole. For 16 x 16 sums over 32 steps of K, six tile products take 96 cycles,
// FMAs 256. Products of bfloat16 are exact in float, so only sums round. Those of two high parts are added last, since the other
// sums are small: the error is a fifth to a third of that of FMAs.
//
// Tiles take factors and sums below 1.18e-38 for zero, so a factor loses bits where it is below 1e-33. Infinities and NaN cannot
// be split: whoever finds them when splitting computes with floats.
//
// Source: Henry, Tang, Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations",
// ARITH 2019.

#include <cstdint>

namespace sdx::cpu {

// Extents of a block of sums, and how much of K is multiplied at a time.
inline constexpr std::int64_t kSplitRows = 32, kSplitColumns = 32, kSplitStep = 32;
// bfloat16 of kSplitStep of K of a block of rows or columns: [part: high, middle, low][2 tiles][16][32].
inline constexpr std::int64_t kSplitBlock = 3 * 2 * 512;

inline std::int64_t split_steps(std::int64_t k) { return (k + kSplitStep - 1) / kSplitStep; }

// Rows in parts, [blocks of 32 rows][steps][kSplitBlock].
struct SplitRows {
  std::uint16_t* to = nullptr;
  std::int64_t k = 0;
  bool finite = true;  // else some element is infinite or NaN, and `to` is of no use
};

// One panel of columns, [k][32], in parts, [steps][kSplitBlock]. Made in pieces, while another panel is multiplied.
struct SplitPanel {
  const float* b = nullptr;
  std::int64_t k = 0;
  std::uint16_t* to = nullptr;
  std::int64_t fetch = 0;   // distance in floats of what is prefetched while this is read
  bool two_columns = true;  // false: only the first 16 columns are read
  std::int64_t done = 0;    // pairs of rows; (k + 1) / 2 in all, then zeros up to whole steps
  bool finite = true;       // of what is done
  std::int64_t left() const { return split_steps(k) * (kSplitStep / 2) - done; }
};

// sums[32][32] of one block of rows by one panel.
struct SplitProduct {
  const std::uint16_t* a = nullptr;
  const std::uint16_t* b = nullptr;
  std::int64_t steps = 0;
  bool two_rows = true, two_columns = true;  // false: only the first 16
  float* sums = nullptr;                     // 64-byte aligned
};

struct SplitKernels {
  // Rows [row, row + m) of a, `lda` apart, become the same rows of `rows`.
  void (*split_rows)(SplitRows& rows, const float* a, std::int64_t lda, std::int64_t row, std::int64_t m);
  // The same where a is stored [k][step], its rows next to each other; m up to 16.
  void (*split_tile)(SplitRows& rows, const float* a, std::int64_t step, std::int64_t row, std::int64_t m);
  // Rows [row, row + m), m up to 16 and row a multiple of 16, of rows.k / 16 chunks of 16 floats: those of row i lie at
  // x[i] + chunks[...].
  void (*split_chunks)(SplitRows& rows, const float* const* x, const std::int64_t* chunks, std::int64_t row, std::int64_t m);
  // The rows from m on to the end of their tile become zeros.
  void (*clear_rest)(SplitRows& rows, std::int64_t m);
  // Splits as many further pairs of rows, or those that are left.
  void (*split_panel)(SplitPanel& panel, std::int64_t pairs);
  // Splits `pairs` of `next` with each step. Within a TileScope of TileConfig::whole().
  void (*multiply)(const SplitProduct& p, SplitPanel& next, std::int64_t pairs);
};

// Whether a product of m rows by n columns takes less time than with FMAs, measured on an Intel of family 6, model 167 (AMX):
// multiplying takes 0.62 of the time, for whole tiles of rows. Splitting the rows takes as long as multiplying `left` columns;
// the part of splitting panels that is not hidden takes as long as 12 rows.
inline constexpr double kSplitLying = 46.0, kSplitPixels = 64.0, kSplitTransposed = 80.0;
bool split_pays(std::int64_t m, std::int64_t n, std::int64_t k, double left = kSplitLying);

// Null if use_amx_bf16() is false or the compiler has no such instructions.
const SplitKernels* split_kernels();

}  // namespace sdx::cpu
