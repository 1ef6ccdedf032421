#include "kernels/cpu/nbits/nbits_digits.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/nbits/nbits_digits_simd.h"

namespace sdx::cpu {

NBitsRowFormat nbits_row_format(const NBitsLayout& l, NBitsDigits digits, bool byte_digits) {
  NBitsRowFormat f{};
  const bool bytes = l.bits == 4 || byte_digits;
  if (bytes) {
    f.digits = digits == NBitsDigits::exact ? 3 : digits == NBitsDigits::half ? 2 : 1;
  } else {
    f.digits = digits == NBitsDigits::exact ? 2 : 1;
  }
  f.part = std::min<std::int64_t>(32, l.block);
  f.parts = l.block / f.part;
  f.words = f.part * l.bits / 32;
  f.record_bytes = 8 + 4 * f.digits + f.digits * f.part * (bytes ? 1 : 2);
  f.row_bytes = f.record_bytes * f.parts * l.blocks;
  return f;
}

bool nbits_digitise_parts(NBitsPart part, std::int32_t factor, const NBitsRowFormat& f, const float* x, std::int64_t n,
                          std::int64_t first, std::int64_t count, std::byte* row) {
  float padded[32];
  for (std::int64_t p = first; p < first + count; ++p) {
    const float* from = x + p * f.part;
    const std::int64_t left = std::clamp<std::int64_t>(n - p * f.part, 0, f.part);
    if (left < f.part) {
      std::fill(padded, padded + 32, 0.0F);
      if (left > 0) std::memcpy(padded, from, static_cast<std::size_t>(left) * sizeof(float));
      from = padded;
    }
    if (!part(f, from, factor, row + p * f.record_bytes)) return false;
  }
  return true;
}

}  // namespace sdx::cpu
