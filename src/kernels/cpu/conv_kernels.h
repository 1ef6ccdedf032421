#pragma once
// Per-target inner loops of the convolutions; internal to this folder.

#include <cstdint>

#include "kernels/cpu/conv.h"

namespace sdx::cpu {

// One input row of a tap: y[i] += w * row[i].
struct ConvTap {
  const float* row;
  float weight;
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
  // Depthwise 3x3 over `rows` output rows of `width`: y[oy, ox] = act(bias + sum of w[ky, kx] * in[oy * out_step + ky * row_step
  // + offset[kx] + ox]), act none, relu or clip. `in` readable up to width rounded up to lanes in each row.
  void (*depthwise3)(const float* in, std::int64_t out_step, std::int64_t row_step, const std::int64_t (&offset)[3],
                     const float* w, float bias, const UnarySpec& act, float* y, std::int64_t width, std::int64_t rows);
  // Copies one input row of `width` into `stride` phases of `phase_width` floats each, shifted right by `pad` (left if
  // negative), zeros around: phase p, index q holds the padded row's element q * stride + p. Rows
  // go in rising order: up to lanes - 1 floats behind the last phase are overwritten.
  void (*split_row)(const float* row, std::int64_t width, std::int64_t pad, std::int64_t stride, std::int64_t phase_width,
                    float* out);
  // y[i] += x[i].
  void (*add_to)(const float* x, float* y, std::int64_t n);
};

const ConvKernels& conv_kernels();

// Depthwise convolution; see conv.cc for the dispatch.
void conv_depthwise(const ConvShape& s, const float* x, const float* weights, const float* bias, const float* residual,
                    const UnarySpec& act, float* y);

}  // namespace sdx::cpu
