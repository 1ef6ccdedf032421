#include "tensor/types.h"

#include <algorithm>

namespace sdx {

std::uint16_t float_to_half(float value) noexcept {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (u >> 16) & 0x8000;
  const std::uint32_t magnitude = u & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<std::uint16_t>(sign | 0x7E00 | ((magnitude >> 13) & 0x1FF));
  if (magnitude >= 0x477FF000) return static_cast<std::uint16_t>(sign | 0x7C00);  // rounds to 65536 or more
  if (magnitude < 0x38800000) {                                                   // subnormal: below 2^-14
    // Adding 0.5 aligns the mantissa so that the hardware does the rounding.
    const float f = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(f) - 0x3F000000));
  }
  const std::uint32_t rounded = magnitude + 0xFFF + ((magnitude >> 13) & 1);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

float half_to_float(std::uint16_t bits) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1F;
  const std::uint32_t mantissa = bits & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000 | (mantissa << 13));
  if (exponent == 0) {
    const float f = static_cast<float>(mantissa) * 0x1p-24F;
    return sign ? -f : f;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

float small_to_float(std::uint8_t bits, const SmallFloatFormat& f) noexcept {
  const int width = 1 + f.exponent_bits + f.mantissa_bits;
  const bool negative = ((bits >> (width - 1)) & 1) != 0;
  const int exponent = (bits >> f.mantissa_bits) & ((1 << f.exponent_bits) - 1);
  const int mantissa = bits & ((1 << f.mantissa_bits) - 1);
  const int top = (1 << f.exponent_bits) - 1;
  const int ones = (1 << f.mantissa_bits) - 1;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  if (f.unsigned_zero && negative && exponent == 0 && mantissa == 0) return nan;
  if (f.has_infinity && exponent == top) {
    if (mantissa != 0) return nan;
    return negative ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  }
  if (f.has_nan && !f.unsigned_zero && !f.has_infinity && exponent == top && mantissa == ones) return nan;
  float magnitude = 0;
  if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), 1 - f.bias - f.mantissa_bits);
  } else {
    magnitude = std::ldexp(static_cast<float>(mantissa + (1 << f.mantissa_bits)), exponent - f.bias - f.mantissa_bits);
  }
  return negative ? -magnitude : magnitude;
}

std::uint8_t float_to_small(float value, const SmallFloatFormat& f, bool saturate) noexcept {
  const int width = 1 + f.exponent_bits + f.mantissa_bits;
  const int sign_bit = 1 << (width - 1);
  const int top = (1 << f.exponent_bits) - 1;
  const int ones = (1 << f.mantissa_bits) - 1;
  const bool negative = std::signbit(value);
  const int sign = negative ? sign_bit : 0;

  int max_code = 0;  // the largest finite magnitude
  int nan_code = 0;
  if (f.has_infinity) {
    max_code = ((top - 1) << f.mantissa_bits) | ones;
    nan_code = (top << f.mantissa_bits) | ones;
  } else if (f.unsigned_zero) {
    max_code = (top << f.mantissa_bits) | ones;
    nan_code = sign_bit;
  } else if (f.has_nan) {
    max_code = (top << f.mantissa_bits) | (ones - 1);
    nan_code = (top << f.mantissa_bits) | ones;
  } else {
    max_code = (top << f.mantissa_bits) | ones;
    nan_code = max_code;
  }
  if (std::isnan(value)) {
    if (!f.has_nan) return static_cast<std::uint8_t>(sign | max_code);
    return static_cast<std::uint8_t>(f.unsigned_zero ? nan_code : (sign | nan_code));
  }
  const auto overflow = [&]() -> int {
    if (saturate || !f.has_nan) return sign | max_code;
    if (f.has_infinity) return sign | (top << f.mantissa_bits);
    return f.unsigned_zero ? nan_code : (sign | nan_code);
  };
  if (std::isinf(value)) {
    return static_cast<std::uint8_t>(overflow());
  }
  const float magnitude = std::fabs(value);
  int exponent = 0;
  if (magnitude != 0) std::frexp(magnitude, &exponent);
  // frexp: magnitude = m * 2^exponent with m in [0.5, 1); the stored exponent is exponent - 1.
  const int e = std::max(exponent - 1, 1 - f.bias);
  const float scaled = std::ldexp(magnitude, f.mantissa_bits - e);
  const auto units = static_cast<int>(std::nearbyint(scaled));  // round half to even in the default mode
  int code = 0;
  if (units < (1 << f.mantissa_bits)) {
    code = units;  // subnormal or zero
  } else {
    // units may have reached the next power of two: the carry moves into the exponent field by plain addition.
    const long long wide = (static_cast<long long>(e + f.bias - 1) << f.mantissa_bits) + units;
    code = wide > max_code ? max_code + 1 : static_cast<int>(wide);
  }
  if (code > max_code) return static_cast<std::uint8_t>(overflow());
  if (code == 0 && f.unsigned_zero) return 0;
  return static_cast<std::uint8_t>(sign | code);
}

float e8m0_to_float(std::uint8_t bits) noexcept {
  if (bits == 0xFF) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, static_cast<int>(bits) - 127);
}

std::uint8_t float_to_e8m0(float value, bool saturate, RoundMode mode) noexcept {
  if (std::isnan(value)) return 0xFF;
  if (std::isinf(value)) return saturate ? 0xFE : 0xFF;
  const float magnitude = std::fabs(value);  // the sign is lost: there is no bit for it
  if (magnitude == 0) return 0;
  int exponent = 0;
  const float m = std::frexp(magnitude, &exponent);  // m in [0.5, 1)
  int code = exponent - 1 + 127;
  const float fraction = m * 2.0F;  // in [1, 2)
  if (fraction > 1.0F && (mode == RoundMode::up || (mode == RoundMode::nearest && fraction >= 1.5F))) ++code;
  if (code < 0) return 0;
  if (code > 0xFE) return saturate ? 0xFE : 0xFF;
  return static_cast<std::uint8_t>(code);
}

}  // namespace sdx
