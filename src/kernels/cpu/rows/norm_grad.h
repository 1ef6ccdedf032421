#pragma once
// Gradients of layer and RMS normalisation in float32 and float64.
//
// Dense; aligned to their elements. Thread-safe, split over current_pool(); results do not depend on the number of threads.

#include <cstddef>
#include <cstdint>

namespace sdx::cpu {

// With n = (x - mean) * inverse (mean null: RMS, whose n is x * inverse) and g = dy * scale:
//   dx = inverse * (g - mean(g) - n * mean(g * n)), for RMS without mean(g); dscale = sum of dy * n, dbias = sum of dy.
template <class T>
struct LayerNormGradArgs {
  const T *dy = nullptr, *x = nullptr;          // [rows, n]
  const T* scale = nullptr;                     // [n]
  const T *mean = nullptr, *inverse = nullptr;  // [rows]
  T* dx = nullptr;                              // may be dy
  T *dscale = nullptr, *dbias = nullptr;        // [n]; null: not wanted
};

// For elements of `bytes` bytes.
std::size_t layer_norm_grad_bytes(std::int64_t rows, std::int64_t n, std::size_t bytes);
// `workspace`: layer_norm_grad_bytes() bytes.
void layer_norm_grad(const LayerNormGradArgs<float>& args, std::int64_t rows, std::int64_t n, void* workspace);
void layer_norm_grad(const LayerNormGradArgs<double>& args, std::int64_t rows, std::int64_t n, void* workspace);

}  // namespace sdx::cpu
