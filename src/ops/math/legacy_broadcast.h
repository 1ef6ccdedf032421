#pragma once
// Broadcasting before opset 7: operand B fits A only where the `broadcast` attribute says so, and may be placed at `axis` of A.
// Source: ONNX Add-1 and -6, Pow-1, Equal-1, And-1, …

#include <sdx/tensor.hpp>

#include "ops/context.h"

namespace sdx::ops {

// Input 1, which before opset 7 is reshaped so that multidirectional broadcasting does what the attributes ask for. Throws
// Error(invalid_model | runtime_failure) when it does not fit into input 0 then.
Tensor legacy_operand(const OpContext& c);

// Sets output 0 of a binary operator: the broadcast shape, or that of input 0 before opset 7.
void infer_binary(InferContext& c, DataType elem);

}  // namespace sdx::ops
