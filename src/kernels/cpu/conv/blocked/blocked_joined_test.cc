// In groups of a convolution that share a block of channels, or a vector, infinities and NaN do not affect other groups.

#include <gtest/gtest.h>

#include <limits>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/blocked/blocked_conv.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::random_floats;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Problem {
  ConvShape s;  // of the separate groups
  BlockedConv algorithm;
  std::int64_t joined;

  std::int64_t in_each() const { return s.in_channels / s.groups; }
  std::int64_t out_each() const { return s.out_channels / s.groups; }
  ConvShape shape() const {
    ConvShape all = s;
    all.groups /= joined;
    all.joined = joined;
    return all;
  }
};

// `in` and `out` channels for each of `groups`; a k x k window over an h x w image, padded around.
Problem problem(BlockedConv algorithm, std::int64_t joined, std::int64_t groups, std::int64_t in, std::int64_t out,
                std::int64_t k, std::int64_t stride, std::int64_t dilation, std::int64_t h, std::int64_t w) {
  Problem p{{}, algorithm, joined};
  p.s.batch = 2, p.s.groups = groups, p.s.in_channels = groups * in, p.s.out_channels = groups * out;
  const std::int64_t extents[2] = {h, w};
  for (int i = 1; i < 3; ++i) {
    p.s.in[i] = extents[i - 1], p.s.kernel[i] = k, p.s.stride[i] = stride, p.s.dilation[i] = dilation;
    p.s.pad[i] = (k - 1) / 2 * dilation;
    p.s.out[i] = (p.s.in[i] + 2 * p.s.pad[i] - (k - 1) * dilation - 1) / stride + 1;
  }
  return p;
}

std::int64_t padded(std::int64_t channels) { return (channels + channel_block() - 1) / channel_block() * channel_block(); }
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::size_t place(std::int64_t channels, std::int64_t plane, std::int64_t image, std::int64_t k, std::int64_t p) {
  const std::int64_t c = channel_block();
  return at(((image * padded(channels) / c + k / c) * plane + p) * c + k % c);
}

class Runner {
 public:
  Runner(const Problem& p, const UnarySpec& act, bool residual) : p_(p), act_(act), residual_(residual) {
    const std::int64_t in_plane = p.s.in[1] * p.s.in[2], out_plane = p.s.out[1] * p.s.out[2];
    x = random_floats(p.s.batch * padded(p.s.in_channels) * in_plane, 1);
    w = random_floats(p.s.out_channels * p.in_each() * p.s.kernel[1] * p.s.kernel[2], 2);
    bias_ = random_floats(p.s.out_channels, 3);
    z_ = random_floats(p.s.batch * padded(p.s.out_channels) * out_plane, 4);
  }

  std::vector<float> x, w;

  std::vector<float> run() const {
    const ConvShape s = p_.shape();
    const std::int64_t run = p_.in_each() * s.kernel[1] * s.kernel[2], m = p_.joined;
    std::vector<float> all(w.size() * at(m), 0.0F);  // with zeros between the groups
    for (std::int64_t row = 0; row < s.out_channels; ++row) {
      std::copy_n(w.begin() + row * run, run, all.begin() + (row * m + row / p_.out_each() % m) * run);
    }
    std::vector<float> packed(conv_blocked_packed_bytes(p_.algorithm, s) / 4), y = z_;
    std::vector<float> workspace(conv_blocked_workspace_bytes(p_.algorithm, s) / 4);
    conv_blocked_pack(p_.algorithm, s, all.data(), bias_.data(), packed.data());
    conv_blocked_f32(p_.algorithm, s, x.data(), packed.data(), residual_ ? y.data() : nullptr, act_, y.data(), workspace.data());
    return y;
  }

  // The first and the last pixel of one channel, in different images.
  void spoil(std::int64_t channel, float value) {
    const std::int64_t plane = p_.s.in[1] * p_.s.in[2];
    x[place(p_.s.in_channels, plane, 0, channel, 0)] = value;
    x[place(p_.s.in_channels, plane, 1, channel, plane - 1)] = value;
  }

 private:
  const Problem& p_;
  UnarySpec act_;
  bool residual_;
  std::vector<float> bias_, z_;
};

// The same but for rounding, since AMX's tiles leave weights with an infinity to sums of floats; or NaN in both.
void expect_group(const Problem& p, std::int64_t group, const std::vector<float>& got, const std::vector<float>& want) {
  const std::int64_t plane = p.s.out[1] * p.s.out[2];
  for (std::int64_t image = 0; image < p.s.batch; ++image) {
    for (std::int64_t k = group * p.out_each(); k < (group + 1) * p.out_each(); ++k) {
      for (std::int64_t i = 0; i < plane; ++i) {
        const std::size_t e = place(p.s.out_channels, plane, image, k, i);
        if (std::isnan(want[e])) {
          ASSERT_TRUE(std::isnan(got[e])) << "channel " << k << " pixel " << i;
        } else if (std::isfinite(want[e])) {
          ASSERT_NEAR(got[e], want[e], 1e-5) << "channel " << k << " pixel " << i;
        } else {
          ASSERT_EQ(got[e], want[e]) << "channel " << k << " pixel " << i;
        }
      }
    }
  }
}

// Spoils one group, then one more: each group's results depend only on whether it is spoiled itself.
void check(const Problem& p, float value, const UnarySpec& act, bool residual) {
  const std::vector<float> clean = Runner(p, act, residual).run();
  const auto spoiled = [&](std::initializer_list<std::int64_t> groups) {
    Runner r(p, act, residual);
    for (const std::int64_t g : groups) r.spoil(g * p.in_each() + g % p.in_each(), value);
    return r.run();
  };
  const std::int64_t a = 0, b = p.s.groups - 1;
  const std::vector<float> with_a = spoiled({a}), with_b = spoiled({b}), with_both = spoiled({a, b});
  for (std::int64_t g = 0; g < p.s.groups; ++g) {
    SCOPED_TRACE(g);
    if (g != a) expect_group(p, g, with_a, clean);
    expect_group(p, g, with_both, g == a ? with_a : (g == b ? with_b : clean));
  }
  const auto wild = [](float v) { return !(std::fabs(v) <= 1e30F); };
  EXPECT_TRUE(std::any_of(with_a.begin(), with_a.end(), wild) || act.op == Unary::tanh);
}

std::vector<Problem> problems() {
  const std::int64_t c = channel_block();
  return {
      problem(BlockedConv::direct, 2, 4, c / 2, c / 2, 3, 1, 1, 9, 14),
      problem(BlockedConv::direct, 4, 4, c / 4, c / 2, 5, 1, 1, 6, 7),
      problem(BlockedConv::direct, 2, 2, c / 2, 3 * c / 2, 1, 2, 1, 9, 8),  // single pixels are gathered
      problem(BlockedConv::direct, 2, 2, 3 * c / 2, c / 2, 3, 1, 2, 90, 40),
      problem(BlockedConv::winograd2, 2, 4, c / 2, c / 2, 3, 1, 1, 7, 9),
      problem(BlockedConv::winograd4, 4, 8, c / 4, c / 4, 3, 1, 1, 13, 17),
      problem(BlockedConv::winograd4, 2, 2, c / 2, c, 3, 1, 1, 60, 41),  // several blocks of tiles
      problem(BlockedConv::winograd2_lean, 2, 2, c / 2, c / 2, 3, 1, 1, 6, 5),
      problem(BlockedConv::winograd4_lean, 2, 4, 3 * c / 2, c / 2, 3, 1, 1, 10, 9),
      problem(BlockedConv::winograd4, 2, 4, c / 2, c / 2, 3, 1, 2, 11, 13),  // by phases
      problem(BlockedConv::strided, 2, 4, c / 2, c / 2, 3, 2, 1, 13, 30),
      problem(BlockedConv::strided, 4, 4, c / 4, c / 2, 3, 2, 1, 12, 11),
      problem(BlockedConv::listed, 1, 3, 5, 7, 1, 1, 1, 6, 7),
      problem(BlockedConv::listed, 1, 8, 2, 3, 1, 1, 1, 14, 15),
      problem(BlockedConv::listed, 1, 4, 6, 2 * c + 1, 1, 1, 1, 5, 5),
      problem(BlockedConv::listed, 1, 2, 7, c, 1, 1, 1, 5, 5),  // no vector spans groups
  };
}

TEST(BlockedConv, GroupsKeepTheirInfinities) {
  for_each_isa([] {
    int number = 0;
    for (const Problem& p : problems()) {
      SCOPED_TRACE(number++);
      for (const float value : {kInf, -kInf, kNan, 3e38F}) {
        SCOPED_TRACE(value);
        check(p, value, {}, false);
        if (::testing::Test::HasFatalFailure()) return;
      }
      check(p, kInf, {}, true);
      check(p, kNan, {Unary::tanh}, true);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(BlockedConv, GroupsKeepTheInfinitiesOfTheirWeights) {
  for_each_isa([] {
    for (const Problem& p : problems()) {
      const std::vector<float> clean = Runner(p, {}, false).run();
      Runner r(p, {}, false);
      r.w[at(p.in_each() + 1) % r.w.size()] = kInf;
      for (std::int64_t g = 1; g < p.s.groups; ++g) expect_group(p, g, r.run(), clean);
      r.spoil(p.s.in_channels - 1, kInf);
      for (std::int64_t g = 1; g + 1 < p.s.groups; ++g) expect_group(p, g, r.run(), clean);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(BlockedConv, GroupsKeepTheirInfinitiesWithThreads) {
  for (const int threads : {2, 5}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    for (const Problem& p : problems()) check(p, kInf, {Unary::relu}, true);
  }
}

}  // namespace
}  // namespace sdx::cpu
