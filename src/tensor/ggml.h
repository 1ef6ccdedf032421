#pragma once
// Blocks of weights as ggml lays them out (the tensors of GGUF files): formats and exact values. Source of the layouts:
// ggml-org/llama.cpp, ggml/src/ggml-common.h and ggml-quants.c.

#include <cstdint>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// Numbers as in GGUF files.
enum class GgmlType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  iq4_nl = 20,
  iq4_xs = 23,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
};

// What the 16 codes of 4 bits stand for: in IQ4_NL and IQ4_XS; in MXFP4 and NVFP4 (floats of 2 exponent bits and 1 mantissa
// bit, doubled).
inline constexpr std::int8_t kUnevenValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
inline constexpr std::int8_t kFloat4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Rows are whole blocks of `block` elements, `bytes` each, little-endian.
struct GgmlFormat {
  GgmlType type;
  std::string_view name;  // "q4_1"
  std::int64_t block;
  std::int64_t bytes;

  std::int64_t row_bytes(std::int64_t elements) const { return elements / block * bytes; }
};

// Null for types that this build cannot read.
SDX_TOOLS_API const GgmlFormat* find_ggml(std::uint32_t type) noexcept;
SDX_TOOLS_API const GgmlFormat* find_ggml(std::string_view name) noexcept;
// "IQ4_NL", also of types that cannot be read; "type 99" has no name: "".
SDX_TOOLS_API std::string_view ggml_type_name(std::uint32_t type) noexcept;

// The scales of MXFP4 and NVFP4, for kFloat4Values: half of 2^(e - 127); half of a float of 4 exponent and 3 mantissa bits, of
// which the one that is not a number counts as 0.
SDX_TOOLS_API float half_power(std::uint8_t e) noexcept;
SDX_TOOLS_API float half_float8(std::uint8_t v) noexcept;

// Converts `blocks` blocks to floats: the values of ggml's own dequantisation, with each operation rounded to float32 separately.
// The source needs no alignment.
SDX_TOOLS_API void ggml_dequantize(const GgmlFormat& format, const void* source, std::int64_t blocks, float* out) noexcept;

}  // namespace sdx
