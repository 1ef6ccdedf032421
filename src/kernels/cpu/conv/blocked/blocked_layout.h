#pragma once
// Tensors in float with blocked channels: [N, ceil(C / c), H, W, c] with c = channel_block(), where element (n, k, y, x) of the
// plain tensor is at [n, k / c, y, x, k % c]. Vectors then run along channels, and a pointwise convolution reads its input in
// place.
//
// Lanes of the last block beyond C may hold anything on entry to a kernel: no kernel lets them affect another channel. The
// contract of all headers of this folder: dense tensors with float alignment, y must not overlap x unless said otherwise;
// thread-safe, split over current_pool(). Sums run in the same order whatever the split, so results do not depend on the number
// of threads.

#include <cstdint>

namespace sdx::cpu {

// Channels in a block under cpu_isa(): two vectors or one.
std::int64_t channel_block();

// Convert between plain and blocked: x is [batch, channels, plane], y [batch, ceil(channels / c), plane, c], and back. Lanes
// beyond the channels become 0.
void to_blocked_f32(std::int64_t batch, std::int64_t channels, std::int64_t plane, const float* x, float* y);
void from_blocked_f32(std::int64_t batch, std::int64_t channels, std::int64_t plane, const float* x, float* y);

}  // namespace sdx::cpu
