#include "kernels/cpu/channels_last/depthwise_last.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/thread_pool.h"
#include "support/conv_problems.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;

ConvShape depthwise(std::int64_t batch, std::int64_t c, const test::Axis& h, const test::Axis& w) {
  return test::conv_shape(batch, c, c, c, h, w);
}

double one_output(const ConvShape& s, const std::vector<float>& x, const std::vector<float>& w, std::int64_t n, std::int64_t oy,
                  std::int64_t ox, std::int64_t c) {
  double sum = 0;
  for (std::int64_t ky = 0; ky < s.kernel[1]; ++ky) {
    for (std::int64_t kx = 0; kx < s.kernel[2]; ++kx) {
      const std::int64_t iy = oy * s.stride[1] - s.pad[1] + ky * s.dilation[1];
      const std::int64_t ix = ox * s.stride[2] - s.pad[2] + kx * s.dilation[2];
      if (iy < 0 || iy >= s.in[1] || ix < 0 || ix >= s.in[2]) continue;
      sum += static_cast<double>(x[static_cast<std::size_t>(((n * s.in[1] + iy) * s.in[2] + ix) * s.in_channels + c)]) *
             w[static_cast<std::size_t>((c * s.kernel[1] + ky) * s.kernel[2] + kx)];
    }
  }
  return sum;
}

void check(const ConvShape& s, const UnarySpec& act, bool with_bias, bool with_residual) {
  ASSERT_TRUE(depthwise_last_supports(s));
  const std::int64_t c = s.in_channels, nx = s.batch * s.in[1] * s.in[2] * c, ny = s.batch * s.out[1] * s.out[2] * c,
                     nw = c * s.kernel[1] * s.kernel[2];
  const std::vector<float> xv = random_floats(nx, 1), wv = random_floats(nw, 2), bv = random_floats(c, 3),
                           zv = random_floats(ny, 4);
  Guarded<float> x(nx, 1, xv), bias(c, 2, bv), z(ny, 3, zv), packed(nw, 1), y(ny, 3);
  std::vector<char> raw(static_cast<std::size_t>(nw) * 4 + 1);  // weights may lie anywhere in a file
  std::memcpy(raw.data() + 1, wv.data(), static_cast<std::size_t>(nw) * 4);
  ASSERT_EQ(depthwise_last_packed_bytes(s), static_cast<std::size_t>(nw) * 4);
  depthwise_last_pack_f32(s, raw.data() + 1, packed.data());
  depthwise_last_f32(s, x.data(), packed.data(), with_bias ? bias.data() : nullptr, with_residual ? z.data() : nullptr, act,
                     y.data());
  std::int64_t i = 0;
  for (std::int64_t pixel = 0; pixel < s.batch * s.out[1] * s.out[2]; ++pixel) {
    for (std::int64_t k = 0; k < c; ++k, ++i) {
      double want = one_output(s, xv, wv, pixel / s.out[2] / s.out[1], pixel / s.out[2] % s.out[1], pixel % s.out[2], k);
      if (with_bias) want += bv[static_cast<std::size_t>(k)];
      if (with_residual) want += zv[static_cast<std::size_t>(i)];
      if (act.op == Unary::relu) want = std::max(0.0, want);
      if (act.op == Unary::clip) want = std::clamp(want, static_cast<double>(act.a), static_cast<double>(act.b));
      if (act.op == Unary::tanh) want = std::tanh(want);
      ASSERT_NEAR(y.data()[i], want, 1e-5) << "element " << i;
    }
  }
}

TEST(DepthwiseLast, AnyWindowAndCountOfChannels) {
  for_each_isa([] {
    for (const ConvShape& s : {
             depthwise(1, 32, {7, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}), depthwise(2, 21, {5, 3, 1, 1, 1, 1}, {6, 3, 1, 1, 1, 1}),
             depthwise(1, 3, {9, 5, 1, 1, 2, 2}, {8, 5, 1, 1, 2, 2}), depthwise(1, 17, {8, 7, 1, 1, 3, 3}, {12, 7, 1, 1, 3, 3}),
             depthwise(2, 40, {9, 3, 2, 1, 1, 1}, {11, 3, 2, 1, 1, 0}), depthwise(1, 16, {9, 3, 1, 2, 2, 2}, {10, 3, 1, 2, 2, 2}),
             depthwise(1, 24, {12, 3, 2, 2, 2, 2}, {13, 3, 2, 2, 2, 2}),  // outputs and taps move alike
             depthwise(1, 9, {4, 1, 1, 1, 0, 0}, {5, 1, 1, 1, 0, 0}), depthwise(1, 8, {6, 2, 2, 1, 0, 0}, {9, 4, 3, 1, 1, 2}),
             depthwise(1, 8, {2, 3, 1, 1, 4, 4}, {3, 3, 1, 1, 5, 4}),  // windows in the padding alone
             depthwise(1, 8, {9, 3, 1, 1, -2, -1}, {9, 3, 1, 1, -1, 0}),
             depthwise(1, 300, {1, 1, 1, 1, 0, 0}, {40, 3, 1, 1, 1, 1}),  // activations are applied in parts of a row
         }) {
      for (const bool residual : {false, true}) {
        check(s, {}, residual, residual);
        check(s, {Unary::relu}, true, residual);
        check(s, {Unary::clip, -0.5F, 0.75F}, true, residual);
        check(s, {Unary::tanh}, true, residual);
      }
    }
  });
}

TEST(DepthwiseLast, ThreadsDoNotChangeResults) {
  const ConvShape s = depthwise(2, 48, {33, 3, 1, 1, 1, 1}, {29, 3, 1, 1, 1, 1});
  const std::int64_t n = s.batch * s.in[1] * s.in[2] * s.in_channels;
  const std::vector<float> x = random_floats(n, 1), w = random_floats(s.in_channels * 9, 2);
  std::vector<float> packed(w.size()), one(x.size()), four(x.size());
  depthwise_last_pack_f32(s, w.data(), packed.data());
  depthwise_last_f32(s, x.data(), packed.data(), nullptr, nullptr, {}, one.data());
  ThreadPool pool(4);
  const PoolScope scope(pool);
  depthwise_last_f32(s, x.data(), packed.data(), nullptr, nullptr, {}, four.data());
  EXPECT_EQ(one, four);
}

TEST(DepthwiseLast, RefusesSharedFilters) {
  ConvShape s = depthwise(1, 8, {4, 3, 1, 1, 1, 1}, {4, 3, 1, 1, 1, 1});
  s.groups = 4;
  EXPECT_FALSE(depthwise_last_supports(s));
  s.groups = 8, s.out_channels = 16;
  EXPECT_FALSE(depthwise_last_supports(s));
}

}  // namespace
}  // namespace sdx::cpu
