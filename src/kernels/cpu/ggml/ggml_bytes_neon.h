#pragma once
// Products of bytes by Arm's dot products (SDOT): internal to this folder.

#include "kernels/cpu/ggml/ggml_bytes_simd.h"

namespace sdx::cpu {

// Sets the products of a table. Nothing changes where this is not an Arm.
void set_byte_neon(ByteKernels& table);

}  // namespace sdx::cpu
