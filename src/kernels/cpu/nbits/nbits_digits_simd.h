#pragma once
// The per-target inner kernels of products in digits: see nbits_digits.h. Internal to this folder.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/nbits/nbits_digits.h"
#include "kernels/cpu/nbits/nbits_simd.h"

namespace sdx::cpu {

// out[i * nr + j] for m rows of digits, m in [1, 4].
using NBitsPanel = void (*)(const NBitsLayout& layout, const NBitsRowFormat& format, const std::uint32_t* panel,
                            const std::byte* rows, std::int64_t m, float* out);

// Writes one part's record from its f.part activations. False if the part cannot be scaled. `factor`: what the digits' sum is
// multiplied by to start the part's sum.
using NBitsPart = bool (*)(const NBitsRowFormat& format, const float* x, std::int32_t factor, std::byte* record);

// NBitsDigitKernels::digitise by `part`.
bool nbits_digitise_parts(NBitsPart part, std::int32_t factor, const NBitsRowFormat& format, const float* x, std::int64_t n,
                          std::int64_t first, std::int64_t count, std::byte* row);

struct NBitsDigitKernels {
  // Writes x[n] as records from part number `first` on; n reaches at most to the end of the row, which is padded with zeros to
  // `count` parts. False if a part cannot be scaled: not finite, or so small that its scale would not be normal.
  bool (*digitise)(const NBitsLayout& layout, const NBitsRowFormat& format, const float* x, std::int64_t n, std::int64_t first,
                   std::int64_t count, std::byte* row);
  NBitsPanel panel;
  bool byte_digits = false;  // those for codes of 8 bits have 8 bits, too: see nbits_row_format()
};

// Null if the instruction set has no byte product that pays off.
const NBitsDigitKernels* nbits_digit_kernels();

}  // namespace sdx::cpu
