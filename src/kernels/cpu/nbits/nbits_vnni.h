#pragma once
// NBitsDigitKernels' panels with AVX512-VNNI and AVX-VNNI; internal to this folder.

#include "kernels/cpu/nbits/nbits_digits_simd.h"

namespace sdx::cpu {

// With dot products of bytes on 512-bit or 256-bit vectors; null if the compiler has no such target.
NBitsPanel nbits_vnni_panel_512();
NBitsPanel nbits_vnni_panel_256();

}  // namespace sdx::cpu
