#include <gtest/gtest.h>

#include <map>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_channels.h"
#include "kernels/cpu/conv/blocked/blocked_conv.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/conv/blocked/blocked_pool.h"
#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/image/pool.h"
#include "kernels/cpu/rows/norm.h"
#include "support/conv_problems.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::Axis;
using test::conv_shape;
using test::for_each_isa;
using test::Guarded;
using test::plain_conv;
using test::random_floats;

std::int64_t area(const std::int64_t (&v)[3]) { return v[1] * v[2]; }
std::int64_t padded(std::int64_t channels) { return (channels + channel_block() - 1) / channel_block() * channel_block(); }

// Lanes beyond the channels hold NaN: none may affect a real channel.
std::vector<float> blocked(const std::vector<float>& plain, std::int64_t batch, std::int64_t channels, std::int64_t plane) {
  const std::int64_t c = channel_block();
  std::vector<float> out(static_cast<std::size_t>(batch * padded(channels) * plane), std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t k = 0; k < channels; ++k) {
      for (std::int64_t p = 0; p < plane; ++p) {
        out[static_cast<std::size_t>(((n * padded(channels) / c + k / c) * plane + p) * c + k % c)] =
            plain[static_cast<std::size_t>((n * channels + k) * plane + p)];
      }
    }
  }
  return out;
}

std::vector<float> plain(const float* from, std::int64_t batch, std::int64_t channels, std::int64_t plane) {
  const std::int64_t c = channel_block();
  std::vector<float> out;
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t k = 0; k < channels; ++k) {
      for (std::int64_t p = 0; p < plane; ++p) out.push_back(from[((n * padded(channels) / c + k / c) * plane + p) * c + k % c]);
    }
  }
  return out;
}

std::vector<float> shuffled(const ConvShape& s, const std::vector<float>& x) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < s.batch * s.in_channels; ++i) {
    const std::int64_t k = i % s.in_channels, from = i - k + k % s.shuffle * (s.in_channels / s.shuffle) + k / s.shuffle;
    const auto at = x.begin() + from * area(s.in);
    out.insert(out.end(), at, at + area(s.in));
  }
  return out;
}

std::vector<float> random_pixels(const ConvShape& s) { return random_floats(s.batch * s.in_channels * area(s.in), 1); }
std::vector<float> random_weights(const ConvShape& s) {
  return random_floats(s.out_channels * (s.in_channels / s.groups) * area(s.kernel), 2);
}

// The sums for random pixels and weights, which take longer than all algorithms: once for all of these, activations and
// instruction sets.
const std::vector<double>& random_sums(const ConvShape& s) {
  static std::map<std::string, std::vector<double>> known;
  const auto [at, is_new] = known.try_emplace(std::string(reinterpret_cast<const char*>(&s), sizeof s));
  if (is_new) at->second = plain_conv(s, s.shuffle != 1 ? shuffled(s, random_pixels(s)) : random_pixels(s), random_weights(s));
  return at->second;
}

void check(const ConvShape& s, BlockedConv algorithm, const UnarySpec& act, bool with_residual, double tolerance) {
  SCOPED_TRACE(static_cast<int>(algorithm));
  ASSERT_TRUE(conv_blocked_supports(algorithm, s));
  const std::int64_t ny = s.batch * s.out_channels * area(s.out);
  const std::vector<float> xv = random_pixels(s), wv = random_weights(s);
  const std::vector<float> bias = random_floats(s.out_channels, 3), rv = random_floats(ny, 4);
  const std::vector<float> xb = algorithm == BlockedConv::plain ? xv : blocked(xv, s.batch, s.in_channels, area(s.in));
  Guarded<float> x(static_cast<std::int64_t>(xb.size()), 1, xb);
  std::vector<char> raw(wv.size() * sizeof(float) + 1);
  std::memcpy(raw.data() + 1, wv.data(), wv.size() * sizeof(float));
  Guarded<float> packed(static_cast<std::int64_t>(conv_blocked_packed_bytes(algorithm, s) / 4), 3);
  conv_blocked_pack(algorithm, s, raw.data() + 1, bias.data(), packed.data());
  Guarded<float> y(s.batch * padded(s.out_channels) * area(s.out), 5, blocked(rv, s.batch, s.out_channels, area(s.out)));
  Guarded<float> workspace(static_cast<std::int64_t>(conv_blocked_workspace_bytes(algorithm, s) / 4), 0);
  conv_blocked_f32(algorithm, s, x.data(), packed.data(), with_residual ? y.data() : nullptr, act, y.data(), workspace.data());
  const std::vector<float> got = plain(y.data(), s.batch, s.out_channels, area(s.out));
  const std::vector<double>& want = random_sums(s);
  double scale = 1;
  for (const double v : want) scale = std::max(scale, std::fabs(v));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t channel = i / static_cast<std::size_t>(area(s.out)) % static_cast<std::size_t>(s.out_channels);
    double v = want[i] + bias[channel] + (with_residual ? rv[i] : 0.0F);
    if (act.op == Unary::relu) v = std::max(0.0, v);
    if (act.op == Unary::clip) v = std::clamp(v, static_cast<double>(act.a), static_cast<double>(act.b));
    if (act.op == Unary::tanh) v = std::tanh(v);
    ASSERT_NEAR(got[i], v, tolerance * scale) << "element " << i;
  }
}

// Plain sums over up to 600 products, in another order: a few ulp of their largest.
constexpr double kSum = 2e-6;

void check_all(const ConvShape& s, BlockedConv algorithm, double tolerance) {
  for (const bool residual : {false, true}) {
    check(s, algorithm, {}, residual, tolerance);
    check(s, algorithm, {Unary::relu}, residual, tolerance);
    check(s, algorithm, {Unary::clip, -0.5F, 0.75F}, residual, tolerance);
    check(s, algorithm, {Unary::tanh}, residual, tolerance);
  }
}

TEST(BlockedConv, DirectOfAnyWindow) {
  for_each_isa([] {
    for (const ConvShape& s : {
             conv_shape(1, 8, 16, 1, {7, 1, 1, 1, 0, 0}, {7, 1, 1, 1, 0, 0}),
             conv_shape(2, 21, 40, 1, {5, 1, 1, 1, 0, 0}, {3, 1, 1, 1, 0, 0}),
             conv_shape(1, 35, 17, 1, {9, 1, 2, 1, 0, 0}, {8, 1, 2, 1, 0, 0}),
             conv_shape(1, 16, 24, 1, {13, 3, 1, 1, 1, 1}, {17, 3, 1, 1, 1, 1}),
             conv_shape(2, 19, 33, 1, {8, 3, 2, 1, 1, 0}, {13, 3, 2, 1, 1, 1}),
             conv_shape(1, 9, 8, 1, {12, 5, 1, 1, 2, 2}, {11, 3, 1, 1, 0, 0}),
             conv_shape(1, 16, 9, 1, {12, 3, 1, 2, 2, 2}, {15, 3, 1, 3, 3, 3}),
             conv_shape(1, 11, 8, 1, {1, 1, 1, 1, 0, 0}, {40, 7, 3, 2, 4, 1}),
             conv_shape(1, 8, 8, 1, {4, 3, 1, 1, 5, 5}, {4, 3, 1, 1, 6, 7}),     // padding wider than the image
             conv_shape(1, 8, 8, 1, {9, 3, 1, 1, -2, -1}, {9, 2, 1, 1, -1, 0}),  // cropping
             conv_shape(1, 8, 8, 1, {1, 1, 1, 1, 0, 0}, {1, 1, 1, 1, 0, 0}),
             // Tiles that extend over the ends of rows, with full and partly filled blocks, and in more than one band.
             conv_shape(2, 20, 48, 1, {14, 3, 2, 1, 1, 1}, {14, 3, 2, 1, 1, 1}),
             conv_shape(1, 16, 32, 1, {9, 3, 1, 1, 1, 1}, {3, 3, 1, 1, 1, 1}),
             conv_shape(1, 17, 32, 1, {5, 3, 2, 2, 2, 2}, {1, 3, 2, 1, 1, 1}),
             conv_shape(1, 64, 16, 1, {250, 3, 1, 1, 1, 1}, {7, 3, 1, 1, 1, 1}),
         }) {
      check_all(s, BlockedConv::direct, kSum);
    }
  });
}

TEST(BlockedConv, WindowsMostlyInThePadding) {
  for_each_isa([] {
    for (const ConvShape& s : {
             conv_shape(2, 21, 40, 1, {10, 3, 1, 12, 12, 12}, {9, 3, 1, 14, 14, 14}),  // only the middle tap reads anything
             conv_shape(1, 35, 24, 1, {20, 3, 1, 12, 12, 12}, {20, 3, 1, 12, 12, 12}),
             conv_shape(1, 16, 33, 1, {17, 3, 2, 9, 9, 9}, {13, 5, 1, 6, 12, 12}),
             conv_shape(1, 8, 8, 1, {12, 3, 1, 1, 1, 1}, {11, 3, 1, 9, 9, 9}),
             conv_shape(1, 19, 17, 1, {4, 7, 1, 1, 3, 3}, {12, 1, 1, 1, 0, 0}),
             conv_shape(1, 9, 16, 1, {6, 3, 1, 7, 19, 3}, {12, 3, 1, 4, 11, 6}),  // some windows read nothing
         }) {
      check_all(s, BlockedConv::direct, kSum);
      if (s.in_channels < 16) check_all(s, BlockedConv::plain, kSum);
    }
    check_all(conv_shape(2, 32, 64, 2, {6, 3, 1, 5, 5, 5}, {10, 3, 1, 6, 6, 6}), BlockedConv::direct, kSum);
  });
}

TEST(BlockedConv, GroupsOfWholeBlocks) {
  for_each_isa([] {
    check_all(conv_shape(2, 32, 64, 2, {6, 3, 1, 1, 1, 1}, {10, 3, 1, 1, 1, 1}), BlockedConv::direct, kSum);
    check_all(conv_shape(1, 48, 48, 3, {5, 1, 1, 1, 0, 0}, {7, 1, 1, 1, 0, 0}), BlockedConv::direct, kSum);
    EXPECT_FALSE(conv_blocked_supports(BlockedConv::direct, conv_shape(1, 12, 12, 3, {5, 1, 1, 1, 0, 0}, {7, 1, 1, 1, 0, 0})));
  });
}

TEST(BlockedConv, GroupsOfAnySizeAndShuffledChannels) {
  for_each_isa([] {
    for (ConvShape s : {
             conv_shape(1, 24, 112, 4, {9, 1, 1, 1, 0, 0}, {7, 1, 1, 1, 0, 0}),
             conv_shape(2, 136, 136, 4, {7, 1, 1, 1, 0, 0}, {7, 1, 1, 1, 0, 0}),
             conv_shape(1, 12, 21, 3, {5, 1, 1, 1, 0, 0}, {5, 1, 1, 1, 0, 0}),
             conv_shape(3, 66, 6, 6, {1, 1, 1, 1, 0, 0}, {14, 1, 1, 1, 0, 0}),
             conv_shape(1, 96, 10, 1, {33, 1, 1, 1, 0, 0}, {32, 1, 1, 1, 0, 0}),  // more than one piece
         }) {
      for (const std::int64_t groups : {1, 2, 3}) {
        if (s.in_channels % groups != 0) continue;
        s.shuffle = groups;
        check_all(s, BlockedConv::listed, kSum);
      }
    }
    EXPECT_EQ(conv_blocked_choose(conv_shape(1, 12, 12, 3, {5, 1, 1, 1, 0, 0}, {7, 1, 1, 1, 0, 0})), BlockedConv::listed);
    EXPECT_FALSE(conv_blocked_supports(BlockedConv::listed, conv_shape(1, 12, 12, 3, {5, 1, 2, 1, 0, 0}, {7, 1, 1, 1, 0, 0})));
  });
}

TEST(BlockedConv, PlainPictures) {
  for_each_isa([] {
    for (const ConvShape& s : {
             conv_shape(2, 3, 32, 1, {15, 3, 2, 1, 1, 1}, {18, 3, 2, 1, 1, 1}),
             conv_shape(1, 3, 20, 1, {23, 7, 2, 1, 3, 3}, {29, 7, 2, 1, 3, 3}),
             conv_shape(1, 1, 9, 1, {9, 5, 1, 2, 0, 0}, {12, 5, 1, 2, 4, 4}),
             conv_shape(1, 4, 8, 1, {5, 1, 1, 1, 0, 0}, {7, 1, 1, 1, 0, 0}),
         }) {
      check_all(s, BlockedConv::plain, kSum);
    }
  });
}

TEST(BlockedConv, Depthwise) {
  for_each_isa([] {
    for (const ConvShape& s : {
             conv_shape(2, 19, 19, 19, {9, 3, 1, 1, 1, 1}, {14, 3, 1, 1, 1, 1}),
             conv_shape(1, 8, 8, 8, {9, 3, 2, 1, 1, 1}, {15, 3, 2, 1, 1, 1}),
             conv_shape(1, 32, 32, 32, {7, 5, 1, 1, 2, 2}, {7, 5, 1, 1, 2, 2}),
             conv_shape(1, 17, 17, 17, {14, 5, 2, 1, 1, 2}, {21, 5, 2, 1, 1, 2}),
             conv_shape(1, 8, 8, 8, {5, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}),
             conv_shape(1, 8, 8, 8, {6, 5, 1, 1, 2, 2}, {9, 5, 1, 1, 2, 2}),
             conv_shape(1, 8, 8, 8, {6, 5, 1, 1, 2, 2}, {13, 5, 1, 1, 1, 2}),
             conv_shape(1, 8, 8, 8, {6, 5, 2, 1, 2, 2}, {12, 5, 2, 1, 2, 1}),
             conv_shape(1, 8, 8, 8, {6, 5, 1, 1, 2, 2}, {11, 5, 1, 1, 0, 2}),
             conv_shape(1, 8, 8, 8, {6, 3, 1, 1, 1, 1}, {10, 3, 1, 1, 0, 1}),
             conv_shape(1, 8, 8, 8, {6, 3, 1, 1, 1, 1}, {4, 3, 1, 1, 1, 1}),
             conv_shape(1, 8, 8, 8, {9, 3, 1, 2, 2, 2}, {9, 3, 1, 2, 2, 2}),
             conv_shape(1, 8, 8, 8, {9, 7, 1, 1, 3, 3}, {8, 2, 3, 1, 0, 1}),
             conv_shape(2, 19, 19, 19, {9, 7, 1, 1, 3, 3}, {14, 7, 1, 1, 3, 3}),
             conv_shape(1, 8, 8, 8, {15, 7, 2, 1, 3, 3}, {15, 7, 2, 1, 3, 2}),
             conv_shape(1, 8, 8, 8, {6, 7, 1, 1, 3, 3}, {11, 7, 1, 1, 2, 2}),
             conv_shape(1, 8, 8, 8, {6, 7, 2, 1, 2, 3}, {17, 7, 2, 1, 2, 1}),
             conv_shape(1, 8, 8, 8, {6, 7, 1, 1, 3, 3}, {12, 7, 1, 1, 1, 1}),
             conv_shape(1, 8, 8, 8, {3, 7, 1, 1, 3, 3}, {3, 7, 1, 1, 3, 3}),
             conv_shape(1, 8, 8, 8, {7, 7, 1, 1, 3, 3}, {7, 7, 1, 1, 4, 3}),
             conv_shape(1, 8, 8, 8, {3, 3, 1, 1, 4, 4}, {2, 3, 1, 1, 4, 5}),
             conv_shape(1, 8, 8, 8, {1, 1, 1, 1, 0, 0}, {5, 1, 1, 1, 0, 0}),
             conv_shape(2, 19, 19, 19, {3, 1, 1, 1, 0, 0}, {5, 1, 1, 1, 0, 0}),
             conv_shape(1, 8, 8, 8, {4, 1, 2, 1, 0, 0}, {5, 1, 1, 1, 0, 0}),
             conv_shape(2, 19, 19, 19, {20, 3, 1, 2, 2, 2}, {23, 3, 1, 2, 2, 2}),
             conv_shape(1, 8, 8, 8, {21, 3, 1, 3, 3, 3}, {9, 3, 1, 1, 1, 1}),
             conv_shape(1, 8, 8, 8, {17, 5, 1, 2, 4, 4}, {19, 5, 1, 3, 6, 6}),
             conv_shape(1, 8, 8, 8, {3, 3, 1, 4, 4, 4}, {5, 3, 1, 6, 6, 6}),  // input smaller than the dilation
             conv_shape(1, 8, 8, 8, {12, 7, 1, 2, 6, 6}, {40, 7, 1, 2, 5, 7}),
             conv_shape(1, 8, 8, 8, {15, 3, 1, 2, -3, 1}, {16, 3, 1, 3, 1, -2}),  // negative padding crops
         }) {
      check_all(s, BlockedConv::depthwise, kSum);
    }
  });
}

// F(4x4) loses a few bits more than plain sums; see docs/design/convolutions.md, "Winograd".
TEST(BlockedConv, Winograd) {
  for_each_isa([] {
    for (const ConvShape& s : {
             conv_shape(1, 16, 16, 1, {14, 3, 1, 1, 1, 1}, {14, 3, 1, 1, 1, 1}),
             conv_shape(2, 37, 41, 1, {7, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}),
             conv_shape(1, 20, 24, 1, {11, 3, 1, 1, 0, 0}, {6, 3, 1, 1, 2, 2}),
             conv_shape(1, 8, 8, 1, {3, 3, 1, 1, 0, 0}, {3, 3, 1, 1, 0, 0}),
             conv_shape(3, 17, 8, 1, {40, 3, 1, 1, 1, 1}, {3, 3, 1, 1, 1, 1}),
             conv_shape(2, 48, 96, 3, {9, 3, 1, 1, 1, 1}, {7, 3, 1, 1, 1, 1}),
             conv_shape(1, 96, 32, 2, {13, 3, 1, 1, 1, 1}, {13, 3, 1, 1, 1, 1}),
             conv_shape(1, 301, 33, 1, {6, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}),    // weights transformed in several pieces
             conv_shape(1, 128, 32, 1, {28, 3, 1, 1, 1, 1}, {28, 3, 1, 1, 1, 1}),  // blocks of tiles that fit the cache
             // By phases of different sizes, with fewer outputs than phases, cropped, in groups.
             conv_shape(1, 19, 24, 1, {14, 3, 1, 2, 2, 2}, {15, 3, 1, 2, 2, 2}),
             conv_shape(2, 16, 17, 1, {11, 3, 1, 3, 1, 4}, {9, 3, 1, 1, 1, 1}),
             conv_shape(1, 32, 64, 2, {13, 3, 1, 2, 0, 0}, {23, 3, 1, 5, 3, 7}),
             conv_shape(1, 8, 8, 1, {17, 3, 1, 6, -1, -2}, {15, 3, 1, 12, 12, 12}),
             conv_shape(1, 8, 8, 1, {2, 3, 1, 4, 4, 4}, {3, 3, 1, 4, 4, 4}),
         }) {
      check_all(s, BlockedConv::winograd2, 2e-6);
      check_all(s, BlockedConv::winograd4, 8e-6);
      check_all(s, BlockedConv::winograd2_lean, 2e-6);
      check_all(s, BlockedConv::winograd4_lean, 8e-6);
    }
    EXPECT_FALSE(conv_blocked_supports(BlockedConv::winograd4, conv_shape(1, 8, 8, 1, {9, 3, 2, 1, 0, 0}, {9, 3, 2, 1, 0, 0})));
    EXPECT_FALSE(
        conv_blocked_supports(BlockedConv::winograd4, conv_shape(1, 8, 8, 1, {9, 3, 1, 37, 37, 37}, {9, 3, 1, 1, 0, 0})));
    EXPECT_FALSE(conv_blocked_supports(BlockedConv::winograd4, conv_shape(1, 24, 24, 2, {9, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1})));
  });
}

// Each output is as exact as its own window allows, whatever lies beside it: a value for "no data", an infinity, NaN.
void check_great_values(const ConvShape& s, BlockedConv algorithm) {
  SCOPED_TRACE(static_cast<int>(algorithm));
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const std::int64_t plane = area(s.in), count = s.batch * s.in_channels * plane;
  const std::vector<float> w = random_floats(s.out_channels * (s.in_channels / s.groups) * 9, 2);
  std::vector<float> packed(conv_blocked_packed_bytes(algorithm, s) / 4);
  conv_blocked_pack(algorithm, s, w.data(), nullptr, packed.data());
  std::vector<float> workspace(conv_blocked_workspace_bytes(algorithm, s) / 4 + 1);
  for (const float great : {-9999.0F, kInf, kNan}) {
    for (const std::int64_t at : {plane / 2, count - plane - 1}) {
      std::vector<float> x = random_floats(count, 1), weights = w;
      x[static_cast<std::size_t>(at)] = great;
      std::vector<float> sizes = x;
      for (float& v : sizes) v = std::fabs(v);
      for (float& v : weights) v = std::fabs(v);
      const std::vector<double> want = plain_conv(s, x, w), scale = plain_conv(s, sizes, weights);
      sizes[static_cast<std::size_t>(at)] = 0.0F;
      const std::vector<double> without = plain_conv(s, sizes, weights);
      const std::vector<float> xb = blocked(x, s.batch, s.in_channels, plane);
      std::vector<float> yb(static_cast<std::size_t>(s.batch * padded(s.out_channels) * area(s.out)));
      conv_blocked_f32(algorithm, s, xb.data(), packed.data(), nullptr, {}, yb.data(), workspace.data());
      const std::vector<float> y = plain(yb.data(), s.batch, s.out_channels, area(s.out));
      for (std::size_t i = 0; i < y.size(); ++i) {
        if (std::isfinite(scale[i])) {
          // Taps are known to a few roundings of the filter's largest.
          const double of_taps = scale[i] > without[i] ? 1e-6 * std::fabs(static_cast<double>(great)) : 0.0;
          ASSERT_NEAR(y[i], want[i], 2e-6 * scale[i] + of_taps) << great << " at " << at << ", output " << i;
        } else {
          ASSERT_FALSE(std::isfinite(y[i])) << great << " at " << at << ", output " << i;
          ASSERT_EQ(std::isnan(y[i]), std::isnan(want[i])) << great << " at " << at << ", output " << i;
        }
      }
    }
  }
}

TEST(BlockedConv, OnePixelOfGreatValueDisturbsNoOther) {
  for_each_isa([] {
    for (const ConvShape& s : {conv_shape(2, 18, 21, 1, {13, 3, 1, 1, 1, 1}, {15, 3, 1, 1, 1, 1}),
                               conv_shape(1, 64, 32, 2, {9, 3, 1, 1, 1, 1}, {10, 3, 1, 1, 0, 2}),
                               conv_shape(1, 16, 16, 1, {21, 3, 1, 2, 2, 2}, {17, 3, 1, 3, 3, 3})}) {
      for (const BlockedConv algorithm :
           {BlockedConv::winograd2, BlockedConv::winograd4, BlockedConv::winograd2_lean, BlockedConv::winograd4_lean}) {
        if (conv_blocked_supports(algorithm, s)) check_great_values(s, algorithm);
      }
    }
    check_great_values(conv_shape(2, 18, 21, 1, {14, 3, 2, 1, 1, 1}, {19, 3, 2, 1, 1, 1}), BlockedConv::strided);
  });
}

// Tiles at the ends of both axes with any number of outputs, alone and beside full ones, in more than one block of tiles.
TEST(BlockedConv, WinogradOfAnyExtents) {
  for_each_isa([] {
    const auto axis = [](std::int64_t out) { return Axis{out + 1, 3, 1, 1, 1, 0}; };
    for (std::int64_t h = 1; h <= 9; ++h) {
      for (std::int64_t w = 1; w <= 9; ++w) {
        const ConvShape s = conv_shape(h == w ? 9 : 1, 9, 17, 1, axis(h), axis(w));
        check(s, BlockedConv::winograd2, {Unary::relu}, true, 2e-6);
        check(s, BlockedConv::winograd4, {Unary::tanh}, true, 8e-6);
      }
    }
  });
}

TEST(BlockedConv, StridedTiles) {
  for_each_isa([] {
    // Any number of outputs along both axes, padding or none at the beginning and the end.
    for (std::int64_t h = 1; h <= 9; ++h) {
      for (std::int64_t w = 1; w <= 9; ++w) {
        const Axis rows{2 * h, 3, 2, 1, 1, 0}, columns{2 * w + 1, 3, 2, 1, w % 2, w % 2};
        check(conv_shape(h == 5 ? 8 : 1, 9, 17, 1, rows, columns), BlockedConv::strided, {Unary::relu}, true, 4e-6);
      }
    }
    for (const ConvShape& s : {
             conv_shape(1, 301, 33, 1, {14, 3, 2, 1, 1, 1}, {9, 3, 2, 1, 1, 1}),  // weights transformed in several pieces
             conv_shape(3, 48, 96, 3, {28, 3, 2, 1, 1, 1}, {30, 3, 2, 1, 0, 1}),
             conv_shape(1, 16, 16, 1, {40, 3, 2, 1, 1, 1}, {47, 3, 2, 1, 1, 1}),   // several blocks of tiles
             conv_shape(1, 8, 8, 1, {4, 3, 2, 1, 5, 5}, {4, 3, 2, 1, 6, 7}),       // padding wider than the image
             conv_shape(1, 8, 8, 1, {19, 3, 2, 1, -2, -1}, {12, 3, 2, 1, -1, 0}),  // cropping
         }) {
      check_all(s, BlockedConv::strided, 4e-6);
    }
    EXPECT_FALSE(conv_blocked_supports(BlockedConv::strided, conv_shape(1, 8, 8, 1, {9, 3, 1, 1, 0, 0}, {9, 3, 2, 1, 0, 0})));
    EXPECT_FALSE(conv_blocked_supports(BlockedConv::strided, conv_shape(1, 24, 24, 2, {9, 3, 2, 1, 1, 1}, {9, 3, 2, 1, 1, 1})));
    EXPECT_EQ(conv_blocked_choose(conv_shape(1, 128, 128, 1, {56, 3, 2, 1, 1, 1}, {56, 3, 2, 1, 1, 1})), BlockedConv::strided);
    EXPECT_EQ(conv_blocked_choose(conv_shape(1, 8, 8, 1, {56, 3, 2, 1, 1, 1}, {56, 3, 2, 1, 1, 1})), BlockedConv::direct);
  });
}

TEST(BlockedConv, LargeWeightsStaySmall) {
  for_each_isa([] {
    const auto image = [](std::int64_t channels, std::int64_t side) {
      return conv_shape(1, channels, channels, 1, {side, 3, 1, 1, 1, 1}, {side, 3, 1, 1, 1, 1});
    };
    EXPECT_EQ(conv_blocked_choose(image(256, 14)), BlockedConv::winograd4_lean);
    EXPECT_EQ(conv_blocked_choose(image(512, 28)), BlockedConv::winograd4_lean);
    EXPECT_EQ(conv_blocked_choose(image(64, 56)), BlockedConv::winograd4);
    EXPECT_EQ(conv_blocked_choose(conv_shape(1, 64, 64, 1, {56, 3, 1, 2, 2, 2}, {56, 3, 1, 2, 2, 2})), BlockedConv::winograd4);
    EXPECT_EQ(conv_blocked_choose(image(256, 56)), BlockedConv::winograd4);  // weights would be transformed several times
    const std::size_t plain = 256 * 256 * 9 * sizeof(float);
    EXPECT_LT(conv_blocked_packed_bytes(BlockedConv::winograd4_lean, image(256, 14)), plain + plain / 100);
  });
}

TEST(BlockedConv, TheSameForAnyNumberOfThreads) {
  ConvShape s = conv_shape(1, 40, 72, 1, {19, 3, 1, 1, 1, 1}, {23, 3, 1, 1, 1, 1});
  const std::vector<float> xb = blocked(random_floats(40 * area(s.in), 1), 1, 40, area(s.in));
  const std::vector<float> w = random_floats(40 * 72 * 9, 2);
  for (const BlockedConv algorithm : {BlockedConv::direct, BlockedConv::winograd2, BlockedConv::winograd4,
                                      BlockedConv::winograd2_lean, BlockedConv::winograd4_lean, BlockedConv::strided}) {
    if (algorithm == BlockedConv::strided) s = conv_shape(1, 40, 72, 1, {19, 3, 2, 1, 1, 1}, {23, 3, 2, 1, 1, 1});
    std::vector<float> packed(conv_blocked_packed_bytes(algorithm, s) / 4);
    conv_blocked_pack(algorithm, s, w.data(), nullptr, packed.data());
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 5}) {
      ThreadPool pool(threads);
      const PoolScope scope(pool);
      std::vector<float> y(static_cast<std::size_t>(padded(72) * area(s.out)));
      conv_blocked_f32(algorithm, s, xb.data(), packed.data(), nullptr, {}, y.data());
      results.push_back(plain(y.data(), 1, 72, area(s.out)));
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

// Threads split pixels from 14 x 14 on, which changes no rounding.
TEST(BlockedChannels, TheSameForAnyNumberOfThreads) {
  for (const std::int64_t images : {1, 2}) {
    const std::int64_t c = channel_block(), in = 29 * 31, n = images * 5 * in * c;
    const std::vector<float> xv = random_floats(n, 5), sv = random_floats(images * 5 * c, 6), w = random_floats(5 * c * 9, 7);
    ConvShape depthwise = conv_shape(images, 5 * c, 5 * c, 5 * c, {29, 3, 1, 1, 1, 1}, {31, 3, 1, 1, 1, 1});
    ConvShape pool = conv_shape(images, 5, 1, 1, {29, 3, 2, 1, 1, 1}, {31, 3, 2, 1, 1, 1});
    ConvShape point = conv_shape(images, 5 * c, 3 * c, 1, {29, 1, 1, 1, 0, 0}, {31, 1, 1, 1, 0, 0});
    std::vector<float> packed(conv_blocked_packed_bytes(BlockedConv::depthwise, depthwise) / 4);
    conv_blocked_pack(BlockedConv::depthwise, depthwise, w.data(), nullptr, packed.data());
    std::vector<float> packed_point(conv_blocked_packed_bytes(BlockedConv::direct, point) / 4);
    const std::vector<float> wp = random_floats(15 * c * c, 8);
    conv_blocked_pack(BlockedConv::direct, point, wp.data(), nullptr, packed_point.data());
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 3, 5}) {
      ThreadPool pools(threads);
      const PoolScope scope(pools);
      const auto size = [](std::int64_t count) { return static_cast<std::size_t>(count); };
      std::vector<float> a(size(n)), b(size(images * 5 * c)), d(size(n)), e(size(images * 5 * area(pool.out) * c));
      std::vector<float> f(size(images * 3 * in * c));
      conv_blocked_f32(BlockedConv::depthwise, depthwise, xv.data(), packed.data(), nullptr, {}, a.data());
      mean_blocked_f32(images, 5, in, xv.data(), b.data());
      scale_channels_f32(images, 5, in, xv.data(), sv.data(), d.data());
      max_pool_blocked_f32(pool, xv.data(), e.data());
      conv_blocked_f32(BlockedConv::direct, point, xv.data(), packed_point.data(), nullptr, {}, f.data());
      for (const std::vector<float>& more : {b, d, e, f}) a.insert(a.end(), more.begin(), more.end());
      results.push_back(a);
    }
    for (std::size_t i = 1; i < results.size(); ++i) EXPECT_EQ(results[0], results[i]);
  }
}

TEST(BlockedChannels, InAndBack) {
  for_each_isa([] {
    for (const std::int64_t channels : {1, 7, 8, 16, 21, 48}) {
      for (const std::int64_t plane : {1, 5, 64, 133}) {
        const std::vector<float> xv = random_floats(2 * channels * plane, 7);
        Guarded<float> x(2 * channels * plane, 1, xv), back(2 * channels * plane, 3);
        Guarded<float> y(2 * padded(channels) * plane, 5);
        to_blocked_f32(2, channels, plane, x.data(), y.data());
        EXPECT_EQ(plain(y.data(), 2, channels, plane), xv);
        for (std::int64_t c = channels; c < padded(channels); ++c) {
          EXPECT_EQ(y[(c / channel_block() * plane + plane - 1) * channel_block() + c % channel_block()], 0.0F);
        }
        from_blocked_f32(2, channels, plane, y.data(), back.data());
        EXPECT_EQ(std::vector<float>(back.data(), back.data() + back.size()), xv);
      }
    }
  });
}

TEST(BlockedPool, LikePlainOnes) {
  for_each_isa([] {
    for (const ConvShape& s : {
             conv_shape(2, 11, 1, 1, {9, 3, 2, 1, 1, 1}, {14, 3, 2, 1, 1, 1}),
             conv_shape(1, 16, 1, 1, {8, 2, 2, 1, 0, 0}, {7, 3, 1, 1, 1, 1}),
             conv_shape(1, 8, 1, 1, {9, 3, 1, 2, 0, 0}, {9, 5, 3, 1, 2, 2}),
             conv_shape(1, 24, 1, 1, {30, 3, 1, 1, 1, 1}, {12, 3, 1, 1, 1, 1}),
             conv_shape(1, 8, 1, 1, {8, 2, 2, 1, 0, 0}, {31, 2, 2, 1, 0, 0}),
         }) {
      std::vector<float> xv = random_floats(s.batch * s.in_channels * area(s.in), 5);
      xv[3] = std::numeric_limits<float>::quiet_NaN();
      xv[17] = std::numeric_limits<float>::infinity();
      xv[18] = -std::numeric_limits<float>::infinity();
      const std::vector<float> xb = blocked(xv, s.batch, s.in_channels, area(s.in));
      Guarded<float> x(static_cast<std::int64_t>(xb.size()), 1, xb), y(s.batch * padded(s.in_channels) * area(s.out), 3);
      std::vector<float> want(static_cast<std::size_t>(s.batch * s.in_channels * area(s.out)));
      ConvShape blocks = s;
      blocks.in_channels = padded(s.in_channels) / channel_block();
      const auto compare = [&](double tolerance) {
        const std::vector<float> got = plain(y.data(), s.batch, s.in_channels, area(s.out));
        for (std::size_t i = 0; i < want.size(); ++i) {
          if (std::isnan(want[i]) || std::isinf(want[i])) {
            ASSERT_EQ(std::isnan(got[i]), std::isnan(want[i])) << i;
            if (!std::isnan(want[i])) {
              ASSERT_EQ(got[i], want[i]) << i;
            }
          } else {
            ASSERT_NEAR(got[i], want[i], tolerance) << i;
          }
        }
      };
      max_pool_f32(s, xv.data(), want.data());
      max_pool_blocked_f32(blocks, x.data(), y.data());
      compare(0);
      for (const bool count_pad : {false, true}) {
        const std::int64_t pad_end[3] = {0, s.pad[1], s.pad[2]};
        average_pool_f32(s, pad_end, count_pad, xv.data(), want.data());
        average_pool_blocked_f32(blocks, pad_end, count_pad, x.data(), y.data());
        compare(1e-6);  // up to 15 terms in another order
      }
    }
  });
}

TEST(BlockedLrn, LikeThePlainOne) {
  for_each_isa([] {
    for (const std::int64_t channels : {1, 5, 8, 21, 48}) {
      for (const std::int64_t plane : {1, 16, 37}) {
        const std::vector<float> xv = random_floats(2 * channels * plane, 5), xb = blocked(xv, 2, channels, plane);
        Guarded<float> x(static_cast<std::int64_t>(xb.size()), 1, xb), y(static_cast<std::int64_t>(xb.size()), 3);
        std::vector<float> want(xv.size());
        for (const std::int64_t size : {1, 4, 5, 60}) {
          for (const float beta : {0.75F, 0.5F, 1.0F, 0.6F}) {
            lrn_f32(xv.data(), want.data(), 2, channels, plane, size, 0.3F, beta, 1.5F);
            lrn_blocked_f32(x.data(), y.data(), 2, channels, plane, size, 0.3F, beta, 1.5F);
            const std::vector<float> got = plain(y.data(), 2, channels, plane);
            for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6) << i;  // squares in another order
          }
        }
      }
    }
  });
}

TEST(BlockedChannels, MeansFactorsAndTerms) {
  for_each_isa([] {
    const std::int64_t c = channel_block();
    for (const std::int64_t plane : {1, 2, 63, 64, 65, 500, 9000}) {
      const std::vector<float> xv = random_floats(3 * plane * c, 5), sv = random_floats(3 * c, 6);
      Guarded<float> x(3 * plane * c, 1, xv), s(3 * c, 5, sv), y(3 * plane * c, 3), m(3 * c, 7);
      mean_blocked_f32(1, 3, plane, x.data(), m.data());
      for (std::int64_t i = 0; i < 3 * c; ++i) {
        double sum = 0;
        for (std::int64_t p = 0; p < plane; ++p) sum += xv[static_cast<std::size_t>((i / c * plane + p) * c + i % c)];
        ASSERT_NEAR(m[i], sum / static_cast<double>(plane), 1e-6);
      }
      scale_channels_f32(1, 3, plane, x.data(), s.data(), y.data());
      for (std::int64_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], x[i] * s[i / (plane * c) * c + i % c]);
      shift_channels_f32(1, 3, plane, x.data(), s.data(), x.data());
      for (std::int64_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(x[i], xv[static_cast<std::size_t>(i)] + s[i / (plane * c) * c + i % c]);
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
