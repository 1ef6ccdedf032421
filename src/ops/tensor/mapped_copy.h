#pragma once
// Copies in which every axis has its own list of source positions: Pad, nearest Resize, CenterCropPad.

#include <vector>

#include <sdx/tensor.hpp>

#include "ops/tensor/movement.h"

namespace sdx::ops {

// out[i, j, …] = in[maps[0][i], maps[1][j], …], or element 0 of `fill` where any of these is -1. One map for each axis, as long
// as the extent of `out`; positions lie inside `in`. Element types are equal and not sub-byte.
void copy_mapped(const Tensor& in, Tensor& out, const std::vector<Ints>& maps, const Tensor& fill);

}  // namespace sdx::ops
