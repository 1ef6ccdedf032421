#pragma once
// Matrices in few bits: kernels. See sdx/array/quantize.hpp for the formats.

#include "array/emitter.h"

namespace sdx::array::detail {

enum class QuantMode : std::uint8_t { affine, mxfp4, mxfp8, nvfp4 };

// Attribute "ints" of all: mode, group, bits.
// Input: floats; outputs: codes, scales, biases where affine.
const ArrayOp& quantize_op();
// Inputs: codes, scales (float32 or uint8), biases where affine; output: float32.
const ArrayOp& dequantize_op();
// Inputs: x [batch, m, k] (float32), codes [batch, …], scales, biases where affine, positions of x and of codes (int64, one for
// each product). Attribute "transpose". Output [products, m, n].
const ArrayOp& quantized_matmul_op();

}  // namespace sdx::array::detail
