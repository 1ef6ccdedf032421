#pragma once
// Operators on bytes other than matrix products: elementwise sums and products, tables, and pools over images with the channels
// last.
//
// Common contract as in quant.h: a flag tells whether values are u8 or s8; any alignment; outputs must not overlap inputs, but
// the output of a sum may be one of its inputs; thread-safe; work is split over current_pool().

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu {

// y = saturate(round_half_even((a - a_zero) * a_scale + (b - b_zero) * b_scale) + y_zero), in float32.
struct QAdd {
  bool is_signed = false;
  std::int32_t a_zero = 0, b_zero = 0, y_zero = 0;
  float a_scale = 1.0F, b_scale = 1.0F;  // divided by the scale of the result
};
void qadd(const QAdd& add, const void* a, const void* b, void* y, std::int64_t n);

// y = saturate(round_half_even(float((a - a_zero) * (b - b_zero)) * scale) + y_zero), in float32.
struct QMul {
  bool is_signed = false;
  std::int32_t a_zero = 0, b_zero = 0, y_zero = 0;
  float scale = 1.0F;  // the scales of a and b multiplied, divided by the scale of the result
};
void qmul(const QMul& mul, const void* a, const void* b, void* y, std::int64_t n);
// a: [batch, pixels, channels], b: [batch, channels].
void qmul_channels(const QMul& mul, const void* a, const void* b, void* y, std::int64_t batch, std::int64_t pixels,
                   std::int64_t channels);

// y = table[x], the byte as an unsigned index.
void map_bytes(const std::uint8_t* table, const void* x, void* y, std::int64_t n);
// The same for rows of `count` bytes, contiguous in x and `y_step` bytes apart in y; without a table they are copied.
void map_byte_rows(const std::uint8_t* table, const void* x, void* y, std::int64_t y_step, std::int64_t rows, std::int64_t count);

// x: [batch, in..., channels] (the shape's in_channels), y: [batch, out..., channels]. A window that contains only padding gives
// the lowest value.
void max_pool_bytes(const ConvShape& shape, const void* x, bool is_signed, void* y);

// y = saturate(round_half_even(mean / y_scale) + y_zero). mean: (x - x_zero) * x_scale of the taps inside the image, added one
// after the other in float32 and divided by their number, or by that of all taps.
struct QAverage {
  bool is_signed = false;
  bool all_taps = false;
  std::int32_t x_zero = 0, y_zero = 0;
  float x_scale = 1.0F, y_scale = 1.0F;
};
// Images as for max_pool_bytes(). A window that contains only padding gives y_zero.
void average_pool_bytes(const QAverage& average, const ConvShape& shape, const void* x, void* y);

// Computes sums[batch][channels] over the pixels of each image.
void sum_pixels(const void* x, bool is_signed, std::int64_t batch, std::int64_t pixels, std::int64_t channels,
                std::int32_t* sums);

}  // namespace sdx::cpu
