#include <sdx/dtype.hpp>

#include <array>
#include <string>

#include "base/text/ascii.h"

namespace sdx {
namespace {

struct Info {
  std::string_view name;
  std::string_view onnx;   // TensorProto.DataType's name
  std::string_view type;   // inside "tensor(…)"
  std::string_view numpy;  // without byte order
  int bits;
};

constexpr std::array<Info, kDataTypeCount> kInfo{{
    {"undefined", "UNDEFINED", "undefined", "", 0},
    {"float32", "FLOAT", "float", "f4", 32},
    {"uint8", "UINT8", "uint8", "u1", 8},
    {"int8", "INT8", "int8", "i1", 8},
    {"uint16", "UINT16", "uint16", "u2", 16},
    {"int16", "INT16", "int16", "i2", 16},
    {"int32", "INT32", "int32", "i4", 32},
    {"int64", "INT64", "int64", "i8", 64},
    {"string", "STRING", "string", "", 0},
    {"bool", "BOOL", "bool", "b1", 8},
    {"float16", "FLOAT16", "float16", "f2", 16},
    {"float64", "DOUBLE", "double", "f8", 64},
    {"uint32", "UINT32", "uint32", "u4", 32},
    {"uint64", "UINT64", "uint64", "u8", 64},
    {"complex64", "COMPLEX64", "complex64", "c8", 64},
    {"complex128", "COMPLEX128", "complex128", "c16", 128},
    {"bfloat16", "BFLOAT16", "bfloat16", "", 16},
    {"float8e4m3fn", "FLOAT8E4M3FN", "float8e4m3fn", "", 8},
    {"float8e4m3fnuz", "FLOAT8E4M3FNUZ", "float8e4m3fnuz", "", 8},
    {"float8e5m2", "FLOAT8E5M2", "float8e5m2", "", 8},
    {"float8e5m2fnuz", "FLOAT8E5M2FNUZ", "float8e5m2fnuz", "", 8},
    {"uint4", "UINT4", "uint4", "", 4},
    {"int4", "INT4", "int4", "", 4},
    {"float4e2m1", "FLOAT4E2M1", "float4e2m1", "", 4},
    {"float8e8m0", "FLOAT8E8M0", "float8e8m0", "", 8},
    {"uint2", "UINT2", "uint2", "", 2},
    {"int2", "INT2", "int2", "", 2},
    {"float6e2m3", "FLOAT6E2M3", "float6e2m3", "", 8},
    {"float6e3m2", "FLOAT6E3M2", "float6e3m2", "", 8},
}};

const Info& info(DataType type) noexcept {
  const auto i = static_cast<std::size_t>(type);
  return kInfo[i < kInfo.size() ? i : 0];
}

}  // namespace

int bit_width(DataType type) noexcept { return info(type).bits; }

std::string_view name(DataType type) noexcept { return info(type).name; }

DataType parse_data_type(std::string_view text) noexcept {
  if (text.starts_with("tensor(") && text.ends_with(")")) text = text.substr(7, text.size() - 8);
  const std::string_view plain = !text.empty() && (text[0] == '<' || text[0] == '|' || text[0] == '=') ? text.substr(1) : text;
  const std::string lower = ascii_lower(text);
  for (std::size_t i = 1; i < kInfo.size(); ++i) {
    const Info& k = kInfo[i];
    if (lower == k.name || text == k.onnx || lower == k.type || (!k.numpy.empty() && plain == k.numpy)) {
      return static_cast<DataType>(i);
    }
  }
  if (lower == "float") return DataType::float32;
  if (lower == "boolean") return DataType::boolean;
  if (lower == "half" || lower == "fp16") return DataType::float16;
  if (lower == "fp32") return DataType::float32;
  if (lower == "str") return DataType::string;
  return DataType::undefined;
}

bool is_floating(DataType type) noexcept {
  using enum DataType;
  constexpr DataType kAll[] = {float32,    float64,        float16,    bfloat16,   float8e4m3fn, float8e4m3fnuz,
                               float8e5m2, float8e5m2fnuz, float4e2m1, float8e8m0, float6e2m3,   float6e3m2};
  return std::find(std::begin(kAll), std::end(kAll), type) != std::end(kAll);
}

bool is_integer(DataType type) noexcept {
  using enum DataType;
  constexpr DataType kAll[] = {int8, uint8, int16, uint16, int32, uint32, int64, uint64, int4, uint4, int2, uint2};
  return std::find(std::begin(kAll), std::end(kAll), type) != std::end(kAll);
}

bool is_sub_byte(DataType type) noexcept {
  const int bits = bit_width(type);
  return bits > 0 && bits < 8;
}

std::size_t byte_size(DataType type, std::int64_t count) noexcept {
  const auto n = static_cast<std::size_t>(count);
  if (type == DataType::string) return n * sizeof(std::string);
  const auto bits = static_cast<std::size_t>(bit_width(type));
  return bits >= 8 ? n * (bits / 8) : (n * bits + 7) / 8;
}

}  // namespace sdx
