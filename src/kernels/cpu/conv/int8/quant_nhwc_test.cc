#include "kernels/cpu/conv/int8/quant_nhwc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <map>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/int8/quant_nhwc_pack.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;
using test::random_ints;
using Bytes = std::vector<std::uint8_t>;

std::int32_t value(std::uint8_t v, bool is_signed) { return is_signed ? static_cast<std::int8_t>(v) : v; }

// A third of the values are extremes, so that saturating instructions would show.
Bytes bytes(std::int64_t n, unsigned seed, bool is_signed) {
  Bytes v = random_ints<std::uint8_t>(n, seed);
  for (std::size_t i = 0; i < v.size(); i += 3) v[i] = is_signed ? 0x80 : 0xFF;
  return v;
}

// Signed weights whose neighbours rarely sum to more than 128 in magnitude: sums of four dice, with some extremes in pairs.
Bytes small_weights(std::int64_t n, unsigned seed) {
  const Bytes dice = random_ints<std::uint8_t>(4 * n, seed);
  Bytes v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i) {
    int sum = 0;
    for (std::size_t j = 0; j < 4; ++j) sum += dice[4 * i + j] % 32 - 16;
    v[i] = static_cast<std::uint8_t>(sum);
    if (i % 700 < 2) v[i] = i % 1400 < 700 ? 0x80 : 0x7F;
  }
  return v;
}

// One value in 50 is at least 128 above the lowest value of its type.
Bytes low_bytes(std::int64_t n, unsigned seed, bool is_signed) {
  Bytes v = random_ints<std::uint8_t>(n, seed);
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (i % 50 != 7) v[i] &= 0x7F;
    if (is_signed) v[i] ^= 0x80;
  }
  return v;
}

struct Conv {
  std::int64_t batch, c, m, groups, h, w, kernel, stride, dilation, pad;
  std::int64_t tall = 0, down = 0;  // the kernel's height and the stride along it, where they differ
  auto operator<=>(const Conv&) const = default;
};

ConvShape shape_of(const Conv& v) {
  ConvShape s;
  s.batch = v.batch, s.in_channels = v.c, s.out_channels = v.m, s.groups = v.groups;
  s.in[1] = v.h, s.in[2] = v.w;
  for (int i = 1; i < 3; ++i) {
    s.kernel[i] = i == 1 && v.tall != 0 ? v.tall : v.kernel, s.stride[i] = i == 1 && v.down != 0 ? v.down : v.stride;
    s.dilation[i] = v.dilation, s.pad[i] = v.pad;
    s.out[i] = (s.in[i] + 2 * v.pad - (s.kernel[i] - 1) * v.dilation - 1) / s.stride[i] + 1;
  }
  return s;
}

struct Problem {
  Conv conv;
  Bytes pixels, weights;
  bool xs, ws;
  std::int32_t zero;
  std::vector<std::int32_t> weight_zeros, bias;  // a zero point for all channels or one each
  auto operator<=>(const Problem&) const = default;
};

std::vector<std::int32_t> exact_sums(const Problem& p) {
  const Conv& v = p.conv;
  const ConvShape s = shape_of(v);
  const std::int64_t cg = v.c / v.groups, mg = v.m / v.groups, taps = s.kernel[1] * s.kernel[2];
  std::vector<std::int32_t> sums(static_cast<std::size_t>(v.batch * s.out[1] * s.out[2] * v.m));
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(sums.size()); ++i) {
    const std::int64_t m = i % v.m, ox = i / v.m % s.out[2], oy = i / v.m / s.out[2] % s.out[1],
                       n = i / v.m / s.out[2] / s.out[1];
    const std::int32_t weight_zero = p.weight_zeros[p.weight_zeros.size() == 1 ? 0 : static_cast<std::size_t>(m)];
    std::int32_t sum = p.bias[static_cast<std::size_t>(m)];
    for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
      for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx) {
        const std::int64_t iy = oy * s.stride[1] - v.pad + ky * v.dilation, ix = ox * v.stride - v.pad + kx * v.dilation;
        if (iy < 0 || iy >= v.h || ix < 0 || ix >= v.w) continue;
        const std::uint8_t* x = p.pixels.data() + ((n * v.h + iy) * v.w + ix) * v.c + m / mg * cg;
        const std::uint8_t* w = p.weights.data() + m * cg * taps + ky * s.kernel[2] + kx;
        for (std::int64_t c = 0; c < cg; ++c) sum += (value(x[c], p.xs) - p.zero) * (value(w[c * taps], p.ws) - weight_zero);
      }
    }
    sums[static_cast<std::size_t>(i)] = sum;
  }
  return sums;
}

// Summing takes longer than the kernels: done once for all instruction sets.
const std::vector<std::int32_t>& known_sums(const Problem& p) {
  static std::map<Problem, std::vector<std::int32_t>> known;
  const auto [at, is_new] = known.try_emplace(p);
  if (is_new) at->second = exact_sums(p);
  return at->second;
}

// A zero point of 0 keeps s8 weights narrow, and 128 keeps u8 weights narrow; others make 16-bit panels.
// heavy: 0: weights are below 64; 1: of any size; 2: a third of them are extremes. low: 1: activations are declared low; 2: they
// are low.
void check(const Conv& v, bool xs, bool ws, std::int32_t xz, bool plain_zero, int low = 0, int heavy = 2) {
  SCOPED_TRACE("c " + std::to_string(v.c) + " m " + std::to_string(v.m) + " groups " + std::to_string(v.groups) + " kernel " +
               std::to_string(v.kernel) + " flags " + std::to_string(xs) + std::to_string(ws) + std::to_string(plain_zero));
  const ConvShape s = shape_of(v);
  const std::int64_t cg = v.c / v.groups, taps = s.kernel[1] * s.kernel[2];
  const std::int64_t count = v.batch * v.c * v.h * v.w, out = v.batch * s.out[1] * s.out[2] * v.m;
  const Bytes pixels = low == 2 ? low_bytes(count, 1, xs) : bytes(count, 1, xs);
  Guarded<std::uint8_t> x(count, 1, pixels);
  Bytes w = heavy == 2 ? bytes(v.m * cg * taps, 2, ws) : random_ints<std::uint8_t>(v.m * cg * taps, 2);
  for (std::size_t i = 0; heavy == 0 && i < w.size(); ++i) w[i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(w[i]) / 2);
  std::vector<std::int32_t> wz = random_ints<std::int32_t>(v.m, 3, ws ? -128 : 0, ws ? 127 : 255);
  if (plain_zero) wz = {ws ? 0 : 128};
  const std::vector<std::int32_t> bias = random_ints<std::int32_t>(v.m, 4, -500, 500);
  const std::vector<float> scale = random_floats(v.m, 5, 1e-4F, 2e-3F), bias_f = random_floats(v.m, 6);
  const QWeights weights{w.data(), ws, wz.data(), static_cast<std::int64_t>(wz.size()), false, low > 0, true};
  const bool wide = qnhwc_is_wide(s, weights);
  if (plain_zero) {
    EXPECT_EQ(wide, qnhwc_is_depthwise(s));
  }
  Guarded<std::uint8_t> packed(static_cast<std::int64_t>(qnhwc_packed_bytes(s, weights, wide)));
  qnhwc_pack(s, weights, wide, packed.data());
  Guarded<std::int32_t> i32(out, 1);
  Guarded<float> f32(out, 3);
  Guarded<std::uint8_t> u8(out, 5);
  Guarded<std::uint8_t> whole(out, 5);
  Guarded<std::int8_t> s8(out, 7);
  QEpilogue e;
  e.bias = bias.data();
  qnhwc_conv(s, x.data(), xs, xz, packed.data(), wide, e, i32.data());
  e.scale = scale.data(), e.scale_is_array = true, e.bias_f32 = bias_f.data();
  e.output = QEpilogue::Output::f32;
  qnhwc_conv(s, x.data(), xs, xz, packed.data(), wide, e, f32.data());
  e.output = QEpilogue::Output::u8, e.zero_point = 120, e.low = 120, e.high = 200;
  qnhwc_conv(s, x.data(), xs, xz, packed.data(), wide, e, u8.data());
  e.low = 0, e.high = 255;
  qnhwc_conv(s, x.data(), xs, xz, packed.data(), wide, e, whole.data());
  e.output = QEpilogue::Output::s8, e.zero_point = -3, e.low = -128, e.high = 127, e.scale_is_array = false;
  qnhwc_conv(s, x.data(), xs, xz, packed.data(), wide, e, s8.data());
  const std::vector<std::int32_t>& sums = known_sums({v, pixels, w, xs, ws, xz, wz, bias});
  for (std::int64_t i = 0; i < out; ++i) {
    const std::int64_t m = i % v.m;
    const std::int32_t sum = sums[static_cast<std::size_t>(i)];
    ASSERT_EQ(i32[i], sum) << i;
    const float real = static_cast<float>(sum) * scale[static_cast<std::size_t>(m)];
    ASSERT_NEAR(f32[i], real + bias_f[static_cast<std::size_t>(m)], 1e-6F * std::fabs(real) + 1e-6F);
    ASSERT_EQ(u8[i], std::clamp(std::nearbyint(real) + 120, 120.0F, 200.0F)) << i;
    ASSERT_EQ(whole[i], std::clamp(std::nearbyint(real) + 120, 0.0F, 255.0F)) << i;
    ASSERT_EQ(s8[i], std::clamp(std::nearbyint(static_cast<float>(sum) * scale[0]) - 3, -128.0F, 127.0F)) << i;
  }
}

const Conv kConvs[] = {
    {1, 3, 8, 1, 9, 11, 3, 1, 1, 1},
    {2, 4, 6, 2, 12, 13, 3, 2, 1, 1},
    {1, 16, 20, 1, 14, 14, 1, 1, 1, 0},
    {2, 5, 5, 5, 8, 9, 3, 1, 2, 2},
    {1, 24, 24, 24, 10, 9, 3, 2, 1, 1},
    {1, 19, 19, 19, 6, 7, 5, 1, 1, 2},
    {1, 3, 17, 1, 20, 31, 7, 2, 1, 3},
    {1, 67, 33, 1, 6, 6, 5, 1, 1, 2},
    {2, 8, 7, 1, 11, 6, 1, 2, 1, 0},
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0},
    {1, 6, 12, 6, 7, 7, 3, 1, 1, 1},
    {1, 33, 40, 1, 5, 4, 3, 1, 2, 2},
    {1, 600, 18, 1, 3, 5, 1, 1, 1, 0},
    {1, 32, 20, 1, 13, 9, 3, 1, 1, 1},
    {2, 48, 16, 1, 8, 11, 3, 1, 1, 0},
    {1, 144, 33, 1, 7, 6, 3, 1, 1, 1},
    {1, 32, 16, 1, 30, 41, 3, 1, 1, 2},
    {1, 2, 2, 2, 2, 3, 3, 3, 1, 2},
    {3, 32, 48, 1, 1, 1, 1, 1, 1, 0},
    // Depthwise 3x3: odd and even extents, blocks of channels that overlap, two columns, one, padding wider than the image.
    {2, 16, 16, 16, 7, 7, 3, 1, 1, 1},
    {1, 40, 40, 40, 21, 13, 3, 1, 1, 1},
    {1, 33, 33, 33, 11, 12, 3, 2, 1, 1},
    {1, 17, 17, 17, 3, 2, 3, 1, 1, 1},
    {1, 32, 32, 32, 5, 4, 3, 1, 1, 0},
    {1, 16, 16, 16, 2, 3, 3, 1, 1, 3},
    {1, 16, 16, 16, 4, 3, 3, 1, 1, 0},
    {2, 48, 48, 48, 12, 11, 3, 2, 1, 0},
    {1, 32, 32, 32, 6, 9, 3, 3, 1, 1},
    {2, 5, 5, 5, 9, 8, 3, 1, 1, 1},
    {1, 10, 10, 10, 11, 12, 3, 2, 1, 1},
    {1, 2, 2, 2, 2, 2, 3, 1, 1, 1},
    // Other depthwise shapes: even kernels, different strides, rows in parts, dilation along rows, and one that does not fit the
    // buffer.
    {2, 16, 16, 16, 7, 9, 5, 1, 1, 2},
    {1, 40, 40, 40, 12, 13, 5, 2, 1, 2},
    {1, 24, 24, 24, 9, 150, 5, 1, 1, 2},
    {1, 18, 18, 18, 11, 9, 7, 1, 1, 3},
    {1, 33, 33, 33, 6, 7, 2, 1, 1, 0},
    {1, 17, 17, 17, 8, 7, 4, 2, 1, 1},
    {2, 8, 8, 8, 12, 20, 3, 1, 1, 1, 3, 2},
    {1, 32, 32, 32, 9, 8, 5, 1, 1, 2, 3, 2},
    {1, 16, 16, 16, 3, 30, 7, 1, 3, 9, 1},
    {1, 16, 16, 16, 3, 250, 7, 1, 40, 120, 1},
    {1, 20, 20, 20, 5, 4, 1, 1, 1, 0, 6},
    {1, 16, 16, 16, 6, 6, 5, 3, 1, 4},
    {1, 64, 64, 64, 9, 10, 5, 1, 1, -1},
    // Four, two and one block of channels at a time, and one that overlaps.
    {1, 64, 64, 64, 6, 5, 3, 1, 1, 1},
    {2, 112, 112, 112, 5, 6, 3, 1, 1, 1},
    {1, 121, 121, 121, 7, 9, 3, 2, 1, 1},
    {1, 96, 96, 96, 6, 8, 3, 2, 1, 0},
    // The same with other shapes: all places of a quad, lines in parts, one row, and more rows between outputs than taps.
    {2, 88, 88, 88, 11, 9, 5, 1, 1, 2},
    {1, 121, 121, 121, 12, 75, 5, 2, 1, 2},
    {1, 64, 64, 64, 9, 140, 7, 1, 1, 3},
    {1, 200, 200, 200, 6, 21, 5, 1, 1, 2, 5, 2},
    {1, 80, 80, 80, 13, 6, 3, 2, 1, 1, 2, 3},
    {1, 48, 48, 48, 30, 5, 2, 1, 1, 1, 3, 5},
    {1, 66, 66, 66, 1, 6, 4, 1, 1, 2},
    // Cropped; and more single taps than their list holds.
    {1, 8, 16, 1, 9, 10, 3, 1, 1, -1},
    {1, 64, 64, 64, 9, 10, 3, 1, 1, -1},
    {1, 5, 20, 1, 10, 9, 9, 1, 2, 8},
    // Steps of 64 channels, which tiles read from a padded image: several images, dilation, and padding wider than the image or
    // none.
    {2, 64, 40, 1, 7, 7, 3, 1, 1, 1},
    {1, 128, 33, 1, 12, 15, 3, 1, 2, 2},
    {1, 64, 16, 1, 2, 9, 3, 1, 1, 2},
    {3, 64, 31, 1, 8, 8, 5, 1, 1, 0},
    // The same with stride 2: odd and even extents, dilation, padding wider than a line's end.
    {2, 64, 40, 1, 14, 15, 3, 2, 1, 1},
    {1, 128, 33, 1, 15, 14, 3, 2, 1, 1},
    {1, 64, 16, 1, 13, 17, 5, 2, 2, 3},
    {2, 64, 20, 1, 9, 8, 2, 2, 1, 0},
    // Groups of 4, 8, 16, 32 and 48 outputs: of as many inputs, fewer and more; last vectors and panels that are not full;
    // stride, dilation, padding wider than the image, lines of one pixel.
    {1, 32, 32, 8, 9, 7, 3, 1, 1, 1},
    {2, 12, 12, 3, 8, 9, 3, 2, 1, 1},
    {1, 48, 48, 6, 13, 11, 3, 1, 1, 1},
    {1, 24, 24, 3, 5, 30, 5, 1, 1, 2},
    {2, 64, 64, 4, 7, 7, 3, 1, 1, 1},
    {1, 48, 48, 3, 6, 5, 3, 1, 2, 2},
    {1, 64, 64, 2, 10, 3, 3, 2, 1, 1},
    {1, 8, 96, 2, 5, 6, 3, 1, 1, 3},
    {1, 64, 16, 4, 6, 5, 3, 1, 1, 1},
    {1, 40, 16, 2, 4, 1, 1, 1, 1, 0},
    {2, 16, 8, 4, 40, 3, 3, 1, 1, 1},
};

TEST(KernelsQuantNhwc, ConvolutionIsExact) {
  for_each_isa([] {
    for (const Conv& v : kConvs) {
      for (int bits = 0; bits < 8; ++bits) {
        const bool xs = (bits & 1) != 0;
        check(v, xs, (bits & 2) != 0, xs ? -7 : 131, (bits & 4) != 0);
        if (::testing::Test::HasFatalFailure()) return;
      }
      check(v, false, true, 0, true);
      check(v, false, true, 255, true);
    }
  });
}

// Weights of all sizes: some quads find no partner, and some columns consist of extremes.
TEST(KernelsQuantNhwc, LowActivationsAreExact) {
  const Conv convs[] = {
      {1, 96, 48, 1, 5, 6, 1, 1, 1, 0},  {2, 101, 53, 1, 7, 5, 1, 1, 1, 0},  {1, 256, 48, 1, 9, 7, 1, 2, 1, 0},
      {1, 33, 52, 1, 9, 11, 3, 2, 1, 1}, {1, 99, 50, 1, 1, 1, 1, 1, 1, 0},   {1, 40, 56, 1, 8, 9, 5, 2, 2, 4},
      {1, 301, 65, 1, 4, 3, 1, 1, 1, 0}, {1, 1100, 49, 1, 3, 2, 1, 1, 1, 0}, {1, 128, 64, 1, 40, 30, 1, 1, 1, 0},
      {1, 95, 48, 1, 4, 4, 1, 1, 1, 0},  {1, 96, 47, 1, 4, 4, 1, 1, 1, 0},
  };
  for_each_isa([&] {
    for (const Conv& v : convs) {
      for (const int low : {1, 2}) {
        for (const bool xs : {false, true}) {
          for (const std::int32_t zero : {0, 3}) {
            for (const int heavy : {0, 1, 2}) check(v, xs, true, zero - (xs ? 128 : 0), true, low, heavy);
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
        check(v, false, false, 0, true, low);
      }
    }
  });
  for (const int threads : {2, 3}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    check({1, 128, 96, 1, 30, 31, 1, 1, 1, 0}, false, true, 2, true, 2, 0);
  }
}

// More rows than are gathered at once, and lines wider than the first-level cache holds at once.
TEST(KernelsQuantNhwc, ManyRowsAreExact) {
  for_each_isa([] {
    check({1, 130, 40, 1, 24, 26, 3, 1, 1, 1}, false, true, 77, true);
    check({1, 64, 64, 64, 5, 250, 3, 1, 1, 1}, true, true, 5, true);
    check({1, 80, 80, 80, 5, 250, 3, 2, 1, 1}, false, true, 100, true);
    check({1, 32, 32, 32, 4, 131, 3, 1, 1, 1}, false, true, 100, true);
    check({1, 16, 16, 16, 7, 245, 3, 2, 1, 1}, false, true, 100, true);
  });
}

TEST(KernelsQuantNhwc, ThreadCountsAgree) {
  for (const int threads : {2, 3}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    check({1, 64, 96, 1, 30, 31, 3, 1, 1, 1}, false, true, 128, true);
    check({1, 64, 64, 64, 40, 41, 3, 1, 1, 1}, false, true, 100, true);
    check({2, 272, 272, 272, 9, 10, 3, 1, 1, 1}, true, true, 5, true);
    check({1, 48, 48, 48, 50, 61, 3, 2, 1, 1}, false, false, 100, false);
    check({1, 512, 300, 1, 3, 3, 3, 1, 1, 1}, false, true, 3, true);
    check({1, 160, 24, 1, 40, 41, 3, 1, 1, 1}, false, true, 77, true);
  }
}

// Multiplies m x k by k x n and checks the results as int32, floats and bytes.
void check_product(std::int64_t m, std::int64_t n, std::int64_t k, bool is_signed, bool small = false) {
  SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(k) + " x " + std::to_string(n) + (is_signed ? " signed" : ""));
  const std::int64_t lda = k % 8 == 0 ? k : k + 3, ldc = n + 2, zero = is_signed ? -7 : 93;
  Guarded<std::uint8_t> a((m - 1) * lda + k, 1, bytes((m - 1) * lda + k, 1, is_signed));
  const Bytes b = small ? small_weights(n * k, 2) : bytes(n * k, 2, true);
  const QWeights weights{b.data(), true, nullptr, 0};
  const ConvShape s = matrix_shape(k, n);
  Guarded<std::uint8_t> packed(static_cast<std::int64_t>(qnhwc_packed_bytes(s, weights, false)));
  qnhwc_pack(s, weights, false, packed.data());
  const QMatrix matrix{a.data(), is_signed, lda, m, k, static_cast<std::int32_t>(zero)};
  Guarded<std::int32_t> c((m - 1) * ldc + n, 1);
  qnhwc_product(matrix, n, packed.data(), false, QEpilogue{}, c.data(), ldc);
  const std::vector<float> scale = random_floats(n, 5, 1e-4F, 2e-3F);
  Guarded<float> f32((m - 1) * ldc + n, 1);
  Guarded<std::uint8_t> u8((m - 1) * ldc + n, 1);
  QEpilogue e;
  e.scale = scale.data(), e.scale_is_array = true;
  e.output = QEpilogue::Output::f32;
  qnhwc_product(matrix, n, packed.data(), false, e, f32.data(), ldc);
  e.output = QEpilogue::Output::u8, e.zero_point = 90, e.low = 0, e.high = 255;
  qnhwc_product(matrix, n, packed.data(), false, e, u8.data(), ldc);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      std::int32_t sum = 0;
      for (std::int64_t p = 0; p < k; ++p) {
        sum += (value(a[i * lda + p], is_signed) - static_cast<std::int32_t>(zero)) *
               static_cast<std::int8_t>(b[static_cast<std::size_t>(j * k + p)]);
      }
      ASSERT_EQ(c[i * ldc + j], sum) << i << " " << j;
      const float real = static_cast<float>(sum) * scale[static_cast<std::size_t>(j)];
      ASSERT_EQ(f32[i * ldc + j], real) << i << " " << j;
      ASSERT_EQ(u8[i * ldc + j], std::clamp(std::nearbyint(real) + 90, 0.0F, 255.0F)) << i << " " << j;
    }
    if (i + 1 < m) {
      ASSERT_EQ(c[i * ldc + n], 0) << "wrote between rows";
      ASSERT_EQ(f32[i * ldc + n], 0) << "wrote between rows";
      ASSERT_EQ(u8[i * ldc + n], 0) << "wrote between rows";
    }
  }
}

TEST(KernelsQuantNhwc, ProductsAreExact) {
  for_each_isa([] {
    for (const bool is_signed : {false, true}) {
      // Fewer rows than a tile, whole tiles, and overlapping tiles; the last count does not fit one block.
      for (const std::int64_t m : {1, 5, 9, 16, 17, 40, 300}) {
        for (const std::int64_t n : {1, 16, 35}) {
          for (const std::int64_t k : {1, 31, 64, 100, 1100}) {
            if (m == 300 && k > 100) continue;
            check_product(m, n, k, is_signed);
          }
        }
      }
    }
  });
}

TEST(KernelsQuantNhwc, ProductsOfSmallWeightsAreExact) {
  for_each_isa([] {
    for (const bool is_signed : {false, true}) {
      for (const std::int64_t m : {1, 5, 6, 13, 100}) {
        for (const std::int64_t n : {1, 16, 35}) {
          for (const std::int64_t k : {31, 32, 100, 1101, 3072}) check_product(m, n, k, is_signed, true);
        }
      }
    }
  });
}

// More rows than a block of tiles holds: short rows and long ones.
TEST(KernelsQuantNhwc, ManyRows) {
  for_each_isa([] {
    check_product(9001, 3, 36, false);
    check_product(130, 40, 3001, false);
  });
}

}  // namespace
}  // namespace sdx::cpu
