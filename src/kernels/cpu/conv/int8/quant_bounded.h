#pragma once
// Products of unsigned bytes and bounded quads; internal to this folder.
//
// vpmaddubsw adds two products of an unsigned and a signed byte as an int16, which saturates. It cannot if, of two weights that
// are added, those of one sign sum to at most 128: 255 * 128 = 32640. In matrices quantised with one scale all but about a
// thousandth of the pairs are like that. Of the others, the part above the bound is kept apart, and added to the sums afterwards.
// So a vector of 32 products takes three instructions; widened to int16 it takes four, besides widening.

#include <cstdint>

#include "kernels/cpu/conv/int8/quant_nhwc_vnni.h"

namespace sdx::cpu {

// The amount by which a pair of weights exceeds the bound.
struct QExcess {
  std::uint16_t k;
  std::uint8_t column;  // of the panel
  std::int8_t weight;
};

// Room for the excess of a panel of this many pairs of rows: with more, adding it takes longer than is gained.
inline std::int64_t most_excess(std::int64_t pairs) { return pairs / 16; }

// Finds the excess of a panel [pairs][nr][2]: its number of entries, or -1 if there is no room for them.
std::int32_t find_excess(const std::int8_t* panel, std::int64_t pairs, std::int64_t nr, QExcess* entries);
// Takes it away from the panel.
void cut_excess(std::int8_t* panel, std::int64_t nr, const QExcess* entries, std::int64_t count);

// Multiplies 1 to 6 rows as QNhwcKernels::quads does, of a panel of 16 bounded columns, by AVX2; null if not compiled. Does not
// check whether the machine has the instructions.
QRowsProduct qbounded_avx2();

// Adds the excess to `m` rows of sums [nr]. rows: `stride` bytes apart.
void add_excess(const QExcess* entries, std::int64_t count, const std::uint8_t* rows, std::int64_t stride, std::int64_t m,
                std::int64_t nr, std::int32_t* sums);

}  // namespace sdx::cpu
