#pragma once
// The geometry of a convolution or pooling.

#include <cstdint>

namespace sdx::cpu {

// Spatial axes are depth, height, width; axes a tensor lacks have extent, kernel, stride and dilation 1 and no padding.
// Windows that extend past the input read zeros there, so padding at the end is implied by `out`.
struct ConvShape {
  std::int64_t batch = 1;
  std::int64_t in_channels = 1;
  std::int64_t out_channels = 1;
  std::int64_t groups = 1;
  std::int64_t in[3] = {1, 1, 1};
  std::int64_t kernel[3] = {1, 1, 1};
  std::int64_t stride[3] = {1, 1, 1};
  std::int64_t dilation[3] = {1, 1, 1};
  std::int64_t pad[3] = {0, 0, 0};  // at the beginning; may be negative (cropping)
  std::int64_t out[3] = {1, 1, 1};
  // Input channel i of the convolution is x's channel i % shuffle * (in_channels / shuffle) + i / shuffle: ShuffleNet's shuffle
  // of `shuffle` groups, which divide in_channels. Only for BlockedConv::listed.
  std::int64_t shuffle = 1;
  // Each of `groups` consists of this many groups, with weights of 0 between them, whose infinities and NaN must not affect each
  // other. For BlockedConv::direct, winograd and strided.
  std::int64_t joined = 1;
  // Distance between the images of x, in blocks of channels; 0: they do not overlap. For BlockedConv without dilation and with
  // one group: images that share planes of a volume.
  std::int64_t image_blocks = 0;
};

// Number of input positions along an axis from the first to the last that outputs read, both included, padding too.
inline std::int64_t reach(const ConvShape& s, int axis) {
  return (s.out[axis] - 1) * s.stride[axis] + (s.kernel[axis] - 1) * s.dilation[axis] + 1;
}

// Product of three extents.
inline std::int64_t volume(const std::int64_t (&v)[3]) { return v[0] * v[1] * v[2]; }

}  // namespace sdx::cpu
