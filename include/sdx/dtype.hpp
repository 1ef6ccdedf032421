#pragma once
// Element types of tensors. The numbers are those of ONNX's TensorProto.DataType (onnx.proto, IR version 14).

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <sdx/export.hpp>

namespace sdx {

enum class DataType : std::uint8_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24,
  uint2 = 25,
  int2 = 26,
  float6e2m3 = 27,  // one element per byte, in the low six bits
  float6e3m2 = 28,  // one element per byte, in the low six bits
};

inline constexpr int kDataTypeCount = 29;

// Size of one element in bits; 4- and 2-bit types are packed, low bits first. 0 for `undefined` and `string`.
SDX_API int bit_width(DataType type) noexcept;

// "float32", "int4", "bool", …; "undefined" for values outside the enumeration.
SDX_API std::string_view name(DataType type) noexcept;

// The inverse of name(); also accepts the spellings of ONNX ("FLOAT", "tensor(float)", "DOUBLE") and NumPy ("f4", "<i8"). Returns
// DataType::undefined if the text names no type.
SDX_API DataType parse_data_type(std::string_view text) noexcept;

SDX_API bool is_floating(DataType type) noexcept;  // f32, f64, f16, bf16 and the f8/f6/f4 families
SDX_API bool is_integer(DataType type) noexcept;   // signed or unsigned, 2 to 64 bits; not bool
SDX_API bool is_sub_byte(DataType type) noexcept;  // int4, uint4, float4e2m1, int2, uint2

// Size of `count` elements in bytes, rounded up to whole bytes. The caller ensures that `count` >= 0 and that the size does not
// overflow. Strings count as sizeof(std::string) each.
SDX_API std::size_t byte_size(DataType type, std::int64_t count) noexcept;

}  // namespace sdx
