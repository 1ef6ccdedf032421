#pragma once
// Gathers bytes into rows of int16, per target: windows of a convolution's outputs, or rows of a matrix. Internal to this folder.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu {

struct QSource {
  const ConvShape* shape = nullptr;  // null: a matrix
  const std::uint8_t* x = nullptr;
  const std::uint8_t* end = nullptr;  // of x's memory
  bool is_signed = false;
  std::int32_t zero = 0;
  std::int64_t k = 0;
  std::int64_t lda = 0;    // matrices
  std::int64_t group = 0;  // convolutions
};

struct QGatherKernels {
  // Rows [first, first + rows) at out, `stride` (k rounded up to 16, plus 16) elements apart.
  void (*gather)(const QSource& s, std::int64_t first, std::int64_t rows, std::int16_t* out, std::int64_t stride);
};

const QGatherKernels& qgather_kernels();

}  // namespace sdx::cpu
