#pragma once
// Softmax and normalisations in float64, as softmax.h and norm.h have them for float32. Aligned to doubles; y may be x.
// Thread-safe, split over current_pool().

#include <cstdint>

#include "kernels/cpu/rows/norm.h"

namespace sdx::cpu {

void softmax_f64(const double* x, double* y, std::int64_t outer, std::int64_t axis, std::int64_t inner, bool log);
void layer_norm_f64(const LayerNormArgsOf<double>& args, std::int64_t rows, std::int64_t n);
void channel_affine_f64(const double* x, const double* scale, const double* shift, double* y, std::int64_t batch,
                        std::int64_t channels, std::int64_t inner);
void group_norm_f64(const double* x, const double* scale, const double* bias, float epsilon, double* y, std::int64_t batch,
                    std::int64_t channels, std::int64_t groups, std::int64_t inner);
void lp_norm_f64(const double* x, double* y, std::int64_t outer, std::int64_t axis, std::int64_t inner, bool squares);
void mean_variance_norm_f64(const double* x, double* y, std::int64_t outer, std::int64_t groups, std::int64_t inner);

}  // namespace sdx::cpu
