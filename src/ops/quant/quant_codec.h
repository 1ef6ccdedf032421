#pragma once
// Conversions between quantised storage (8/16/32-bit and packed integers, small floats) and int32 or float, a run at a time; and
// the rounding that all quantised operators share.

#include <cstdint>
#include <limits>
#include <vector>

#include <sdx/tensor.hpp>

namespace sdx::ops {

// Smallest and largest value of a 2- to 16-bit integer type.
struct QuantRange {
  std::int32_t low;
  std::int32_t high;
};
// Throws Error(not_implemented) for types that are not integer quantisation targets.
QuantRange quant_range(DataType type);

// Rounds half to even and saturates: saturate(round(value) + zero_point). Source: ONNX QuantizeLinear-10. Clamping comes
// first, so that adding 1.5 * 2^23, which leaves a float no fraction bits, rounds without leaving the float's integers
// (ranges with the zero point stay below 2^18) and vectorises. NaN becomes the lower end, as in ONNX Runtime.
inline std::int32_t requantize(float value, std::int32_t zero_point, QuantRange range) noexcept {
  const auto low = static_cast<float>(range.low - zero_point);
  const auto high = static_cast<float>(range.high - zero_point);
  value = value > low ? value : low;
  value = value < high ? value : high;
  return static_cast<std::int32_t>((value + 12582912.0f) - 12582912.0f) + zero_point;
}

bool is_quant_integer(DataType type) noexcept;  // int/uint of 2, 4, 8, 16 bits, and int32

// Elements [begin, begin + count) of an integer type (is_quant_integer or bool).
void decode_ints(DataType type, const void* data, std::int64_t begin, std::int64_t count, std::int32_t* out);
// The same for float32, float16, bfloat16, float64, small floats and integers.
void decode_floats(DataType type, const void* data, std::int64_t begin, std::int64_t count, float* out);
std::vector<std::int32_t> decode_ints(const Tensor& tensor);
std::vector<float> decode_floats(const Tensor& tensor);

// Stores values that are in range already. `data` is one byte per element for sub-byte types: pack_bytes() ends the work, since
// neighbouring elements of a byte may be written by different threads.
void encode_ints(DataType type, const std::int32_t* in, std::int64_t begin, std::int64_t count, void* data);
// float16, bfloat16, float32, float64 and small floats.
void encode_floats(DataType type, const float* in, std::int64_t begin, std::int64_t count, bool saturate, void* data);
void pack_bytes(const std::uint8_t* in, std::int64_t count, int bits, void* out);

// requantize(float(value - from_zero) * from_scale / to_scale) for each byte value: what one-input 8-bit operators need.
// `fn` maps the dequantised float.
template <class F>
std::vector<std::uint8_t> quant_table(DataType type, float from_scale, std::int32_t from_zero, float to_scale,
                                      std::int32_t to_zero, F&& fn) {
  std::vector<std::uint8_t> table(256);
  const QuantRange range = quant_range(type);
  for (std::int32_t i = 0; i < 256; ++i) {
    const std::int32_t x = type == DataType::int8 ? static_cast<std::int8_t>(i) : i;
    const float real = fn(static_cast<float>(x - from_zero) * from_scale);
    table[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(requantize(real / to_scale, to_zero, range));
  }
  return table;
}

}  // namespace sdx::ops
