#pragma once
// Gradients as single nodes of ONNX Runtime's training graphs (ops/training/ort).

#include "ops/gradient.h"

namespace sdx::ops {

// Emits them where there are some that ONNX Runtime 1.19 runs correctly on the CPU: for float32, and for extents that its kernels
// stand. False: nothing was emitted, and the operator's own gradient function is to be asked.
bool emit_fused(GradientContext& c);

}  // namespace sdx::ops
