// Plain loops, compiled once per instruction set. The build keeps the compiler from contracting a * b + c here, so that numbers
// are the same on all machines.

#include "array/random/threefry.h"

#include "kernels/cpu/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "array/random/threefry.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include <bit>
#include <cmath>

#include "kernels/cpu/simd/loops.h"

HWY_BEFORE_NAMESPACE();
namespace sdx::array::detail::HWY_NAMESPACE {
namespace {

HWY_INLINE std::uint32_t turned(std::uint32_t x, int by) { return x << by | x >> (32 - by); }

HWY_INLINE void four_rounds(std::uint32_t& x, std::uint32_t& y, int a, int b, int c, int d) {
  x += y, y = turned(y, a) ^ x;
  x += y, y = turned(y, b) ^ x;
  x += y, y = turned(y, c) ^ x;
  x += y, y = turned(y, d) ^ x;
}

HWY_INLINE void block(Key key, std::uint32_t& x, std::uint32_t& y) {
  const std::uint32_t k0 = key.first, k1 = key.second, k2 = k0 ^ k1 ^ 0x1BD11BDAU;
  x += k0, y += k1;
  four_rounds(x, y, 13, 15, 26, 6);
  x += k1, y += k2 + 1;
  four_rounds(x, y, 17, 29, 16, 24);
  x += k2, y += k0 + 2;
  four_rounds(x, y, 13, 15, 26, 6);
  x += k0, y += k1 + 3;
  four_rounds(x, y, 17, 29, 16, 24);
  x += k1, y += k2 + 4;
  four_rounds(x, y, 13, 15, 26, 6);
  x += k2, y += k0 + 5;
}

void fill(const Blocks& b, std::uint32_t* HWY_RESTRICT low, std::uint32_t* HWY_RESTRICT high) {
  const auto begin = static_cast<std::uint32_t>(b.begin), half = static_cast<std::uint32_t>(b.half);
  const auto count = static_cast<std::uint32_t>(b.end - b.begin);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t x = begin + i, y = begin + i + half;
    block(b.key, x, y);
    low[i] = x;
    high[i] = y;
  }
}

// Converts as the sum of two exact floats: instruction sets without unsigned conversion round as those with it.
HWY_INLINE float to_float(std::uint32_t word) {
  return static_cast<float>(static_cast<std::int32_t>(word >> 16)) * 65536.0F +
         static_cast<float>(static_cast<std::int32_t>(word & 0xFFFFU));
}

void spread(const std::uint32_t* HWY_RESTRICT words, std::int64_t count, const Spread& s, float* HWY_RESTRICT out) {
  const Spread spread = s;
  for (std::int64_t i = 0; i < count; ++i) {
    const float unit = to_float(words[i]) * 0x1p-32F;
    const float below = unit < spread.most ? unit : spread.most;
    const float wide = spread.range * below;
    out[i] = wide + spread.low;
  }
}

// Returns the logarithm for normal numbers; the formula is that of Cephes (Moshier).
HWY_INLINE float natural_log(float x) {
  // Chooses the exponent so that the rest is within [sqrt(1/2), sqrt(2)).
  const std::int32_t bits = std::bit_cast<std::int32_t>(x) - 0x3F3504F3;
  const std::int32_t exponent = bits >> 23;
  const float m = std::bit_cast<float>((bits & 0x007FFFFF) + 0x3F3504F3) - 1.0F;
  const float e = static_cast<float>(exponent);
  float p = 7.0376836292e-2F;
  p = p * m - 1.1514610310e-1F;
  p = p * m + 1.1676998740e-1F;
  p = p * m - 1.2420140846e-1F;
  p = p * m + 1.4249322787e-1F;
  p = p * m - 1.6668057665e-1F;
  p = p * m + 2.0000714765e-1F;
  p = p * m - 2.4999993993e-1F;
  p = p * m + 3.3333331174e-1F;
  const float square = m * m;
  float y = p * m * square;
  y = y - 2.12194440e-4F * e;
  y = y - 0.5F * square;
  return (m + y) + 0.693359375F * e;
}

HWY_INLINE float inner(float w) {
  w -= 2.5F;
  float p = 2.81022636e-08F;
  p = p * w + 3.43273939e-07F;
  p = p * w - 3.5233877e-06F;
  p = p * w - 4.39150654e-06F;
  p = p * w + 0.00021858087F;
  p = p * w - 0.00125372503F;
  p = p * w - 0.00417768164F;
  p = p * w + 0.246640727F;
  return p * w + 1.50140941F;
}

HWY_INLINE float outer(float w) {
  w = std::sqrt(w) - 3.0F;
  float p = -0.000200214257F;
  p = p * w + 0.000100950558F;
  p = p * w + 0.00134934322F;
  p = p * w - 0.00367342844F;
  p = p * w + 0.00573950773F;
  p = p * w - 0.0076224613F;
  p = p * w + 0.00943887047F;
  p = p * w + 1.00167406F;
  return p * w + 2.83297682F;
}

void inverse_erf(float* values, std::int64_t count, float scale) {
  SDX_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const float x = values[i];
    const float w = -natural_log((1.0F - x) * (1.0F + x));
    const float p = w < 5.0F ? inner(w) : outer(w);
    values[i] = p * x * scale;
  }
}

}  // namespace

const RandomTable& random_table() {
  static constexpr RandomTable kTable{fill, spread, inverse_erf, [](Key key, std::uint32_t x, std::uint32_t y) {
                                        block(key, x, y);
                                        return std::pair(x, y);
                                      }};
  return kTable;
}

}  // namespace sdx::array::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/cpu/simd/dispatch.h"

namespace sdx::array::detail {
namespace {

const RandomTable& table() {
  static const RandomTable& chosen = SDX_CPU_PICK(random_table)();
  return chosen;
}

}  // namespace

std::pair<std::uint32_t, std::uint32_t> threefry(Key key, std::uint32_t x, std::uint32_t y) { return table().one(key, x, y); }
void words(const Blocks& blocks, std::uint32_t* low, std::uint32_t* high) { table().fill(blocks, low, high); }
void uniform_floats(const std::uint32_t* words, std::int64_t count, const Spread& spread, float* out) {
  table().spread(words, count, spread, out);
}
void inverse_erf_floats(float* values, std::int64_t count, float scale) { table().inverse_erf(values, count, scale); }

}  // namespace sdx::array::detail
#endif
