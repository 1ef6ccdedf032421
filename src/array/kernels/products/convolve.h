#pragma once
// Convolutions with channels last: kernels. Float32 and float64.

#include "array/emitter.h"

namespace sdx::array::detail {

// Attribute "ints" of all: spatial axes, groups, strides, dilations, padding at the beginning (one number for each axis).
// Inputs: x [N, …, C], w [O, …, C / groups]; the result y [N, …, O].
const ArrayOp& conv_op();
// Its transposes: inputs y and w, the result x; inputs x and y, the result w.
const ArrayOp& conv_input_op();
const ArrayOp& conv_weight_op();

}  // namespace sdx::array::detail
