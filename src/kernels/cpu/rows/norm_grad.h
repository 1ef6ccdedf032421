#pragma once
// Gradients of layer and RMS normalisation in float.
//
// Dense; float alignment. Thread-safe, split over current_pool(); results do not depend on the number of threads.

#include <cstddef>
#include <cstdint>

namespace sdx::cpu {

// With n = (x - mean) * inverse (mean null: RMS, whose n is x * inverse) and g = dy * scale:
//   dx = inverse * (g - mean(g) - n * mean(g * n)), for RMS without mean(g); dscale = sum of dy * n, dbias = sum of dy.
struct LayerNormGradArgs {
  const float *dy = nullptr, *x = nullptr;          // [rows, n]
  const float* scale = nullptr;                     // [n]
  const float *mean = nullptr, *inverse = nullptr;  // [rows]
  float* dx = nullptr;                              // may be dy
  float *dscale = nullptr, *dbias = nullptr;        // [n]; null: not wanted
};

std::size_t layer_norm_grad_bytes(std::int64_t rows, std::int64_t n);
// `workspace`: layer_norm_grad_bytes() bytes.
void layer_norm_grad_f32(const LayerNormGradArgs& args, std::int64_t rows, std::int64_t n, void* workspace);

}  // namespace sdx::cpu
