#pragma once
// Whether numbers are tame, per target: see blocked_joined.h. Internal to this folder.

#include <cstdint>

namespace sdx::cpu {

struct BlockedJoinedKernels {
  // Whether all of |x[0, n)| are below 2^100: sums of such numbers, and their products with 0, are not NaN. n: whole blocks.
  bool (*tame)(const float* x, std::int64_t n);
  bool (*copy_tame)(const float* x, std::int64_t n, float* to);  // and copies them
};

const BlockedJoinedKernels& blocked_joined_kernels();

}  // namespace sdx::cpu
