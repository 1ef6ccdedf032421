#pragma once
// Blocks of ggml taken apart: weight = scale * (code - zero) + minimum, as ggml itself computes it.

#include <cstddef>
#include <cstdint>

#include "tensor/ggml.h"

namespace sdx::text {

struct CodeFormat {
  std::int64_t block = 32;  // weights that share a scale
  int bits = 4;             // of a code as MatMulNBits takes them: 4 or 8
  int zero = 0;
  bool has_minimum = false;
};

// Not of F32, F16 and BF16, which have no codes.
CodeFormat code_format(GgmlType type);

// One block of the format: its codes, and a scale and a minimum for each CodeFormat::block of them.
void take_apart(const GgmlFormat& format, const std::byte* block, std::uint8_t* codes, float* scales, float* minimums);

}  // namespace sdx::text
