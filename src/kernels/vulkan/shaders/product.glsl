// A tile of a matrix product: 16 x 16 invocations, each with kRows x kColumns sums. The including shader says where the elements of
// both matrices are: left_at(m, k) and right_at(k, n), within the bounds that it is called with.
layout(local_size_x = 16, local_size_y = 16) in;
layout(constant_id = 0) const uint kRows = 4;
layout(constant_id = 1) const uint kColumns = 4;
layout(constant_id = 2) const uint kActivation = 0;
layout(constant_id = 3) const bool kBias = false;
layout(constant_id = 4) const bool kResidual = false;
const uint kDepth = 16;
const uint kTileRows = 16 * kRows, kTileColumns = 16 * kColumns;
shared float left[kDepth * (kTileRows + 1)];
shared float right[kDepth * (kTileColumns + 1)];

#define MULTIPLY(M, N, K)                                                                                       \
  float sums[kRows * kColumns];                                                                                 \
  for (uint i = 0; i < kRows * kColumns; ++i) sums[i] = 0.0;                                                    \
  const uint first_m = gl_WorkGroupID.y * kTileRows, first_n = gl_WorkGroupID.x * kTileColumns;                 \
  const uint number = gl_LocalInvocationIndex;                                                                  \
  for (uint first_k = 0; first_k < (K); first_k += kDepth) {                                                    \
    for (uint i = number; i < kDepth * kTileRows; i += 256) {                                                   \
      uint k = i % kDepth, m = i / kDepth;                                                                      \
      bool inside = first_m + m < (M) && first_k + k < (K);                                                     \
      left[k * (kTileRows + 1) + m] = inside ? left_at(first_m + m, first_k + k) : 0.0;                         \
    }                                                                                                           \
    for (uint i = number; i < kDepth * kTileColumns; i += 256) {                                                \
      uint n = i % kTileColumns, k = i / kTileColumns;                                                          \
      bool inside = first_n + n < (N) && first_k + k < (K);                                                     \
      right[k * (kTileColumns + 1) + n] = inside ? right_at(first_k + k, first_n + n) : 0.0;                    \
    }                                                                                                           \
    barrier();                                                                                                  \
    for (uint k = 0; k < kDepth; ++k) {                                                                         \
      for (uint r = 0; r < kRows; ++r) {                                                                        \
        float a = left[k * (kTileRows + 1) + gl_LocalInvocationID.y + 16 * r];                                  \
        for (uint c = 0; c < kColumns; ++c) {                                                                   \
          sums[r * kColumns + c] += a * right[k * (kTileColumns + 1) + gl_LocalInvocationID.x + 16 * c];        \
        }                                                                                                       \
      }                                                                                                         \
    }                                                                                                           \
    barrier();                                                                                                  \
  }
