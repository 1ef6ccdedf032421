#pragma once
// The per-target function behind top_k_columns_f32() in top_k.h; internal to this folder. No threading.

#include <cstdint>

namespace sdx::cpu {

struct TopColumnsKernels {
  int lanes;
  // Of `count` <= lanes columns side by side, whose elements are `step` apart, n each: the positions of the first k <=
  // kMostTopColumns, positions[j * lanes + column].
  void (*top)(const float* x, std::int64_t n, std::int64_t step, std::int64_t count, std::int64_t k, bool largest,
              std::int32_t* positions);
};

const TopColumnsKernels& top_columns_kernels();

}  // namespace sdx::cpu
