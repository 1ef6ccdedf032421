#include "kernels/cpu/quant/quant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;
using test::random_ints;
using Bytes = std::vector<std::uint8_t>;

std::int32_t value(std::uint8_t v, bool is_signed) { return is_signed ? static_cast<std::int8_t>(v) : v; }

double round_even(double v) { return std::nearbyint(v); }

// Quotients close to the middle between two integers, where a product by the inverse would round the other way.
TEST(KernelsQuant, QuantizeDividesExactly) {
  for_each_isa([] {
    for (const float scale : {0.1F, 0.0125F, 3.3F, 1.0F / 127.0F, 1e-35F}) {
      std::vector<float> v;
      for (int i = -130; i < 130; ++i) {
        float x = (static_cast<float>(i) + 0.5F) * scale;
        for (int back = 0; back < 3; ++back) x = std::nextafter(x, -1e38F);
        for (int step = 0; step < 7; ++step, x = std::nextafter(x, 1e38F)) v.push_back(x);
      }
      const auto n = static_cast<std::int64_t>(v.size());
      Guarded<float> x(n, 1, v);
      Guarded<std::int8_t> s(n, 7);
      quantize_s8(x.data(), s.data(), n, scale, 0);
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_EQ(s[i], std::clamp(round_even(static_cast<double>(x[i] / scale)), -128.0, 127.0)) << x[i] << " / " << scale;
    }
  });
}

TEST(KernelsQuant, QuantizeAndBack) {
  for_each_isa([] {
    for (const std::int64_t n : {1, 7, 16, 33, 1000}) {
      std::vector<float> v = random_floats(n, 1, -3, 3);
      v[0] = 1e30F;
      Guarded<float> x(n, 1, v), back(n, 3);
      Guarded<std::uint8_t> u(n, 5);
      Guarded<std::int8_t> s(n, 7);
      quantize_u8(x.data(), u.data(), n, 0.0125F, 117);
      quantize_s8(x.data(), s.data(), n, 0.0125F, -5);
      for (std::int64_t i = 0; i < n; ++i) {
        const double q = round_even(static_cast<double>(x[i] / 0.0125F));
        ASSERT_EQ(u[i], std::clamp(q + 117, 0.0, 255.0));
        ASSERT_EQ(s[i], std::clamp(q - 5, -128.0, 127.0));
      }
      dequantize_u8(u.data(), back.data(), n, 0.0125F, 117);
      for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(back[i], static_cast<float>(u[i] - 117) * 0.0125F);
      dequantize_s8(s.data(), back.data(), n, 0.0125F, -5);
      for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(back[i], static_cast<float>(s[i] + 5) * 0.0125F);
      float lo = 0, hi = 0;
      min_max_f32(x.data(), n, &lo, &hi);
      ASSERT_EQ(lo, *std::min_element(v.begin(), v.end()));
      ASSERT_EQ(hi, *std::max_element(v.begin(), v.end()));
    }
    const float odd[4] = {0.5F, 1.5F, -0.5F, std::numeric_limits<float>::quiet_NaN()};
    std::int8_t s[4];
    quantize_s8(odd, s, 4, 1.0F, 0);
    EXPECT_EQ(s[0], 0);
    EXPECT_EQ(s[1], 2);
    EXPECT_EQ(s[2], 0);
    EXPECT_EQ(s[3], -128);
    // The same in whole vectors, with values beyond int32.
    const float inf = std::numeric_limits<float>::infinity();
    const float wide[8] = {odd[3], inf, -inf, 3e38F, -3e38F, 5e9F, 0.5F, -0.5F};
    const int want[8] = {0, 255, 0, 255, 0, 255, 100, 100};
    float many[64];
    std::uint8_t u[64];
    for (int i = 0; i < 64; ++i) many[i] = wide[i % 8];
    quantize_u8(many, u, 64, 1.0F, 100);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(u[i], want[i % 8]) << i;
  });
}

TEST(KernelsQuant, ExtremesOfManyValues) {
  for_each_isa([] {
    for (const std::int64_t n : {31, 100003}) {
      std::vector<float> v = random_floats(n, 1, -3, 3);
      v[static_cast<std::size_t>(n) - 1] = -7;
      v[static_cast<std::size_t>(n) / 2] = 8;
      for (std::size_t i = 0; i < v.size() / 2; i += 3) v[i] = std::numeric_limits<float>::quiet_NaN();
      Guarded<float> x(n, 1, v);
      float lo = 0, hi = 0;
      min_max_f32(x.data(), n, &lo, &hi);
      EXPECT_EQ(lo, -7);
      EXPECT_EQ(hi, 8);
      for (float& f : v) f = std::numeric_limits<float>::quiet_NaN();
      Guarded<float> none(n, 1, v);
      min_max_f32(none.data(), n, &lo, &hi);
      EXPECT_TRUE(std::isnan(lo) && std::isnan(hi));
    }
  });
}

TEST(KernelsQuant, ConvolutionIsExact) {
  struct Conv {
    std::int64_t c, m, groups, h, w, kernel, stride, dilation, pad;
  };
  for_each_isa([] {
    for (const Conv& v : {Conv{3, 8, 1, 9, 11, 3, 1, 1, 1}, Conv{4, 6, 2, 12, 13, 3, 2, 1, 1},
                          Conv{16, 20, 1, 14, 14, 1, 1, 1, 0}, Conv{5, 5, 5, 8, 9, 3, 1, 2, 2}, Conv{3, 6, 3, 40, 37, 3, 2, 1, 1},
                          Conv{2, 2, 2, 9, 400, 5, 1, 1, 2}, Conv{2, 2, 2, 30, 33, 17, 1, 1, 8}, Conv{2, 2, 2, 2, 3, 3, 3, 1, 2},
                          Conv{3, 4, 1, 20, 31, 7, 2, 1, 3}, Conv{64, 10, 1, 6, 6, 5, 1, 1, 2}, Conv{4, 8, 4, 19, 33, 3, 1, 1, 1},
                          Conv{3, 3, 3, 14, 15, 5, 2, 1, 2}, Conv{8, 7, 1, 40, 37, 1, 2, 1, 0}}) {
      for (int bits = 0; bits < 4; ++bits) {
        const bool xs = (bits & 1) != 0, ws = (bits & 2) != 0;
        ConvShape s;
        s.batch = 2, s.in_channels = v.c, s.out_channels = v.m, s.groups = v.groups;
        s.in[1] = v.h, s.in[2] = v.w;
        for (int i = 1; i < 3; ++i) {
          s.kernel[i] = v.kernel, s.stride[i] = v.stride, s.dilation[i] = v.dilation, s.pad[i] = v.pad;
          s.out[i] = (s.in[i] + 2 * v.pad - (v.kernel - 1) * v.dilation - 1) / v.stride + 1;
        }
        const std::int64_t cg = v.c / v.groups, mg = v.m / v.groups, plane = s.out[1] * s.out[2];
        Guarded<std::uint8_t> x(2 * v.c * v.h * v.w, 1, random_ints<std::uint8_t>(2 * v.c * v.h * v.w, 1));
        const Bytes w = random_ints<std::uint8_t>(v.m * cg * v.kernel * v.kernel, 2);
        const std::int32_t xz = xs ? -7 : 131;
        const std::vector<std::int32_t> wz = random_ints<std::int32_t>(v.m, 3, ws ? -9 : 100, ws ? 9 : 150);
        const std::vector<std::int32_t> bias = random_ints<std::int32_t>(v.m, 4, -500, 500);
        const std::vector<float> scale = random_floats(v.m, 5, 1e-3F, 2e-3F);
        Guarded<std::uint8_t> packed(static_cast<std::int64_t>(qconv_packed_bytes(s)));
        qconv_pack(s, w.data(), ws, wz.data(), v.m, packed.data());
        Guarded<std::int32_t> y(2 * v.m * plane, 1);
        Guarded<std::uint8_t> q(2 * v.m * plane, 1);
        QEpilogue e;
        e.per_row = true, e.bias = bias.data();
        qconv(s, x.data(), xs, xz, packed.data(), e, y.data());
        e.output = QEpilogue::Output::u8, e.scale = scale.data(), e.scale_is_array = true, e.zero_point = 120;
        qconv(s, x.data(), xs, xz, packed.data(), e, q.data());
        for (std::int64_t i = 0; i < 2 * v.m * plane; ++i) {
          const std::int64_t m = i / plane % v.m, n = i / plane / v.m, oy = i % plane / s.out[2], ox = i % s.out[2];
          std::int32_t sum = bias[static_cast<std::size_t>(m)];
          for (std::int64_t c = 0; c < cg; ++c) {
            for (std::int64_t ky = 0; ky < v.kernel; ++ky) {
              for (std::int64_t kx = 0; kx < v.kernel; ++kx) {
                const std::int64_t iy = oy * v.stride - v.pad + ky * v.dilation, ix = ox * v.stride - v.pad + kx * v.dilation;
                if (iy < 0 || iy >= v.h || ix < 0 || ix >= v.w) continue;
                const std::int64_t channel = n * v.c + m / mg * cg + c;
                sum += (value(x[(channel * v.h + iy) * v.w + ix], xs) - xz) *
                       (value(w[static_cast<std::size_t>(((m * cg + c) * v.kernel + ky) * v.kernel + kx)], ws) -
                        wz[static_cast<std::size_t>(m)]);
              }
            }
          }
          ASSERT_EQ(y[i], sum) << i;
          const double r = round_even(static_cast<float>(sum) * scale[static_cast<std::size_t>(m)]);
          ASSERT_EQ(q[i], std::clamp(r + 120, 0.0, 255.0)) << i;
        }
      }
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
