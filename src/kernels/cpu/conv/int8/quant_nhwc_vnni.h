#pragma once
// QNhwcKernels' products with AVX512-VNNI and AVX-VNNI; internal to this folder.

#include <cstdint>

#include "kernels/cpu/conv/int8/quant_nhwc_simd.h"

namespace sdx::cpu {

// product() under AVX512-VNNI, m in [1, 12]; null if the compiler has no such target.
using QRowsProduct = void (*)(const QRows& t);
QRowsProduct qnhwc_vnni_product(std::int64_t m);
// The same for unsigned bytes times signed ones: rows [m][quads][4], `stride` in units of two bytes, panel [quads][nr][4];
// t.pairs is the number of quads.
QRowsProduct qnhwc_vnni_quads(std::int64_t m);
// The same on 256 bits by AVX-VNNI, m in [1, 6].
QRowsProduct qnhwc_avx_vnni_quads(std::int64_t m);

}  // namespace sdx::cpu
