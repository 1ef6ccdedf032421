#include "text/model/network/block_codes.h"

#include <algorithm>

#include "base/error.h"

namespace sdx::text {
namespace {

using Byte = unsigned char;

float half_at(const Byte* p) {
  const char bytes[2] = {static_cast<char>(p[0]), static_cast<char>(p[1])};
  float v = 0;
  ggml_dequantize(*find_ggml("f16"), bytes, 1, &v);
  return v;
}
float as_float(int v) { return static_cast<float>(v); }
Byte as_byte(int v) { return static_cast<Byte>(v); }

// Codes of 4 or 5 bits in 32: low nibbles first.
void nibbles(const Byte* q, const Byte* fifth, std::uint8_t* codes) {
  for (int i = 0; i < 32; ++i) {
    int code = i < 16 ? q[i] & 15 : q[i - 16] >> 4;
    if (fifth != nullptr) code |= (fifth[i / 8] >> (i % 8) & 1) << 4;
    codes[i] = as_byte(code);
  }
}

void two(const Byte* b, std::uint8_t* codes, float* scales, float* minimums) {
  const float d = half_at(b + 80), dmin = half_at(b + 82);
  for (int i = 0; i < 256; ++i) codes[i] = as_byte(b[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3);
  for (int s = 0; s < 16; ++s) {
    scales[s] = d * as_float(b[s] & 15);
    minimums[s] = -(dmin * as_float(b[s] >> 4));
  }
}

void three(const Byte* b, std::uint8_t* codes, float* scales) {
  const float d = half_at(b + 108);
  for (int i = 0; i < 256; ++i) {
    const int low = b[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    codes[i] = as_byte(low | (b[i % 32] >> (i / 32) & 1) << 2);
  }
  for (int s = 0; s < 16; ++s) {
    const int low = s < 8 ? b[96 + s] & 15 : b[88 + s] >> 4;
    scales[s] = d * as_float((low | (b[104 + s % 4] >> (s / 4 * 2) & 3) << 4) - 32);
  }
}

void four_or_five(const Byte* b, bool five, std::uint8_t* codes, float* scales, float* minimums) {
  const float d = half_at(b), dmin = half_at(b + 2);
  const Byte *packed = b + 4, *q = b + (five ? 48 : 16);
  for (int s = 0; s < 8; ++s) {
    const int scale = s < 4 ? packed[s] & 63 : (packed[s + 4] & 15) | packed[s - 4] >> 6 << 4;
    const int min = s < 4 ? packed[s + 4] & 63 : packed[s + 4] >> 4 | packed[s] >> 6 << 4;
    scales[s] = d * as_float(scale);
    minimums[s] = -(dmin * as_float(min));
    for (int i = 0; i < 32; ++i) {
      int code = s % 2 == 0 ? q[s / 2 * 32 + i] & 15 : q[s / 2 * 32 + i] >> 4;
      if (five) code |= (b[16 + i] >> s & 1) << 4;
      codes[s * 32 + i] = as_byte(code);
    }
  }
}

void six(const Byte* b, std::uint8_t* codes, float* scales) {
  const float d = half_at(b + 208);
  for (int s = 0; s < 16; ++s) scales[s] = d * as_float(static_cast<signed char>(b[192 + s]));
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, l = i % 32;
    const int byte = b[half * 64 + quarter % 2 * 32 + l];
    codes[i] = as_byte((quarter < 2 ? byte & 15 : byte >> 4) | (b[128 + half * 32 + l] >> (2 * quarter) & 3) << 4);
  }
}

// What codes of 4 bits stand for, from -128 on: `half` low nibbles, then as many high ones.
void values(const Byte* q, int half, const std::int8_t* known, std::uint8_t* codes) {
  for (int i = 0; i < half; ++i) {
    codes[i] = as_byte(known[q[i] & 15] + 128);
    codes[i + half] = as_byte(known[q[i] >> 4] + 128);
  }
}

void uneven(const Byte* b, std::uint8_t* codes, float* scales) {
  const float d = half_at(b);
  for (int s = 0; s < 8; ++s) {
    const int scale = (b[4 + s / 2] >> (s % 2 * 4) & 15) | (b[2 + s / 4] >> (s % 4 * 2) & 3) << 4;
    scales[s] = d * as_float(scale - 32);
    values(b + 8 + 16 * s, 16, kUnevenValues, codes + 32 * s);
  }
}

// Weights of -1, 0 and 1 times one scale, which is at `scale`.
void ternary(const GgmlFormat& format, const Byte* b, const Byte* scale, std::uint8_t* codes, float* scales) {
  Byte unit[66];
  float weights[256];
  scales[0] = half_at(scale);
  std::copy_n(b, format.bytes, unit);
  unit[scale - b] = 0, unit[scale - b + 1] = 0x3C;  // 1
  ggml_dequantize(format, unit, 1, weights);
  for (int i = 0; i < 256; ++i) codes[i] = as_byte(static_cast<int>(weights[i]) + 8);
}

}  // namespace

CodeFormat code_format(GgmlType type) {
  switch (type) {
    case GgmlType::q4_0: return {32, 4, 8, false};
    case GgmlType::q4_1: return {32, 4, 0, true};
    case GgmlType::q5_0: return {32, 8, 16, false};
    case GgmlType::q5_1: return {32, 8, 0, true};
    case GgmlType::q8_0: return {32, 8, 128, false};
    case GgmlType::q2_k: return {16, 4, 0, true};
    case GgmlType::q3_k: return {16, 4, 4, false};
    case GgmlType::q4_k: return {32, 4, 0, true};
    case GgmlType::q5_k: return {32, 8, 0, true};
    case GgmlType::q6_k: return {16, 8, 32, false};
    case GgmlType::iq4_nl:
    case GgmlType::iq4_xs:
    case GgmlType::mxfp4: return {32, 8, 128, false};
    case GgmlType::nvfp4: return {16, 8, 128, false};
    case GgmlType::tq1_0:
    case GgmlType::tq2_0: return {256, 4, 8, false};
    case GgmlType::f32:
    case GgmlType::f16:
    case GgmlType::bf16: break;
  }
  fail(ErrorCode::internal, "floats have no codes");
}

void take_apart(const GgmlFormat& format, const std::byte* block, std::uint8_t* codes, float* scales, float* minimums) {
  const auto* b = reinterpret_cast<const Byte*>(block);
  switch (format.type) {
    case GgmlType::q4_0: scales[0] = half_at(b); return nibbles(b + 2, nullptr, codes);
    case GgmlType::q4_1: scales[0] = half_at(b), minimums[0] = half_at(b + 2); return nibbles(b + 4, nullptr, codes);
    case GgmlType::q5_0: scales[0] = half_at(b); return nibbles(b + 6, b + 2, codes);
    case GgmlType::q5_1: scales[0] = half_at(b), minimums[0] = half_at(b + 2); return nibbles(b + 8, b + 4, codes);
    case GgmlType::q8_0:
      scales[0] = half_at(b);
      for (int i = 0; i < 32; ++i) codes[i] = as_byte(static_cast<signed char>(b[2 + i]) + 128);
      return;
    case GgmlType::q2_k: return two(b, codes, scales, minimums);
    case GgmlType::q3_k: return three(b, codes, scales);
    case GgmlType::q4_k: return four_or_five(b, false, codes, scales, minimums);
    case GgmlType::q5_k: return four_or_five(b, true, codes, scales, minimums);
    case GgmlType::q6_k: return six(b, codes, scales);
    case GgmlType::iq4_nl: scales[0] = half_at(b); return values(b + 2, 16, kUnevenValues, codes);
    case GgmlType::iq4_xs: return uneven(b, codes, scales);
    case GgmlType::mxfp4: scales[0] = half_power(*b); return values(b + 1, 16, kFloat4Values, codes);
    case GgmlType::nvfp4:
      for (int s = 0; s < 4; ++s) {
        scales[s] = half_float8(b[s]);
        values(b + 4 + 8 * s, 8, kFloat4Values, codes + 16 * s);
      }
      return;
    case GgmlType::tq1_0: return ternary(format, b, b + 52, codes, scales);
    case GgmlType::tq2_0: return ternary(format, b, b + 64, codes, scales);
    case GgmlType::f32:
    case GgmlType::f16:
    case GgmlType::bf16: break;
  }
  fail(ErrorCode::internal, "floats have no codes");
}

}  // namespace sdx::text
