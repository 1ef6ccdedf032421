#include "tensor/ggml.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tensor/types.h"

namespace sdx {
namespace {

using Byte = unsigned char;

constexpr std::array<GgmlFormat, 19> kFormats{{
    {GgmlType::f32, "f32", 1, 4},         {GgmlType::f16, "f16", 1, 2},           {GgmlType::q4_0, "q4_0", 32, 18},
    {GgmlType::q4_1, "q4_1", 32, 20},     {GgmlType::q5_0, "q5_0", 32, 22},       {GgmlType::q5_1, "q5_1", 32, 24},
    {GgmlType::q8_0, "q8_0", 32, 34},     {GgmlType::q2_k, "q2_k", 256, 84},      {GgmlType::q3_k, "q3_k", 256, 110},
    {GgmlType::q4_k, "q4_k", 256, 144},   {GgmlType::q5_k, "q5_k", 256, 176},     {GgmlType::q6_k, "q6_k", 256, 210},
    {GgmlType::iq4_nl, "iq4_nl", 32, 18}, {GgmlType::iq4_xs, "iq4_xs", 256, 136}, {GgmlType::bf16, "bf16", 1, 2},
    {GgmlType::tq1_0, "tq1_0", 256, 54},  {GgmlType::tq2_0, "tq2_0", 256, 66},    {GgmlType::mxfp4, "mxfp4", 32, 17},
    {GgmlType::nvfp4, "nvfp4", 64, 36},
}};

// Indexed by gguf's numbers.
constexpr std::array<std::string_view, 42> kNames{
    "F32",      "F16",    "Q4_0",  "Q4_1",       "",           "",           "Q5_0",   "Q5_1",    "Q8_0",  "Q8_1",     "Q2_K",
    "Q3_K",     "Q4_K",   "Q5_K",  "Q6_K",       "Q8_K",       "IQ2_XXS",    "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL",   "IQ3_S",
    "IQ2_S",    "IQ4_XS", "I8",    "I16",        "I32",        "I64",        "F64",    "IQ1_M",   "BF16",  "Q4_0_4_4", "Q4_0_4_8",
    "Q4_0_8_8", "TQ1_0",  "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",  "NVFP4",   "Q1_0"};

std::uint16_t word16(const Byte* p) { return static_cast<std::uint16_t>(p[0] | p[1] << 8); }
std::uint32_t word32(const Byte* p) { return word16(p) | static_cast<std::uint32_t>(word16(p + 2)) << 16; }
float half_at(const Byte* p) { return half_to_float(word16(p)); }
float as_float(int v) { return static_cast<float>(v); }

void q4(const Byte* b, bool with_min, float* y) {
  const float d = half_at(b), m = with_min ? half_at(b + 2) : 0.0F;
  const Byte* q = b + (with_min ? 4 : 2);
  for (int j = 0; j < 16; ++j) {
    const int low = q[j] & 15, high = q[j] >> 4;
    y[j] = with_min ? as_float(low) * d + m : as_float(low - 8) * d;
    y[j + 16] = with_min ? as_float(high) * d + m : as_float(high - 8) * d;
  }
}

void q5(const Byte* b, bool with_min, float* y) {
  const float d = half_at(b), m = with_min ? half_at(b + 2) : 0.0F;
  b += with_min ? 4 : 2;
  const std::uint32_t fifth = word32(b);
  const Byte* q = b + 4;
  for (int j = 0; j < 16; ++j) {
    const int low = (q[j] & 15) | static_cast<int>(fifth >> j & 1) << 4;
    const int high = q[j] >> 4 | static_cast<int>(fifth >> (j + 16) & 1) << 4;
    y[j] = with_min ? as_float(low) * d + m : as_float(low - 16) * d;
    y[j + 16] = with_min ? as_float(high) * d + m : as_float(high - 16) * d;
  }
}

void q8(const Byte* b, float* y) {
  const float d = half_at(b);
  for (int j = 0; j < 32; ++j) y[j] = as_float(static_cast<signed char>(b[2 + j])) * d;
}

void q2_k(const Byte* b, float* y) {
  const Byte *scales = b, *q = b + 16;
  const float d = half_at(b + 80), min = half_at(b + 82);
  for (int half = 0; half < 2; ++half, q += 32) {
    for (int shift = 0; shift < 8; shift += 2) {
      for (int part = 0; part < 2; ++part, ++scales) {
        const float dl = d * as_float(*scales & 15), ml = min * as_float(*scales >> 4);
        for (int l = 0; l < 16; ++l) *y++ = dl * as_float(q[16 * part + l] >> shift & 3) - ml;
      }
    }
  }
}

void q3_k(const Byte* b, float* y) {
  const Byte *high = b, *q = b + 32, *packed = b + 96;
  const float d = half_at(b + 108);
  // 16 scales of 6 bits: low nibbles in bytes 0 to 7, the upper two bits in bytes 8 to 11.
  int scale[16];
  for (int i = 0; i < 16; ++i) {
    const int low = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4;
    scale[i] = (low | (packed[8 + i % 4] >> (2 * (i / 4)) & 3) << 4) - 32;
  }
  int is = 0;
  unsigned mask = 1;
  for (int half = 0; half < 2; ++half, q += 32) {
    for (int shift = 0; shift < 8; shift += 2, mask <<= 1) {
      for (int part = 0; part < 2; ++part) {
        const float dl = d * as_float(scale[is++]);
        for (int l = 16 * part; l < 16 * part + 16; ++l) {
          *y++ = dl * as_float((q[l] >> shift & 3) - ((high[l] & mask) != 0 ? 0 : 4));
        }
      }
    }
  }
}

// The scale and minimum of sub-block j of 8, 6 bits each.
void scale_and_min(int j, const Byte* packed, int& scale, int& min) {
  if (j < 4) {
    scale = packed[j] & 63;
    min = packed[j + 4] & 63;
  } else {
    scale = (packed[j + 4] & 15) | packed[j - 4] >> 6 << 4;
    min = packed[j + 4] >> 4 | packed[j] >> 6 << 4;
  }
}

void q45_k(const Byte* b, bool five, float* y) {
  const float d = half_at(b), dmin = half_at(b + 2);
  const Byte *scales = b + 4, *high = b + 16, *q = b + (five ? 48 : 16);
  for (int j = 0; j < 8; ++j) {
    int scale = 0, min = 0;
    scale_and_min(j, scales, scale, min);
    const float dl = d * as_float(scale), ml = dmin * as_float(min);
    for (int l = 0; l < 32; ++l) {
      int code = j % 2 == 0 ? q[l] & 15 : q[l] >> 4;
      if (five) code += (high[l] >> j & 1) * 16;
      *y++ = dl * as_float(code) - ml;
    }
    if (j % 2 == 1) q += 32;
  }
}

void q6_k(const Byte* b, float* y) {
  const Byte *low = b, *high = b + 128;
  const auto* scale = reinterpret_cast<const signed char*>(b + 192);
  const float d = half_at(b + 208);
  for (int half = 0; half < 2; ++half, low += 64, high += 32) {
    for (int quarter = 0; quarter < 4; ++quarter, scale += 2) {
      const Byte* from = low + quarter % 2 * 32;
      for (int l = 0; l < 32; ++l) {
        const int nibble = quarter < 2 ? from[l] & 15 : from[l] >> 4;
        const int code = (nibble | (high[l] >> (2 * quarter) & 3) << 4) - 32;
        *y++ = d * as_float(scale[l / 16]) * as_float(code);
      }
    }
  }
}

// Codes of 4 bits: `half` low nibbles, then as many high ones.
void looked_up(const Byte* q, int half, const std::int8_t* values, float d, float* y) {
  for (int j = 0; j < half; ++j) {
    y[j] = as_float(values[q[j] & 15]) * d;
    y[j + half] = as_float(values[q[j] >> 4]) * d;
  }
}

void iq4_xs(const Byte* b, float* y) {
  const float d = half_at(b);
  const int high = word16(b + 2);
  for (int j = 0; j < 8; ++j) {
    const int scale = (b[4 + j / 2] >> (4 * (j % 2)) & 15) | (high >> (2 * j) & 3) << 4;
    looked_up(b + 8 + 16 * j, 16, kUnevenValues, d * as_float(scale - 32), y + 32 * j);
  }
}

void nvfp4(const Byte* b, float* y) {
  for (int j = 0; j < 4; ++j) looked_up(b + 4 + 8 * j, 8, kFloat4Values, half_float8(b[j]), y + 16 * j);
}

// Five weights of -1, 0, 1 in a byte: digits of base 3 of a fraction. Byte times 3^digit, modulo 256, is what follows the digits
// before; its product with 3 begins with the digit. `count` bytes hold `digits` times as many weights.
float* ternary(const Byte* q, int count, int digits, float d, float* y) {
  Byte power = 1;
  for (int digit = 0; digit < digits; ++digit, power = static_cast<Byte>(power * 3)) {
    for (int j = 0; j < count; ++j) *y++ = as_float((static_cast<Byte>(q[j] * power) * 3 >> 8) - 1) * d;
  }
  return y;
}

void tq1_0(const Byte* b, float* y) {
  const float d = half_at(b + 52);
  y = ternary(b, 32, 5, d, y);
  y = ternary(b + 32, 16, 5, d, y);
  ternary(b + 48, 4, 4, d, y);
}

void tq2_0(const Byte* b, float* y) {
  const float d = half_at(b + 64);
  for (int i = 0; i < 256; ++i) y[i] = as_float((b[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3) - 1) * d;
}

void one_block(GgmlType type, const Byte* b, float* y) {
  switch (type) {
    case GgmlType::f32: *y = std::bit_cast<float>(word32(b)); break;
    case GgmlType::f16: *y = half_at(b); break;
    case GgmlType::bf16: *y = std::bit_cast<float>(static_cast<std::uint32_t>(word16(b)) << 16); break;
    case GgmlType::q4_0: q4(b, false, y); break;
    case GgmlType::q4_1: q4(b, true, y); break;
    case GgmlType::q5_0: q5(b, false, y); break;
    case GgmlType::q5_1: q5(b, true, y); break;
    case GgmlType::q8_0: q8(b, y); break;
    case GgmlType::q2_k: q2_k(b, y); break;
    case GgmlType::q3_k: q3_k(b, y); break;
    case GgmlType::q4_k: q45_k(b, false, y); break;
    case GgmlType::q5_k: q45_k(b, true, y); break;
    case GgmlType::q6_k: q6_k(b, y); break;
    case GgmlType::iq4_nl: looked_up(b + 2, 16, kUnevenValues, half_at(b), y); break;
    case GgmlType::iq4_xs: iq4_xs(b, y); break;
    case GgmlType::tq1_0: tq1_0(b, y); break;
    case GgmlType::tq2_0: tq2_0(b, y); break;
    case GgmlType::mxfp4: looked_up(b + 1, 16, kFloat4Values, half_power(*b), y); break;
    case GgmlType::nvfp4: nvfp4(b, y); break;
  }
}

}  // namespace

const GgmlFormat* find_ggml(std::uint32_t type) noexcept {
  for (const GgmlFormat& f : kFormats) {
    if (static_cast<std::uint32_t>(f.type) == type) return &f;
  }
  return nullptr;
}

const GgmlFormat* find_ggml(std::string_view name) noexcept {
  for (const GgmlFormat& f : kFormats) {
    if (f.name == name) return &f;
  }
  return nullptr;
}

std::string_view ggml_type_name(std::uint32_t type) noexcept { return type < kNames.size() ? kNames[type] : std::string_view(); }

float half_power(std::uint8_t e) noexcept {
  return std::bit_cast<float>(e < 2 ? 0x00200000U << e : static_cast<std::uint32_t>(e - 1) << 23);
}

float half_float8(std::uint8_t v) noexcept {
  const int exponent = v >> 3 & 15, mantissa = v & 7;
  if (v == 0x7F) return 0.0F;
  const float power = std::bit_cast<float>(static_cast<std::uint32_t>(std::max(exponent, 1) + 127 - 7 - 3 - 1) << 23);
  return as_float(exponent == 0 ? mantissa : mantissa + 8) * power;
}

void ggml_dequantize(const GgmlFormat& format, const void* source, std::int64_t blocks, float* out) noexcept {
  const auto* b = static_cast<const Byte*>(source);
  if (format.type == GgmlType::f32 && std::endian::native == std::endian::little) {
    std::memcpy(out, b, static_cast<std::size_t>(blocks) * 4);
    return;
  }
  for (std::int64_t i = 0; i < blocks; ++i) one_block(format.type, b + i * format.bytes, out + i * format.block);
}

}  // namespace sdx
