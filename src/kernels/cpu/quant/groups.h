#pragma once
// Matrices in few bits: groups of numbers, each with a scale. See sdx/array/quantize.hpp for the formats. Thread-safe; split over
// current_pool().

#include <cstdint>

namespace sdx::cpu {

enum class GroupMode : std::uint8_t { affine, mxfp4, mxfp8, nvfp4 };

struct GroupFormat {
  GroupMode mode = GroupMode::affine;
  std::int64_t group = 64;  // numbers that share a scale
  int bits = 4;
  std::int64_t bytes() const { return group * bits / 8; }  // of a group's codes
};

struct GroupedCodes {
  GroupFormat format;
  const std::uint8_t* codes = nullptr;
  const float *scales = nullptr, *biases = nullptr;  // affine
  const std::uint8_t* small_scales = nullptr;        // all other modes
};

// Encodes `count` groups of w, with scales and biases (affine) or small scales.
void quantize_groups(const GroupFormat& f, const float* w, std::int64_t count, std::uint8_t* codes, float* scales, float* biases,
                     std::uint8_t* small_scales);
void dequantize_groups(const GroupedCodes& q, std::int64_t count, float* y);

// Computes y[count, m, n]: product i multiplies matrix of_x[i] of x[.., m, k] and matrix of_w[i] of the codes: [k, n], or [n, k]
// if `transpose`.
struct GroupProducts {
  std::int64_t count = 0, m = 0, n = 0, k = 0;
  bool transpose = false;
  const std::int64_t *of_x = nullptr, *of_w = nullptr;
};
void matmul_groups(const GroupedCodes& q, const GroupProducts& z, const float* x, float* y);

}  // namespace sdx::cpu
