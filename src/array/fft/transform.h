#pragma once
// The operator behind all transforms.

#include <cstdint>

#include "kernels/cpu/fft/fourier.h"
#include "ops/op.h"

namespace sdx::array::detail {

using cpu::Fourier;
enum class FourierNorm : std::int64_t { none, by_length, by_root };

// Attribute "ints": Fourier, n, axis, whether exp(+...), FourierNorm. The result's extent is the type's: more is cut, less
// filled.
void run_fourier(ops::OpContext& c);

}  // namespace sdx::array::detail
