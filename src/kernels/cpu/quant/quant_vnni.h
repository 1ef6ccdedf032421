#pragma once
// QuantKernels' product with AVX512-VNNI; internal to this folder.

#include <cstdint>

#include "kernels/cpu/quant/quant_simd.h"

namespace sdx::cpu {

// Computes sums[m][32] of a tile with AVX512-VNNI, m in [1, 12]. Null if the compiler has no such target.
using QProduct = void (*)(const QTile& t, std::int32_t* sums);
QProduct quant_vnni_product(std::int64_t m);

}  // namespace sdx::cpu
