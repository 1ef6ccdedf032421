#include "kernels/cpu/quant/quant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
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

struct Case {
  std::int64_t m, n, k;
};

void check(const Case& c, bool a_signed, bool b_signed, bool pack_a, bool pack_b, bool trans, bool arrays) {
  SCOPED_TRACE("m " + std::to_string(c.m) + " n " + std::to_string(c.n) + " k " + std::to_string(c.k) + " flags " +
               std::to_string(a_signed) + std::to_string(b_signed) + std::to_string(pack_a) + std::to_string(pack_b) +
               std::to_string(trans) + std::to_string(arrays));
  const std::int64_t lda = c.k + 1, ldb = (trans ? c.k : c.n) + 2;
  const std::int64_t rows_b = trans ? c.n : c.k;
  // Extreme values, so that saturating instructions would show.
  Bytes av = random_ints<std::uint8_t>(c.m * lda, 1), bv = random_ints<std::uint8_t>(rows_b * ldb, 2);
  for (std::size_t i = 0; i < av.size(); i += 3) av[i] = a_signed ? 0x80 : 0xFF;
  for (std::size_t i = 0; i < bv.size(); i += 2) bv[i] = b_signed ? 0x80 : 0xFF;
  Guarded<std::uint8_t> a((c.m - 1) * lda + c.k, 1, av), b((rows_b - 1) * ldb + (trans ? c.k : c.n), 3, bv);
  const std::vector<std::int32_t> az = random_ints<std::int32_t>(c.m, 3, a_signed ? -128 : 0, a_signed ? 127 : 255);
  const std::vector<std::int32_t> bz = random_ints<std::int32_t>(c.n, 4, b_signed ? -128 : 0, b_signed ? 127 : 255);
  const std::vector<std::int32_t> bias = random_ints<std::int32_t>(c.n, 5, -1000, 1000);
  const std::vector<float> scale = random_floats(c.n, 6, 1e-4F, 3e-3F);
  const std::vector<float> bias_f = random_floats(c.n, 7);
  Guarded<std::uint8_t> pa(static_cast<std::int64_t>(packed_qa_bytes(c.m, c.k))),
      pb(static_cast<std::int64_t>(packed_qb_bytes(c.k, c.n)));
  QGemmArgs g;
  g.m = c.m, g.n = c.n, g.k = c.k;
  if (pack_a) {
    pack_qa(a.data(), a_signed, lda, c.m, c.k, az.data(), arrays ? c.m : 1, pa.data());
    g.packed_a = pa.data();
  } else {
    g.a = a.data(), g.lda = lda, g.a_signed = a_signed, g.a_zero = az[0];
    if (arrays) g.a_zeros = az.data();
  }
  g.b_signed = b_signed, g.b_zero = bz[0];
  if (arrays) g.b_zeros = bz.data();
  if (pack_b) {
    pack_qb(b.data(), b_signed, ldb, trans, c.k, c.n, pb.data());
    g.packed_b = pb.data();
  } else {
    g.b = b.data(), g.ldb = ldb, g.trans_b = trans;
  }
  const std::int64_t ldc = c.n + 1;
  Guarded<std::int32_t> i32(c.m * ldc, 1);
  Guarded<float> f32(c.m * ldc, 1);
  Guarded<std::uint8_t> u8(c.m * ldc, 1);
  Guarded<std::int8_t> s8(c.m * ldc, 1);
  g.ldc = ldc;
  g.c = i32.data();
  qgemm(g);
  g.epilogue.bias = bias.data();
  g.epilogue.scale = scale.data();
  g.epilogue.scale_is_array = arrays;
  g.epilogue.bias_f32 = bias_f.data();
  g.epilogue.output = QEpilogue::Output::f32;
  g.c = f32.data();
  qgemm(g);
  g.epilogue.output = QEpilogue::Output::u8;
  g.epilogue.zero_point = 100;
  g.epilogue.low = 100;
  g.c = u8.data();
  qgemm(g);
  g.epilogue.output = QEpilogue::Output::s8;
  g.epilogue.zero_point = 3;
  g.epilogue.low = -128, g.epilogue.high = 127;
  g.c = s8.data();
  qgemm(g);
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < c.k; ++k) {
        sum += static_cast<std::int64_t>(value(a[i * lda + k], a_signed) - az[static_cast<std::size_t>(arrays ? i : 0)]) *
               (value(trans ? b[j * ldb + k] : b[k * ldb + j], b_signed) - bz[static_cast<std::size_t>(arrays ? j : 0)]);
      }
      const auto at = i * ldc + j;
      ASSERT_EQ(i32[at], sum) << i << "," << j;
      const auto v = static_cast<std::int32_t>(sum + bias[static_cast<std::size_t>(j)]);
      const float sc = scale[static_cast<std::size_t>(arrays ? j : 0)];
      ASSERT_NEAR(f32[at], static_cast<double>(v) * sc + bias_f[static_cast<std::size_t>(j)],
                  1e-6 * std::fabs(static_cast<double>(v) * sc) + 1e-6);
      const double q = round_even(static_cast<float>(v) * sc);
      ASSERT_EQ(u8[at], std::clamp(q + 100, 100.0, 255.0));
      ASSERT_EQ(s8[at], std::clamp(q + 3, -128.0, 127.0));
    }
  }
}

TEST(KernelsQuant, ProductsAreExact) {
  for_each_isa([] {
    for (const Case& c : {Case{1, 1, 1}, Case{1, 33, 5}, Case{6, 16, 8}, Case{7, 17, 31}, Case{13, 40, 64}, Case{50, 70, 33},
                          Case{3, 300, 700}}) {
      for (int bits = 0; bits < 64; ++bits) {
        check(c, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0, (bits & 32) != 0);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
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

// A holds 16-bit codes whose sums nearly fill 32 bits.
void check_codes(const Case& c, bool b_signed) {
  SCOPED_TRACE("m " + std::to_string(c.m) + " n " + std::to_string(c.n) + " k " + std::to_string(c.k));
  const std::int64_t lda = c.k + 3;
  const auto factor = static_cast<float>(std::min<std::int64_t>(32767, 2147483647 / (255 * c.k)));
  std::vector<float> values = random_floats(c.m * lda, 1, -1, 1);
  values[0] = 1;
  Guarded<float> a((c.m - 1) * lda + c.k, 1, std::vector<float>(values.begin(), values.end() - 3));
  Guarded<std::uint8_t> b(c.k * c.n, 3, random_ints<std::uint8_t>(c.k * c.n, 2));
  const std::vector<std::int32_t> zeros = random_ints<std::int32_t>(c.n, 4, b_signed ? -128 : 0, b_signed ? 127 : 255);
  Guarded<std::uint8_t> pa(static_cast<std::int64_t>(packed_qa_bytes(c.m, c.k))),
      pb(static_cast<std::int64_t>(packed_qb_bytes(c.k, c.n)));
  pack_qa_f32(a.data(), lda, c.m, c.k, factor, pa.data());
  pack_qb(b.data(), b_signed, c.n, false, c.k, c.n, pb.data());
  Guarded<std::int32_t> sums(c.m * c.n, 1);
  QGemmArgs g;
  g.m = c.m, g.n = c.n, g.k = c.k;
  g.packed_a = pa.data(), g.packed_b = pb.data();
  g.b_signed = b_signed, g.b_zeros = zeros.data();
  g.c = sums.data(), g.ldc = c.n;
  qgemm(g);
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < c.k; ++k) {
        sum += round_even(static_cast<double>(a[i * lda + k] * factor)) *
               (value(b[k * c.n + j], b_signed) - zeros[static_cast<std::size_t>(j)]);
      }
      ASSERT_EQ(sums[i * c.n + j], sum) << i << "," << j;
    }
  }
}

TEST(KernelsQuant, ProductsOfCodesAreExact) {
  for_each_isa([] {
    for (const Case& c :
         {Case{1, 1, 1}, Case{1, 33, 5}, Case{1, 64, 256}, Case{2, 17, 31}, Case{13, 40, 64}, Case{30, 20, 511}}) {
      for (const bool b_signed : {false, true}) check_codes(c, b_signed);
    }
    const float odd[4] = {2, -2, 1e30F, std::numeric_limits<float>::quiet_NaN()};
    const std::uint8_t ones[4] = {1, 1, 1, 1};
    Guarded<std::uint8_t> pa(static_cast<std::int64_t>(packed_qa_bytes(1, 3))),
        pb(static_cast<std::int64_t>(packed_qb_bytes(3, 1)));
    pack_qa_f32(odd, 4, 1, 3, 20000, pa.data());  // saturates; whatever NaN gives, it does no harm
    pack_qb(ones, true, 1, false, 3, 1, pb.data());
    std::int32_t sum = 0;
    QGemmArgs g;
    g.m = 1, g.n = 1, g.k = 3;
    g.packed_a = pa.data(), g.packed_b = pb.data();
    g.c = &sum, g.ldc = 1;
    qgemm(g);
    EXPECT_EQ(sum, 32767 - 32768 + 32767);
    pack_qa_f32(odd + 3, 1, 1, 1, 1, pa.data());
  });
}

TEST(KernelsQuant, ThreadCountsAgree) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    check({100, 120, 150}, false, true, false, true, false, true);
    check({100, 120, 150}, true, false, true, false, false, false);
  }
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
