#include "kernels/cpu/nbits/nbits_digits.h"

#include <algorithm>

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

}  // namespace sdx::cpu
