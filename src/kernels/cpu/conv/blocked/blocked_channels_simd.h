#pragma once
// The per-target functions along or across channels; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

// Local response normalisation across channels.
struct BlockedLrn {
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t channels = 0, plane = 0, pixels = 0;
  std::int64_t size = 0;
  float alpha = 0, beta = 0, bias = 0;  // alpha: factor of one square
};

inline constexpr std::int64_t kLrnPixels = 16;  // their squares stay in the first-level cache
// Floats for the squares of kLrnPixels pixels with the window's zeros around them.
constexpr std::int64_t lrn_scratch(std::int64_t padded_channels, std::int64_t size) {
  return kLrnPixels * (padded_channels + size) + 64;
}

struct BlockedChannelsKernels {
  // y = x * s and y = x + s, s per channel.
  void (*scale)(const float* x, const float* s, float* y, std::int64_t pixels);
  void (*shift)(const float* x, const float* s, float* y, std::int64_t pixels);
  // y = x * s + b within bounds, s and b per channel.
  void (*affine)(const float* x, const float* s, const float* b, float lo, float hi, float* y, std::int64_t pixels);
  // y = x + residual within bounds, over n floats; y may be either.
  void (*add_clip)(const float* x, const float* residual, float lo, float hi, float* y, std::int64_t n);
  // Normalises `pixels` (at most kLrnPixels) of all blocks of channels, which are `plane` floats apart. `squares`: see
  // lrn_scratch().
  void (*lrn)(const BlockedLrn& n, float* squares);
};

const BlockedChannelsKernels& blocked_channels_kernels();

}  // namespace sdx::cpu
