#pragma once
// Conversion between element types: what Cast does. Source: ONNX Cast-13, -19, -24, -28.

#include <sdx/tensor.hpp>

#include "ops/op.h"
#include "tensor/types.h"

namespace sdx::ops {

struct ConvertOptions {
  bool saturate = true;  // to 8-bit floats: what lies beyond the largest finite number becomes that number
  RoundMode e8m0_rounding = RoundMode::up;
};

// Everything that Cast takes.
inline constexpr TypeSet kConvertible =
    types::numeric | types::boolean | types::string | types::float8 | types::packed | types::float6;

// Writes `in`, converted, to `out`, which has as many elements. What the specification leaves undefined is settled thus: floats
// out of an integer type's range saturate in 32 and 64 bits, while for narrower types (and unsigned ones below zero) the
// truncated number loses its high bits, as C programs on x86 do; NaN becomes 0. Text that is no number is an
// Error(runtime_failure).
void convert(const Tensor& in, Tensor& out, const ConvertOptions& options = {});
// The same into a new tensor; `in` itself where it has the type already.
Tensor converted(const Tensor& in, DataType to);

}  // namespace sdx::ops
