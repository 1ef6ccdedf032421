#pragma once
// Copies in which every axis has its own source positions: nearest Resize.

#include <functional>
#include <vector>

#include <sdx/tensor.hpp>

#include "ops/tensor/movement.h"

namespace sdx::ops {

// The source of a position of the output's axis, -1: none. Null: the axis stays as it is. Called by any thread.
using SourceOf = std::function<std::int64_t(std::int64_t position)>;

// out[i, j, …] = in[sources[0](i), sources[1](j), …], or element 0 of `fill` where any of these is -1. One for each axis;
// positions lie inside `in`. Element types are equal and not sub-byte. Takes no memory that grows with an extent.
void copy_mapped(const Tensor& in, Tensor& out, const std::vector<SourceOf>& sources, const Tensor& fill);

}  // namespace sdx::ops
