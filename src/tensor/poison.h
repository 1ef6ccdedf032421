#pragma once
// base/poison.h for tensors.

#include <sdx/tensor.hpp>

namespace sdx {

// Fills the tensor with a signalling NaN where its element type has one, else with 0xA5. Not for strings, nor for read-only
// views.
void poison(Tensor& tensor);

}  // namespace sdx
