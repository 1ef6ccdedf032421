#include "kernels/cpu/quant/quant_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_ints;

std::int32_t value(std::uint8_t v, bool is_signed) { return is_signed ? static_cast<std::int8_t>(v) : v; }

// Two images of square windows.
template <class Pool>
ConvShape shape_of(const Pool& v) {
  ConvShape s;
  s.batch = 2, s.in_channels = v.channels;
  s.in[1] = v.h, s.in[2] = v.w;
  for (int i = 1; i < 3; ++i) {
    s.kernel[i] = v.kernel, s.stride[i] = v.stride, s.dilation[i] = v.dilation, s.pad[i] = v.pad;
    s.out[i] = (s.in[i] + 2 * v.pad - (v.kernel - 1) * v.dilation - 1) / v.stride + 1;
  }
  return s;
}

TEST(KernelsQuantBytes, Adds) {
  for_each_isa([] {
    for (const std::int64_t n : {0, 1, 7, 31, 32, 33, 1000}) {
      for (const bool is_signed : {false, true}) {
        Guarded<std::uint8_t> a(n, 1, random_ints<std::uint8_t>(n, 1)), b(n, 3, random_ints<std::uint8_t>(n, 2)), y(n, 5);
        QAdd add;
        add.is_signed = is_signed;
        add.a_zero = is_signed ? -4 : 128, add.b_zero = is_signed ? 9 : 3, add.y_zero = is_signed ? -128 : 100;
        // Once beyond what int32 holds.
        add.a_scale = n == 1000 ? 3e8F : 0.7F, add.b_scale = 1.3F;
        qadd(add, a.data(), b.data(), y.data(), n);
        const float low = is_signed ? -128.0F : 0.0F;
        for (std::int64_t i = 0; i < n; ++i) {
          const float sum = static_cast<float>(value(a[i], is_signed) - add.a_zero) * add.a_scale +
                            static_cast<float>(value(b[i], is_signed) - add.b_zero) * add.b_scale;
          const float want = std::clamp(std::nearbyint(sum) + static_cast<float>(add.y_zero), low, low + 255.0F);
          ASSERT_EQ(static_cast<float>(value(y[i], is_signed)), want) << i << " of " << n;
        }
      }
    }
  });
}

// Multiplies the same images by a factor for each element and by one for each channel.
TEST(KernelsQuantBytes, Multiplies) {
  struct Images {
    std::int64_t batch, pixels, channels;
  };
  for_each_isa([] {
    for (const Images& v : {Images{1, 1, 1}, Images{2, 35, 3}, Images{3, 100, 8}, Images{2, 7, 200}, Images{1, 3, 301}}) {
      for (const bool is_signed : {false, true}) {
        const std::int64_t n = v.batch * v.pixels * v.channels, few = v.batch * v.channels;
        Guarded<std::uint8_t> a(n, 1, random_ints<std::uint8_t>(n, 1)), b(n, 3, random_ints<std::uint8_t>(n, 2)), y(n, 5),
            z(n, 1);
        Guarded<std::uint8_t> factors(few, 1, random_ints<std::uint8_t>(few, 3));
        QMul mul;
        mul.is_signed = is_signed;
        mul.a_zero = is_signed ? -4 : 128, mul.b_zero = is_signed ? 9 : 3, mul.y_zero = is_signed ? -12 : 100;
        // Once beyond what int32 holds.
        mul.scale = v.channels == 301 ? 3e8F : 0.0137F;
        qmul(mul, a.data(), b.data(), y.data(), n);
        qmul_channels(mul, a.data(), factors.data(), z.data(), v.batch, v.pixels, v.channels);
        const float low = is_signed ? -128.0F : 0.0F;
        const auto want = [&](std::uint8_t p, std::uint8_t q) {
          const std::int32_t product = (value(p, is_signed) - mul.a_zero) * (value(q, is_signed) - mul.b_zero);
          const float real = static_cast<float>(product) * mul.scale;
          return std::clamp(std::nearbyint(real) + static_cast<float>(mul.y_zero), low, low + 255.0F);
        };
        for (std::int64_t i = 0; i < n; ++i) {
          const std::int64_t channel = i / (v.pixels * v.channels) * v.channels + i % v.channels;
          ASSERT_EQ(static_cast<float>(value(y[i], is_signed)), want(a[i], b[i])) << i << " of " << n;
          ASSERT_EQ(static_cast<float>(value(z[i], is_signed)), want(a[i], factors[channel])) << i << " of " << n;
        }
      }
    }
  });
}

TEST(KernelsQuantBytes, MaxPoolsAndSums) {
  struct Pool {
    std::int64_t channels, h, w, kernel, stride, dilation, pad;
  };
  for_each_isa([] {
    for (const Pool& v :
         {Pool{1, 1, 1, 1, 1, 1, 0}, Pool{3, 7, 9, 3, 2, 1, 1}, Pool{64, 6, 5, 2, 2, 1, 0}, Pool{67, 9, 9, 3, 1, 2, 2},
          Pool{5, 20, 20, 9, 1, 1, 4}, Pool{8, 9, 7, 2, 2, 1, 0}, Pool{29, 5, 6, 3, 1, 1, 1}}) {
      for (const bool is_signed : {false, true}) {
        const ConvShape s = shape_of(v);
        const std::int64_t pixels = v.h * v.w, plane = s.out[1] * s.out[2];
        Guarded<std::uint8_t> x(2 * pixels * v.channels, 1, random_ints<std::uint8_t>(2 * pixels * v.channels, 1));
        Guarded<std::uint8_t> y(2 * plane * v.channels, 3);
        Guarded<std::int32_t> sums(2 * v.channels, 1);
        max_pool_bytes(s, x.data(), is_signed, y.data());
        sum_pixels(x.data(), is_signed, 2, pixels, v.channels, sums.data());
        for (std::int64_t i = 0; i < 2 * v.channels; ++i) {
          const std::int64_t n = i / v.channels, c = i % v.channels;
          std::int32_t total = 0;
          for (std::int64_t p = 0; p < pixels; ++p) total += value(x[(n * pixels + p) * v.channels + c], is_signed);
          ASSERT_EQ(sums[i], total);
          for (std::int64_t o = 0; o < plane; ++o) {
            std::int32_t best = -1000;
            for (std::int64_t t = 0; t < v.kernel * v.kernel; ++t) {
              const std::int64_t iy = o / s.out[2] * v.stride - v.pad + t / v.kernel * v.dilation;
              const std::int64_t ix = o % s.out[2] * v.stride - v.pad + t % v.kernel * v.dilation;
              if (iy < 0 || iy >= v.h || ix < 0 || ix >= v.w) continue;
              best = std::max(best, value(x[(n * pixels + iy * v.w + ix) * v.channels + c], is_signed));
            }
            ASSERT_EQ(value(y[(n * plane + o) * v.channels + c], is_signed), best) << "channel " << c << " output " << o;
          }
        }
      }
    }
  });
}

// Sums of floats in the order of the taps decide where a mean lies in the middle between two bytes.
TEST(KernelsQuantBytes, AveragesAsFloatsDo) {
  struct Pool {
    std::int64_t channels, h, w, kernel, stride, dilation, pad;
    float x_scale, y_scale;
  };
  for_each_isa([] {
    for (const Pool& v : {Pool{1, 1, 1, 1, 1, 1, 0, 0.02F, 0.02F}, Pool{96, 7, 9, 3, 1, 1, 1, 0.02F, 0.02F},
                          Pool{67, 8, 8, 2, 2, 1, 0, 0.1F, 0.1F}, Pool{33, 9, 9, 3, 1, 2, 2, 0.0213F, 0.0117F},
                          Pool{40, 14, 14, 13, 1, 1, 3, 0.0213F, 0.0021F}, Pool{80, 16, 16, 8, 8, 1, 0, 0.03F, 0.002F},
                          Pool{64, 6, 6, 2, 1, 1, 0, 1e-42F, 1e-42F}, Pool{64, 6, 6, 3, 1, 1, 1, 1e34F, 1e32F},
                          Pool{5, 20, 20, 3, 2, 1, 1, 0.7F, 0.31F}}) {
      for (const int kind : {0, 1, 2, 3}) {
        const ConvShape s = shape_of(v);
        QAverage q;
        q.is_signed = kind % 2 == 1, q.all_taps = kind >= 2;
        q.x_zero = q.is_signed ? -4 : 128, q.y_zero = q.is_signed ? -12 : 100;
        q.x_scale = v.x_scale, q.y_scale = v.y_scale;
        const std::int64_t plane = s.out[1] * s.out[2], size = 2 * v.h * v.w * v.channels;
        Guarded<std::uint8_t> x(size, 1, random_ints<std::uint8_t>(size, 1)), y(2 * plane * v.channels, 3);
        average_pool_bytes(q, s, x.data(), y.data());
        const float low = q.is_signed ? -128.0F : 0.0F;
        for (std::int64_t i = 0; i < 2 * plane * v.channels; ++i) {
          const std::int64_t c = i % v.channels, o = i / v.channels % plane, n = i / v.channels / plane;
          float sum = 0;
          std::int64_t count = 0;
          for (std::int64_t t = 0; t < v.kernel * v.kernel; ++t) {
            const std::int64_t iy = o / s.out[2] * v.stride - v.pad + t / v.kernel * v.dilation;
            const std::int64_t ix = o % s.out[2] * v.stride - v.pad + t % v.kernel * v.dilation;
            if (iy < 0 || iy >= v.h || ix < 0 || ix >= v.w) continue;
            sum += static_cast<float>(value(x[((n * v.h + iy) * v.w + ix) * v.channels + c], q.is_signed) - q.x_zero) * q.x_scale;
            ++count;
          }
          const float mean = sum / static_cast<float>(q.all_taps ? v.kernel * v.kernel : count) / q.y_scale;
          const float want = std::clamp(std::nearbyint(mean) + static_cast<float>(q.y_zero), low, low + 255.0F);
          ASSERT_EQ(static_cast<float>(value(y[i], q.is_signed)), want) << v.channels << " channels, kind " << kind << ": " << i;
        }
      }
    }
  });
}

TEST(KernelsQuantBytes, AveragesOfNothingAreZero) {
  ConvShape s;
  s.in_channels = 2;
  s.pad[2] = 1, s.out[2] = 2;  // the first output lies left of the image
  const std::int8_t x[2] = {7, 9};
  std::int8_t y[4] = {1, 1, 1, 1};
  average_pool_bytes({.is_signed = true, .x_zero = 3, .y_zero = -5}, s, x, y);
  EXPECT_EQ(y[1], -5);
  EXPECT_EQ(y[3], 1);
}

TEST(KernelsQuantBytes, WindowsOfNothingGiveTheLowest) {
  ConvShape s;
  s.in_channels = 2;
  s.pad[2] = 1, s.out[2] = 2;  // the first output lies left of the image
  const std::uint8_t x[2] = {7, 9};
  std::uint8_t y[4] = {1, 1, 1, 1};
  max_pool_bytes(s, x, false, y);
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[3], 9);
  max_pool_bytes(s, x, true, y);
  EXPECT_EQ(y[1], 0x80);
}

TEST(KernelsQuantBytes, Maps) {
  for_each_isa([] {
    const auto table = random_ints<std::uint8_t>(256, 9);
    for (const std::int64_t n : {0, 1, 31, 64, 127, 128, 300, 1000}) {
      std::vector<std::uint8_t> values = random_ints<std::uint8_t>(n, 1);
      for (std::int64_t i = 0; i < std::min<std::int64_t>(n, 256); ++i) values[static_cast<std::size_t>(i)] = i & 0xFF;
      Guarded<std::uint8_t> x(n, 1, values), y(n, 3);
      map_bytes(table.data(), x.data(), y.data(), n);
      for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], table[x[i]]) << i << " of " << n;
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
