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

// Writes `in`, converted, to `out`, which has as many elements. What the specification leaves undefined is settled as x86
// and ONNX Runtime there do: NaN and floats out of range become the smallest number of int32 or int64; for narrower types the
// truncated int32, for unsigned ones of 32 and 64 bits the truncated int64, loses its high bits. Text that is not a number is
// an Error(runtime_failure).
void convert(const Tensor& in, Tensor& out, const ConvertOptions& options = {});
// The same into a new tensor; `in` itself where it has the type already.
Tensor converted(const Tensor& in, DataType to);

}  // namespace sdx::ops
