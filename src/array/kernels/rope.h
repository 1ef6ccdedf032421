#pragma once
// Rotations by position: kernel.

#include "array/emitter.h"

namespace sdx::array::detail {

// Inputs: the array, [.., positions, elements]; offsets (int64, one or one for each element of the first axis); frequencies
// (float32) or none. Attributes: "dims", "traditional", "inverse" (rotates back), "base", "scale".
const ArrayOp& rope_op();

}  // namespace sdx::array::detail
