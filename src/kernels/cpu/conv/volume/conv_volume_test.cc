#include "kernels/cpu/conv/volume/conv_volume.h"

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/conv/plain/conv.h"
#include "support/conv_problems.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::conv_shape;
using test::for_each_isa;
using test::Guarded;
using test::random_floats;

struct Problem {
  ConvShape shape;
  std::vector<float> x, w, bias, residual;

  explicit Problem(const ConvShape& s)
      : shape(s),
        x(random_floats(s.batch * s.in_channels * volume(s.in), 1)),
        w(random_floats(s.out_channels * s.in_channels * volume(s.kernel), 2)),
        bias(random_floats(s.out_channels, 3)),
        residual(random_floats(s.batch * s.out_channels * volume(s.out), 4)) {}

  // By products of gathered patches.
  std::vector<float> expected(const UnarySpec& act, bool with_residual) const {
    std::vector<float> packed(conv_packed_bytes(ConvAlgorithm::gemm, shape) / 4), y(residual.size());
    conv_pack_f32(ConvAlgorithm::gemm, shape, w.data(), packed.data());
    conv_f32(ConvAlgorithm::gemm, shape, x.data(), packed.data(), bias.data(), with_residual ? residual.data() : nullptr, act,
             y.data());
    return y;
  }
};

std::vector<float> run(const Problem& p, BlockedConv algorithm, const UnarySpec& act, bool with_residual, bool with_bias = true) {
  const auto size = [](std::size_t bytes) { return static_cast<std::int64_t>(bytes / 4); };
  Guarded<float> packed(size(conv_volume_packed_bytes(algorithm, p.shape)));
  conv_volume_pack(algorithm, p.shape, p.w.data(), with_bias ? p.bias.data() : nullptr, packed.data());
  Guarded<float> workspace(size(conv_volume_workspace_bytes(algorithm, p.shape)));
  std::fill_n(workspace.data(), size(conv_volume_workspace_bytes(algorithm, p.shape)), std::nanf(""));
  const auto n = static_cast<std::int64_t>(p.residual.size());
  Guarded<float> x(static_cast<std::int64_t>(p.x.size()), 1, p.x), y(n, 5, p.residual);
  conv_volume_f32(algorithm, p.shape, x.data(), packed.data(), with_residual ? y.data() : nullptr, act, y.data(),
                  workspace.data());
  return {y.data(), y.data() + n};
}

void check(const ConvShape& s, BlockedConv algorithm) {
  const Problem p(s);
  for (const bool with_residual : {false, true}) {
    const UnarySpec act = with_residual ? UnarySpec{Unary::relu} : UnarySpec{Unary::tanh};
    const std::vector<float> want = p.expected(act, with_residual), got = run(p, algorithm, act, with_residual);
    double scale = 1;
    for (const float v : p.expected({}, false)) scale = std::max<double>(scale, std::fabs(v));
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5 * scale) << "element " << i;
  }
}

const std::vector<ConvShape>& shapes() {
  static const std::vector<ConvShape> all = {
      conv_shape(1, 16, 16, 1, {6, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}, {11, 3, 1, 1, 1, 1}),
      conv_shape(2, 20, 35, 1, {5, 3, 1, 1, 1, 1}, {8, 3, 1, 1, 1, 1},
                 {8, 3, 1, 1, 1, 1}),  // blocks of channels that are not full
      conv_shape(1, 32, 32, 1, {7, 3, 2, 1, 1, 1}, {10, 3, 2, 1, 1, 1}, {9, 3, 2, 1, 1, 1}),  // strided
      conv_shape(1, 3, 24, 1, {5, 3, 1, 1, 1, 1}, {20, 7, 2, 1, 3, 3}, {20, 7, 2, 1, 3, 3}),  // the first of a network for videos
      conv_shape(1, 1, 8, 1, {6, 5, 1, 1, 2, 2}, {7, 5, 1, 1, 2, 2}, {7, 5, 1, 1, 2, 2}),     // one channel
      conv_shape(2, 24, 40, 1, {8, 3, 1, 1, 1, 1}, {6, 1, 1, 1, 0, 0}, {6, 1, 1, 1, 0, 0}),   // along depth alone
      conv_shape(1, 24, 16, 1, {4, 1, 1, 1, 0, 0}, {9, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}),   // along planes alone
      conv_shape(1, 16, 16, 1, {3, 2, 2, 1, 0, 1}, {6, 2, 2, 1, 0, 0}, {6, 2, 2, 1, 0, 0}),   // windows side by side
      conv_shape(1, 16, 16, 1, {1, 3, 1, 1, 1, 1}, {4, 3, 1, 1, 1, 1}, {4, 3, 1, 1, 1, 1}),   // a single plane
      conv_shape(1, 16, 16, 1, {2, 3, 1, 1, 4, 5}, {5, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}),   // planes of nothing but padding
      conv_shape(1, 16, 16, 1, {6, 3, 1, 1, -1, -2}, {8, 3, 1, 1, -1, 0}, {8, 3, 1, 1, 0, 1}),  // negative padding crops
      conv_shape(1, 16, 16, 1, {4, 3, 1, 1, 1, 1}, {12, 3, 1, 2, 2, 2}, {12, 3, 1, 2, 2, 2}),
  };
  return all;
}

TEST(KernelsConvVolume, MatchesGatheredPatches) {
  for_each_isa([] {
    for (std::size_t i = 0; i < shapes().size(); ++i) {
      SCOPED_TRACE(i);
      const ConvShape& s = shapes()[i];
      if (!conv_volume_suits(s)) continue;
      check(s, conv_volume_choose(s));
      check(s, BlockedConv::direct);
      check(s, BlockedConv::plain);
    }
  });
}

// 64 channels of 60 x 60 make planes of which a slab holds a few only.
TEST(KernelsConvVolume, SlabsMeet) {
  const ConvShape s = conv_shape(1, 64, 48, 1, {11, 3, 1, 1, 1, 1}, {60, 3, 1, 1, 1, 1}, {60, 3, 1, 1, 1, 1});
  ASSERT_LT(conv_volume_workspace_bytes(BlockedConv::direct, s), std::size_t{8} << 20);
  check(s, BlockedConv::direct);
  check(s, BlockedConv::winograd4);
}

TEST(KernelsConvVolume, WithoutBias) {
  Problem p(shapes()[0]);
  p.bias.assign(p.bias.size(), 0.0F);
  EXPECT_EQ(run(p, BlockedConv::direct, {}, false, false), run(p, BlockedConv::direct, {}, false, true));
}

// A NaN reaches the outputs whose windows have it, and no others.
TEST(KernelsConvVolume, NanStaysInItsWindows) {
  for_each_isa([] {
    Problem p(conv_shape(1, 16, 16, 1, {7, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}));
    p.x[static_cast<std::size_t>((5 * 7 + 3) * 81 + 4 * 9 + 4)] = std::nanf("");  // channel 5, at 3, 4, 4
    const std::vector<float> y = run(p, BlockedConv::direct, {}, false);
    for (std::int64_t i = 0; i < 16 * 7 * 81; ++i) {
      const std::int64_t d = i / 81 % 7, h = i / 9 % 9, w = i % 9;
      const bool reached = std::abs(d - 3) <= 1 && std::abs(h - 4) <= 1 && std::abs(w - 4) <= 1;
      ASSERT_EQ(std::isnan(y[static_cast<std::size_t>(i)]), reached) << i;
    }
  });
}

TEST(KernelsConvVolume, ThreadsDoNotChangeTheResult) {
  const Problem p(conv_shape(1, 24, 40, 1, {9, 3, 1, 1, 1, 1}, {17, 3, 1, 1, 1, 1}, {15, 3, 1, 1, 1, 1}));
  for (const BlockedConv how : {BlockedConv::direct, BlockedConv::winograd4, BlockedConv::plain}) {
    const std::vector<float> alone = run(p, how, {}, false);
    ThreadPool pool(3);
    const PoolScope scope(pool);
    EXPECT_EQ(run(p, how, {}, false), alone);
  }
}

TEST(KernelsConvVolume, SuitsWhatPays) {
  ConvShape s = shapes()[0];
  EXPECT_TRUE(conv_volume_suits(s));
  s.out_channels = channel_block() / 2 - 1;
  EXPECT_FALSE(conv_volume_suits(s));
  s = shapes()[0];
  s.groups = 2;
  EXPECT_FALSE(conv_volume_suits(s));
  s = shapes()[0];
  s.dilation[0] = 2;
  EXPECT_FALSE(conv_volume_suits(s));
}

}  // namespace
}  // namespace sdx::cpu
