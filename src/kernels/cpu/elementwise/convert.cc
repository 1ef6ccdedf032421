#include "kernels/cpu/elementwise/convert.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/elementwise/cast_simd.h"
#include "kernels/cpu/elementwise/convert_simd.h"
#include "tensor/types.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kGrain = 32768;

const char* at16(const void* p, std::int64_t i) { return static_cast<const char*>(p) + 2 * i; }
char* at16(void* p, std::int64_t i) { return static_cast<char*>(p) + 2 * i; }

constexpr std::int64_t kBlock = 1024;  // floats between float16 and another type: stay in the first-level cache

bool is_float16(DataType t) { return t == DataType::float16; }

void cast_range(DataType from, DataType to, const char* x, char* y, std::int64_t n) {
  if (!is_float16(from) && !is_float16(to)) return cast_row(from, to)(x, y, n);
  if (is_float16(from) && to == DataType::float32) return half_to_f32(x, reinterpret_cast<float*>(y), n);
  if (from == DataType::float32) return f32_to_half(reinterpret_cast<const float*>(x), y, n);
  const CastRow row = is_float16(from) ? cast_row(DataType::float32, to) : cast_row(from, DataType::float32);
  const std::int64_t in = bit_width(from) / 8, out = bit_width(to) / 8;
  float floats[kBlock];
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t len = std::min(kBlock, n - i);
    if (is_float16(from)) {
      half_to_f32(x + i * in, floats, len);
      row(floats, y + i * out, len);
    } else {
      row(x + i * in, floats, len);
      f32_to_half(floats, y + i * out, len);
    }
  }
}

}  // namespace

void half_to_f32(const void* x, float* y, std::int64_t n) {
  const auto f = convert_kernels().half_to_f32;
  parallel_for(n, kGrain, [&](std::int64_t b, std::int64_t e) { f(at16(x, b), y + b, e - b); });
}
void f32_to_half(const float* x, void* y, std::int64_t n) {
  const auto f = convert_kernels().f32_to_half;
  parallel_for(n, kGrain, [&](std::int64_t b, std::int64_t e) { f(x + b, at16(y, b), e - b); });
}
void bfloat_to_f32(const void* x, float* y, std::int64_t n) {
  const auto f = convert_kernels().bfloat_to_f32;
  parallel_for(n, kGrain, [&](std::int64_t b, std::int64_t e) { f(at16(x, b), y + b, e - b); });
}
void f32_to_bfloat(const float* x, void* y, std::int64_t n) {
  const auto f = convert_kernels().f32_to_bfloat;
  parallel_for(n, kGrain, [&](std::int64_t b, std::int64_t e) { f(x + b, at16(y, b), e - b); });
}

bool can_cast(DataType from, DataType to) {
  // Integers that float32 rounds are beyond float16's range anyway: both roundings give infinity.
  if (is_float16(from)) return to == DataType::float32 || cast_row(DataType::float32, to) != nullptr;
  if (is_float16(to))
    return from == DataType::float32 || (from != DataType::float64 && cast_row(from, DataType::float32) != nullptr);
  return cast_row(from, to) != nullptr;
}

void cast_elements(DataType from, DataType to, const void* x, void* y, std::int64_t n) {
  const std::int64_t in = bit_width(from) / 8, out = bit_width(to) / 8;
  parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    cast_range(from, to, static_cast<const char*>(x) + begin * in, static_cast<char*>(y) + begin * out, end - begin);
  });
}

}  // namespace sdx::cpu
