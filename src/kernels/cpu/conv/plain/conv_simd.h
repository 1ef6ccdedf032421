#pragma once
// Per-target inner loops of the convolutions; internal to this folder.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace sdx::cpu {

// One input row of a tap: y[i] += w * row[i].
struct ConvTap {
  const float* row;
  float weight;
};

// The terms of masked_sum(): x[at + i] where mask[i] has all bits set, nothing where it has none.
struct MaskedTap {
  std::int64_t at;
  const std::uint32_t* mask;
};

struct ConvKernels {
  int lanes;
  // Columns [n0, n0 + nb) of rows [k0, k0 + kc) of the patch matrix of one image and group (x: its first channel), as panels of
  // nr = 2 lanes columns. nb <= 256.
  void (*patches)(const ConvShape& s, const float* x, std::int64_t k0, std::int64_t kc, std::int64_t n0, std::int64_t nb,
                  float* out);
  // y[i] = act(bias + sum of taps + residual[i]), i < n. Rows must be readable up to n rounded up to lanes.
  void (*taps)(const ConvTap* taps, std::int64_t count, float bias, const float* residual, const UnarySpec& act, float* y,
               std::int64_t n);
  // Copies `rows` contiguous input rows of `width`, each into `stride` phases of `phase_width` floats, shifted right by `pad`
  // (left if negative), with zeros around: phase p, index q holds the padded row's element q * stride + p. Rows are stride *
  // phase_width apart in `out` and written in ascending order: each overwrites up to lanes - 1 floats after its last phase.
  void (*split_rows)(const float* x, std::int64_t rows, std::int64_t width, std::int64_t pad, std::int64_t stride,
                     std::int64_t phase_width, float* out);
  // y[i] += x[i].
  void (*add_to)(const float* x, float* y, std::int64_t n);
  // y[i] = phases[i % stride][i / stride] + bias, i < n.
  void (*weave)(const float* const* phases, std::int64_t stride, float bias, float* y, std::int64_t n);
  // y[i] = sum of taps, i < n. All that taps address and y must be accessible up to n rounded up to lanes, masked out or not.
  void (*masked_sum)(const float* x, const MaskedTap* taps, std::int64_t count, float* y, std::int64_t n);
};

const ConvKernels& conv_kernels();

}  // namespace sdx::cpu
