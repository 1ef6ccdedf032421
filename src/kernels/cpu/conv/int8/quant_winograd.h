#pragma once
// Winograd's F(4x4, 3x3) for bytes with the channels last, exact; internal to this folder.
//
// All transforms are scaled to integers, which makes the result 576 times the sum s. Input and weights stay within int16: at most
// 100 * 255 and 144 * 128. Everything after them is additions and multiplications modulo 2^32, so intermediate overflow does no
// harm: 576 s times the inverse of 9 is 64 s modulo 2^32, and an arithmetic shift gives s as long as |s| < 2^25. Packing computes
// from the weights whether s can reach that bound. Weights are transformed in each call: transformed weights would take eight
// times the memory, and reading them is slower than the transform.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/quant/quant.h"

namespace sdx::cpu {

inline constexpr std::int64_t kWinogradSums = std::int64_t{1} << 25;

// Whether this algorithm supports the shape and is faster than direct summation. `largest`: upper bound of the sums' absolute
// values.
bool qwinograd_pays(const ConvShape& s, std::int64_t largest);

// `panels`: from qnhwc_pack(), narrow.
void qwinograd_conv(const ConvShape& s, const std::uint8_t* x, bool x_signed, std::int32_t x_zero, const std::int8_t* panels,
                    const QEpilogue& epilogue, char* y);

}  // namespace sdx::cpu
