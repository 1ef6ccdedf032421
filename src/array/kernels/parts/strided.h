#pragma once
// Regular parts of arrays: kernels.

#include "array/emitter.h"

namespace sdx::array::detail {

// Input: the part. Attribute "ints": starts, then steps, in the result, which is zero elsewhere.
const ArrayOp& unslice_op();
// Inputs: the array, the part. Attribute "ints": the mode, starts, steps.
const ArrayOp& slice_update_op();
// Inputs: the array, starts (int64). Attribute "ints": the axes that these are of.
const ArrayOp& moving_slice_op();
// Inputs: the array, the part, starts (int64). Attribute "ints": the axes.
const ArrayOp& moving_update_op();
// Input: the array, flat. Attribute "ints": the offset, then strides.
const ArrayOp& strided_op();
// The reverse: adds the elements up where they came from. Attribute "ints": the offset, then strides.
const ArrayOp& strided_sum_op();

}  // namespace sdx::array::detail
