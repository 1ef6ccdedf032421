#pragma once
// C++ types for the element types that the standard library lacks, and conversions.
// Sources: IEEE 754-2019 (binary16), bfloat16 (upper half of binary32), ONNX "Float stored in 8 bits" and "Float4"
// technical notes, OCP Microscaling Formats v1.0 (E8M0, E2M1, E2M3, E3M2).

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <sdx/dtype.hpp>

#include "base/tools_api.h"

namespace sdx {

// round-to-nearest-even; overflow to infinity, NaN stays NaN
SDX_TOOLS_API std::uint16_t float_to_half(float value) noexcept;
SDX_TOOLS_API float half_to_float(std::uint16_t bits) noexcept;

struct Float16 {
  std::uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value) noexcept : bits(float_to_half(value)) {}
  explicit operator float() const noexcept { return half_to_float(bits); }
};

struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) noexcept {
    const auto u = std::bit_cast<std::uint32_t>(value);
    if (value != value) {
      bits = static_cast<std::uint16_t>((u >> 16) | 0x40);
    } else {
      bits = static_cast<std::uint16_t>((u + 0x7FFF + ((u >> 16) & 1)) >> 16);
    }
  }
  explicit operator float() const noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

// One description for all 8-, 6- and 4-bit floats.
struct SmallFloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool has_infinity;   // IEEE-like: the top exponent is infinity and NaN
  bool unsigned_zero;  // "fnuz": 0x80 is NaN, no negative zero
  bool has_nan;        // "fn" formats without infinity: only all ones is NaN; the 6- and 4-bit formats have none
};

inline constexpr SmallFloatFormat kE4M3FN{4, 3, 7, false, false, true};
inline constexpr SmallFloatFormat kE4M3FNUZ{4, 3, 8, false, true, true};
inline constexpr SmallFloatFormat kE5M2{5, 2, 15, true, false, true};
inline constexpr SmallFloatFormat kE5M2FNUZ{5, 2, 16, false, true, true};
inline constexpr SmallFloatFormat kE2M1{2, 1, 1, false, false, false};
inline constexpr SmallFloatFormat kE2M3{2, 3, 1, false, false, false};
inline constexpr SmallFloatFormat kE3M2{3, 2, 3, false, false, false};

// Round to nearest even. `saturate`: values beyond the largest finite one (infinity included) become it; else they become
// infinity where the format has one, NaN where it has not. Formats without NaN always saturate.
std::uint8_t float_to_small(float value, const SmallFloatFormat& format, bool saturate = true) noexcept;
float small_to_float(std::uint8_t bits, const SmallFloatFormat& format) noexcept;

// E8M0: a power of two, 2^(bits-127); 0xFF is NaN. Conversion to it rounds as `mode` says.
enum class RoundMode { nearest, up, down };
std::uint8_t float_to_e8m0(float value, bool saturate = true, RoundMode mode = RoundMode::up) noexcept;
float e8m0_to_float(std::uint8_t bits) noexcept;

template <const SmallFloatFormat& F, DataType D>
struct SmallFloat {
  static constexpr DataType kType = D;
  std::uint8_t bits = 0;
  SmallFloat() = default;
  explicit SmallFloat(float value, bool saturate = true) noexcept : bits(float_to_small(value, F, saturate)) {}
  explicit operator float() const noexcept { return small_to_float(bits, F); }
};

using Float8E4M3FN = SmallFloat<kE4M3FN, DataType::float8e4m3fn>;
using Float8E4M3FNUZ = SmallFloat<kE4M3FNUZ, DataType::float8e4m3fnuz>;
using Float8E5M2 = SmallFloat<kE5M2, DataType::float8e5m2>;
using Float8E5M2FNUZ = SmallFloat<kE5M2FNUZ, DataType::float8e5m2fnuz>;
using Float6E2M3 = SmallFloat<kE2M3, DataType::float6e2m3>;
using Float6E3M2 = SmallFloat<kE3M2, DataType::float6e3m2>;

struct Float8E8M0 {
  std::uint8_t bits = 0;
  Float8E8M0() = default;
  explicit Float8E8M0(float value, bool saturate = true) noexcept : bits(float_to_e8m0(value, saturate)) {}
  explicit operator float() const noexcept { return e8m0_to_float(bits); }
};

// Element `i` of a packed 4- or 2-bit array.
inline std::uint8_t get_packed(const void* data, int bits, std::int64_t i) noexcept {
  const auto* p = static_cast<const std::uint8_t*>(data);
  const int per = 8 / bits;
  return static_cast<std::uint8_t>((p[i / per] >> ((i % per) * bits)) & ((1 << bits) - 1));
}
inline void set_packed(void* data, int bits, std::int64_t i, std::uint8_t value) noexcept {
  auto* p = static_cast<std::uint8_t*>(data);
  const int per = 8 / bits;
  const int shift = static_cast<int>(i % per) * bits;
  const int mask = ((1 << bits) - 1) << shift;
  p[i / per] = static_cast<std::uint8_t>((p[i / per] & ~mask) | ((value << shift) & mask));
}
// Sign-extends the low `bits` bits.
inline std::int8_t sign_extend(std::uint8_t value, int bits) noexcept {
  const int shift = 8 - bits;
  return static_cast<std::int8_t>(static_cast<std::int8_t>(value << shift) >> shift);
}

template <DataType type>
struct DataTypeIs {
  static constexpr DataType value = type;
};
template <class T>
struct DataTypeOf;
template <>
struct DataTypeOf<float> : DataTypeIs<DataType::float32> {};
template <>
struct DataTypeOf<double> : DataTypeIs<DataType::float64> {};
template <>
struct DataTypeOf<bool> : DataTypeIs<DataType::boolean> {};
template <>
struct DataTypeOf<std::int8_t> : DataTypeIs<DataType::int8> {};
template <>
struct DataTypeOf<std::uint8_t> : DataTypeIs<DataType::uint8> {};
template <>
struct DataTypeOf<std::int16_t> : DataTypeIs<DataType::int16> {};
template <>
struct DataTypeOf<std::uint16_t> : DataTypeIs<DataType::uint16> {};
template <>
struct DataTypeOf<std::int32_t> : DataTypeIs<DataType::int32> {};
template <>
struct DataTypeOf<std::uint32_t> : DataTypeIs<DataType::uint32> {};
template <>
struct DataTypeOf<std::int64_t> : DataTypeIs<DataType::int64> {};
template <>
struct DataTypeOf<std::uint64_t> : DataTypeIs<DataType::uint64> {};
template <>
struct DataTypeOf<std::string> : DataTypeIs<DataType::string> {};
template <>
struct DataTypeOf<std::complex<float>> : DataTypeIs<DataType::complex64> {};
template <>
struct DataTypeOf<std::complex<double>> : DataTypeIs<DataType::complex128> {};
template <>
struct DataTypeOf<Float16> : DataTypeIs<DataType::float16> {};
template <>
struct DataTypeOf<BFloat16> : DataTypeIs<DataType::bfloat16> {};
template <const SmallFloatFormat& F, DataType D>
struct DataTypeOf<SmallFloat<F, D>> {
  static constexpr DataType value = D;
};
template <>
struct DataTypeOf<Float8E8M0> : DataTypeIs<DataType::float8e8m0> {};

// Types stored in less than float precision, which compute in float.
template <class T>
inline constexpr bool is_reduced_float_v =
    !std::is_arithmetic_v<T> && std::is_constructible_v<T, float> && !std::is_same_v<T, std::complex<float>> &&
    !std::is_same_v<T, std::complex<double>> && !std::is_same_v<T, std::string>;

// The type that arithmetic on T is done in.
template <class T>
using ComputeType = std::conditional_t<is_reduced_float_v<T>, float, T>;

}  // namespace sdx
