#pragma once
// Products of bytes by VNNI (VPDPBUSD): internal to this folder.

#include "kernels/cpu/ggml/ggml_bytes_simd.h"

namespace sdx::cpu {

// Set the products of a table for AVX512-VNNI, and for AVX-VNNI on 256 bits. Nothing changes where the compiler has neither.
void set_byte_vnni_512(ByteKernels& table);
void set_byte_vnni_256(ByteKernels& table);

}  // namespace sdx::cpu
