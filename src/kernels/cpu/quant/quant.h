#pragma once
// 8-bit integers: quantisation and dequantisation, and convolutions with exact int32 accumulation.
//
// Common contract: a flag tells whether values are u8 or s8. Arrays of float and int32 need natural alignment, the sources of
// pack functions none; packed buffers are 64-byte aligned. Outputs must not overlap inputs. Thread-safe; work is split over
// current_pool(). Computing threads keep up to 256 KB of scratch memory, and more if K exceeds 8 thousand. Sums wrap modulo 2^32,
// as the reference's do; they cannot overflow for K below 65 thousand.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu {

// y = saturate(round_half_even(x / scale) + zero_point); NaN gives the lowest value.
void quantize_u8(const float* x, std::uint8_t* y, std::int64_t n, float scale, std::int32_t zero_point);
void quantize_s8(const float* x, std::int8_t* y, std::int64_t n, float scale, std::int32_t zero_point);
// y = (x - zero_point) * scale.
void dequantize_u8(const std::uint8_t* x, float* y, std::int64_t n, float scale, std::int32_t zero_point);
void dequantize_s8(const std::int8_t* x, float* y, std::int64_t n, float scale, std::int32_t zero_point);

// The smallest and the largest of n >= 1 values (DynamicQuantizeLinear). Ignores NaN unless all values are NaN.
void min_max_f32(const float* x, std::int64_t n, float* min, float* max);

// What is stored for a sum: with v = sum + bias,
//   i32: v
//   f32: v * scale + bias_f32
//   u8, s8: clamp(round_half_even(v * scale) + zero_point, low, high)
struct QEpilogue {
  enum class Output : std::uint8_t { i32, f32, u8, s8 };
  Output output = Output::i32;
  bool per_row = false;  // the arrays below are indexed by rows (output channels of a convolution) instead of columns
  const std::int32_t* bias = nullptr;
  const float* scale = nullptr;     // needed for all but i32
  bool scale_is_array = false;      // else one value
  const float* bias_f32 = nullptr;  // f32 only
  std::int32_t zero_point = 0;
  std::int32_t low = 0;  // within the output type's range; a fused Relu or Clip narrows them
  std::int32_t high = 255;
};

inline bool gives_bytes(const QEpilogue& e) { return e.output == QEpilogue::Output::u8 || e.output == QEpilogue::Output::s8; }
inline std::int64_t bytes_per_output(const QEpilogue& e) { return gives_bytes(e) ? 1 : 4; }

// Convolution of u8 or s8 images with weights of either; padding counts as the zero point. Weights [out_channels,
// in_channels / groups, kernel...]; zero points: one, or one per output channel, or null.
std::size_t qconv_packed_bytes(const ConvShape& shape);
void qconv_pack(const ConvShape& shape, const void* weights, bool is_signed, const std::int32_t* zero_points,
                std::int64_t zero_point_count, void* packed);
// epilogue.per_row must be true.
void qconv(const ConvShape& shape, const void* x, bool x_signed, std::int32_t x_zero, const void* packed,
           const QEpilogue& epilogue, void* y);

}  // namespace sdx::cpu
