#pragma once
// Resizing of NCHW float images. Dense, float alignment, y must not overlap x. Thread-safe, split over current_pool().
//
// The caller turns the operator's coordinate rules into tables, one entry for each output row and column, so that every mode
// of ONNX Resize (10 to 19) and of its relatives maps onto these kernels. Indices must lie in [0, extent).

#include <cstdint>

namespace sdx::cpu {

// y[p, i, j] = x[p, rows[i], columns[j]] for `planes` planes.
void resize_nearest_f32(const float* x, float* y, std::int64_t planes, std::int64_t in_h, std::int64_t in_w, std::int64_t out_h,
                        std::int64_t out_w, const std::int32_t* rows, const std::int32_t* columns);

// Two neighbours and the weight of the second: value = x[low] + t * (x[high] - x[low]).
struct LinearTap {
  std::int32_t low;
  std::int32_t high;
  float t;
};
void resize_linear_f32(const float* x, float* y, std::int64_t planes, std::int64_t in_h, std::int64_t in_w, std::int64_t out_h,
                       std::int64_t out_w, const LinearTap* rows, const LinearTap* columns);

}  // namespace sdx::cpu
