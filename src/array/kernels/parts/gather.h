#pragma once
// Blocks of arrays at given positions: kernels. Attribute "ints": the axes that the positions are of, one for each array of
// positions (int64, all of one shape), then the block's extents, one for each axis of the array.

#include "array/emitter.h"

namespace sdx::array::detail {

// Inputs: the array, positions.
const ArrayOp& gather_op();
// Inputs: the array (left out: zeros), updates, positions. Attribute "mode": Update.
const ArrayOp& scatter_op();
// Inputs: the array (left out: zeros), updates, positions along one axis. Attributes "mode", "axis".
const ArrayOp& scatter_axis_op();

}  // namespace sdx::array::detail
