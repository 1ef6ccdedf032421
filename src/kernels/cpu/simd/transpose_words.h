#pragma once
// Puts words of several columns side by side, for panels of coded weights.

#include <cstdint>
#include <cstring>

namespace sdx::cpu {

using FourWords = std::uint32_t __attribute__((vector_size(16)));

// Transposes four words of four columns, which are `column_bytes` apart, into out[word * nr + column]: twice as fast as word by
// word.
inline void transpose_four(const char* source, std::int64_t column_bytes, std::uint32_t* out, std::int64_t nr) {
  FourWords column[4];
  for (int i = 0; i < 4; ++i) std::memcpy(&column[i], source + i * column_bytes, 16);
  const FourWords a = __builtin_shufflevector(column[0], column[1], 0, 4, 1, 5),
                  b = __builtin_shufflevector(column[0], column[1], 2, 6, 3, 7),
                  c = __builtin_shufflevector(column[2], column[3], 0, 4, 1, 5),
                  d = __builtin_shufflevector(column[2], column[3], 2, 6, 3, 7);
  const FourWords word[4] = {__builtin_shufflevector(a, c, 0, 1, 4, 5), __builtin_shufflevector(a, c, 2, 3, 6, 7),
                             __builtin_shufflevector(b, d, 0, 1, 4, 5), __builtin_shufflevector(b, d, 2, 3, 6, 7)};
  for (int w = 0; w < 4; ++w) std::memcpy(out + w * nr, &word[w], 16);
}

}  // namespace sdx::cpu
