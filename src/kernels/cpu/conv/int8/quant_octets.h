#pragma once
// Arranges weights in octets, and gathers the rows that they multiply: see quant_octets_simd.h. Internal to this folder.

#include <cstdint>

#include "kernels/cpu/conv/int8/quant_gather_simd.h"
#include "kernels/cpu/conv/int8/quant_octets_simd.h"

namespace sdx::cpu {

// `panel`: [quads][2][16][2], as quant_nhwc_pack.cc packs pairs. qoctet_choose() fills the table; qoctet_arrange() turns the
// panel into [quads][16][4] in the table's order, using `scratch` of the same size.
void qoctet_choose(const std::int8_t* panel, const QOctetTable& table);
void qoctet_arrange(std::int8_t* panel, const QOctetTable& table, std::int8_t* scratch);

// Gathers r.count rows of a matrix or of a convolution with one group, from `first` on, into r.rows. Padding of the image holds
// the zero point; the rest of each row is zeros.
void qoctet_gather(const QSource& source, std::int64_t first, const QOctetRows& r);

}  // namespace sdx::cpu
