#pragma once
// The inner kernels of gemm_bf16.cc; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

// Computes sums[i * nr + j] of m rows of bfloat16, `stride` elements apart, and one panel of nr columns, [pairs][nr][2].
struct Bf16Tile {
  const std::uint16_t* a = nullptr;
  std::int64_t stride = 0;
  const std::uint16_t* b = nullptr;
  std::int64_t pairs = 0;
  float* sums = nullptr;
  bool add = false;  // adds to what `sums` holds, for later blocks of K
};

struct Bf16Kernels {
  int mr;
  int nr;
  void (*tile)(const Bf16Tile& t, std::int64_t m);  // m: 1 .. mr
  // Rounds x to the nearest bfloat16 and appends a zero if n is odd.
  void (*round)(const float* x, std::int64_t n, std::uint16_t* y);
  // Sets y[j][0] and y[j][1] to x0[j] and x1[j], rounded likewise. x1 may be null, which stands for zeros.
  void (*interleave)(const float* x0, const float* x1, std::int64_t n, std::uint16_t* y);
};

// Null if the compiler has no such instructions. The caller must know whether the machine has them.
const Bf16Kernels* bf16_kernels();

}  // namespace sdx::cpu
