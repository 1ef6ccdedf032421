#pragma once
// Reference convolution and transposed convolution on plain arrays.

#include "base/cancel.h"
#include "ops/conv/conv_geometry.h"

namespace sdx::ops {

// y = conv(x, w) + bias. x: [N, C, in...], w: [M, C/group, kernel...], bias: [M] or null, y: [N, M, out...].
// T: float, double, or uint32_t (for integer convolutions: int32 bits, wrapping).
template <class T>
void conv_reference(const ConvGeometry& g, const T* x, const T* w, const T* bias, T* y, const StopCondition& stop);

// The same for a geometry from conv_transpose_geometry(); w: [C, M/group, kernel...]. T: float or double.
template <class T>
void conv_transpose_reference(const ConvGeometry& g, const T* x, const T* w, const T* bias, T* y, const StopCondition& stop);

}  // namespace sdx::ops
