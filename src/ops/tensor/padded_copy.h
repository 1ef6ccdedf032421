#pragma once
// Copies into a larger or smaller tensor whose ends are filled, or repeat what lies inside: Pad, CenterCropPad.

#include <vector>

#include <sdx/tensor.hpp>

#include "ops/tensor/movement.h"

namespace sdx::ops {

enum class Padding { constant, reflect, edge, wrap };

// One axis of the output: [0, before) and [before + inside, extent) are padding, the rest is input [first, first + inside).
struct PaddedAxis {
  std::int64_t before = 0;
  std::int64_t first = 0;
  std::int64_t inside = 0;
  std::int64_t extent = 0;
};

// Fills `out`, whose shape is the axes' extents; positions of the axes lie inside `in`. Padding takes element 0 of `fill` with
// Padding::constant; with the others each axis with padding has something inside. Element types are equal and not sub-byte. Takes
// no memory that grows with an extent.
void copy_padded(const Tensor& in, Tensor& out, const std::vector<PaddedAxis>& axes, Padding padding, const Tensor& fill);

}  // namespace sdx::ops
