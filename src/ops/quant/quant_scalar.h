#pragma once
// Reads per-tensor scales and zero points from an operator's inputs.

#include <cstdint>
#include <initializer_list>

#include "ops/context.h"

namespace sdx::ops {

struct QuantScalar {
  float scale = 1.0f;
  std::int32_t zero = 0;
};

// Input `scale` (float32, one element) and input `zero` (one element of type `elem`; absent: 0). Throws Error.
QuantScalar quant_scalar(const OpContext& c, std::size_t scale, std::size_t zero, DataType elem);

// Output 0: the broadcast of the shapes of these inputs.
void infer_broadcast_of(InferContext& c, std::initializer_list<std::size_t> inputs, DataType elem);
// Output 0 with the element type and shape of input i.
void infer_like(InferContext& c, std::size_t i);

}  // namespace sdx::ops
