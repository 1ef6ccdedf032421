#pragma once
// The per-target transforms of quant_winograd.cc; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

struct QWinogradKernels {
  // Computes V[36][channels] of one 6x6 patch from pixels[36] (row-major, `channels` bytes each). Elements of V are `step` apart.
  // channels is a multiple of 16.
  void (*input)(const std::uint8_t* const* pixels, bool is_signed, std::int32_t zero, std::int64_t channels, std::int16_t* v,
                std::int64_t step);
  // Computes U[36][pairs][nr][2], whose elements are `step` apart, from `pairs` pairs [nr][2] of each tap of weights
  // [9][tap_step].
  void (*weights)(const std::int8_t* w, std::int64_t tap_step, std::int64_t pairs, std::int16_t* u, std::int64_t step);
  // Computes the sums of 16 pixels, [16][nr], from M[36][nr], whose elements are `step` apart.
  void (*output)(const std::int32_t* m, std::int64_t step, std::int32_t* sums);
};

// Null in the scalar build.
const QWinogradKernels* qwinograd_kernels();

}  // namespace sdx::cpu
