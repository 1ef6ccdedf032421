#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/training/conv_dynamic_weights.h"
#include "kernels/cpu/conv/training/conv_grad_input.h"
#include "kernels/cpu/conv/training/conv_grad_weights.h"
#include "support/conv_problems.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::conv_shape;
using test::for_each_isa;
using test::for_each_product;
using test::Guarded;
using test::random_floats;

// Winograd's transforms lose up to 8e-6 of the result's maximum, and sums in float the rest.
void expect_close(Guarded<float>& got, const std::vector<double>& expected, const char* what) {
  double most = 0;
  for (const double v : expected) most = std::max(most, std::fabs(v));
  for (std::int64_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(got[i]), expected[static_cast<std::size_t>(i)], 2e-5 * most + 1e-6) << what << " " << i;
  }
}

struct Workspace {
  explicit Workspace(std::size_t bytes) : memory(static_cast<std::int64_t>(bytes)) {}
  Guarded<unsigned char> memory;
};

void check(const ConvShape& s) {
  SCOPED_TRACE(::testing::Message() << s.batch << "x" << s.in_channels << " to " << s.out_channels << ", " << s.groups
                                    << " groups, " << s.in[1] << "x" << s.in[2] << ", kernel " << s.kernel[1] << "x"
                                    << s.kernel[2] << ", stride " << s.stride[1] << "x" << s.stride[2]);
  const std::int64_t nx = s.batch * s.in_channels * volume(s.in), ny = s.batch * s.out_channels * volume(s.out);
  const std::int64_t nw = s.out_channels * (s.in_channels / s.groups) * volume(s.kernel);
  const std::vector<float> xv = random_floats(nx, 1), wv = random_floats(nw, 2), gv = random_floats(ny, 3);
  std::vector<double> y(gv.size()), dx(xv.size()), dw(wv.size()), db(static_cast<std::size_t>(s.out_channels));
  for_each_product(s, [&](std::int64_t i, std::int64_t k, std::int64_t o) {
    const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(k), c = static_cast<std::size_t>(o);
    y[c] += static_cast<double>(xv[a]) * wv[b];
    dx[a] += static_cast<double>(gv[c]) * wv[b];
    dw[b] += static_cast<double>(gv[c]) * xv[a];
  });
  for (std::int64_t o = 0; o < ny; ++o)
    db[static_cast<std::size_t>(o / volume(s.out) % s.out_channels)] += static_cast<double>(gv[static_cast<std::size_t>(o)]);
  Guarded<float> x(nx, 1, xv), w(nw, 3, wv), g(ny, 5, gv);
  Guarded<float> got_y(ny, 7), got_dx(nx, 1), got_dw(nw, 3), got_db(s.out_channels, 5);

  const DynamicWeightsConv plan = plan_dynamic_weights_conv(s);
  Workspace a(dynamic_weights_conv_workspace_bytes(plan));
  dynamic_weights_conv_f32(plan, x.data(), w.data(), nullptr, {}, got_y.data(), a.memory.data());
  expect_close(got_y, y, "y");
  const ConvGradInput of_input = plan_conv_grad_input(s);
  Workspace b(conv_grad_input_workspace_bytes(of_input));
  conv_grad_input_f32(of_input, g.data(), w.data(), got_dx.data(), b.memory.data());
  expect_close(got_dx, dx, "dx");
  ASSERT_TRUE(conv_grad_weights_supports(s));
  const ConvGradWeights of_weights = plan_conv_grad_weights(s);
  Workspace c(conv_grad_weights_workspace_bytes(of_weights));
  conv_grad_weights_f32(of_weights, x.data(), g.data(), got_dw.data(), c.memory.data());
  expect_close(got_dw, dw, "dw");
  Workspace d(static_cast<std::size_t>(s.batch * s.out_channels) * sizeof(float));
  conv_grad_bias_f32(s, g.data(), got_db.data(), d.memory.data());
  expect_close(got_db, db, "db");
}

TEST(ConvGrad, MatchesSumsOverAllProducts) {
  const ConvShape cases[] = {
      conv_shape(2, 3, 5, 1, {7, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}),
      conv_shape(3, 17, 33, 1, {6, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}),
      conv_shape(2, 16, 40, 1, {12, 3, 1, 1, 1, 1}, {12, 3, 1, 1, 1, 1}),
      conv_shape(2, 4, 6, 1, {8, 3, 2, 1, 1, 1}, {9, 3, 2, 1, 1, 1}),
      conv_shape(2, 19, 35, 1, {8, 3, 2, 1, 1, 0}, {11, 3, 2, 1, 0, 1}),
      conv_shape(2, 5, 7, 1, {8, 1}, {9, 1}),
      conv_shape(2, 70, 66, 1, {5, 1}, {4, 1}),
      conv_shape(2, 5, 7, 1, {8, 1, 2}, {9, 1, 3}),
      conv_shape(1, 5, 7, 1, {9, 5, 1, 1, 2, 2}, {9, 7, 1, 1, 3, 3}),
      conv_shape(1, 4, 5, 1, {11, 3, 1, 2, 2, 2}, {13, 3, 1, 3, 0, 1}),
      conv_shape(2, 4, 5, 1, {11, 3, 2, 2, 2, 2}, {13, 2, 3, 3, 1, 1}),
      conv_shape(2, 8, 12, 4, {6, 3, 1, 1, 1, 1}, {6, 3, 1, 1, 1, 1}),
      conv_shape(2, 6, 6, 6, {7, 3, 1, 1, 1, 1}, {20, 3, 1, 1, 1, 1}),
      conv_shape(2, 6, 6, 6, {9, 5, 2, 1, 2, 2}, {18, 3, 2, 1, 1, 1}),
      conv_shape(2, 6, 12, 6, {9, 3, 2, 1, 1, 1}, {8, 3, 1, 1, 1, 1}),
      conv_shape(2, 3, 4, 1, {1, 1}, {19, 5, 1, 1, 2, 2}),
      conv_shape(3, 2, 3, 1, {4, 4}, {4, 4}),
      conv_shape(2, 2, 3, 1, {2, 1, 1, 1, 1, 1}, {3, 1, 1, 1, 2, 0}),
      conv_shape(1, 2, 3, 1, {9, 3, 1, 1, 5, 4}, {4, 2, 4, 1, 0, 0}),
      conv_shape(40, 33, 17, 1, {4, 3, 1, 1, 1, 1}, {4, 3, 1, 1, 1, 1}),
      conv_shape(9, 16, 70, 1, {11, 3, 1, 1, 0, 1}, {23, 3, 1, 1, 1, 0}),
      conv_shape(1, 50, 16, 1, {5, 3, 1, 1, 2, 2}, {6, 3, 1, 1, 2, 0}),
  };
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    for_each_isa([&] {
      for (const ConvShape& s : cases) check(s);
    });
  }
}

// One weight's gradient, with the sum of its products' magnitudes, and that sum without the pixel at `odd`.
struct WeightGradient {
  double value = 0, size = 0, without = 0;
};

std::vector<WeightGradient> weight_gradients(const ConvShape& s, const std::vector<float>& x, const std::vector<float>& dy,
                                             const float* odd) {
  std::vector<WeightGradient> out(static_cast<std::size_t>(s.out_channels * s.in_channels * volume(s.kernel)));
  for_each_product(s, [&](std::int64_t i, std::int64_t k, std::int64_t o) {
    const float &a = x[static_cast<std::size_t>(i)], &b = dy[static_cast<std::size_t>(o)];
    WeightGradient& w = out[static_cast<std::size_t>(k)];
    const double product = static_cast<double>(a) * static_cast<double>(b);
    w.value += product;
    w.size += std::fabs(product);
    if (&a != odd && &b != odd) w.without += std::fabs(product);
  });
  return out;
}

// Each gradient by transforms is as exact as its own products allow, whatever lies beside them.
TEST(ConvGrad, OnePixelOfGreatValueDisturbsNoOtherWeight) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const ConvShape s = conv_shape(2, 18, 21, 1, {13, 3, 1, 1, 1, 1}, {15, 3, 1, 1, 1, 1});
  ASSERT_EQ(volume(s.in), 195);
  for_each_isa([&] {
    if (!plan_conv_grad_weights(s).by_winograd) return;
    for (const bool in_dy : {false, true}) {
      for (const float great : {-9999.0F, 1e7F, 1e30F, kInf, kNan}) {
        for (const std::int64_t at : {0, 3 * 195 + 6 * 15 + 3, 20 * 195 - 1}) {
          SCOPED_TRACE(::testing::Message() << great << " at " << at << (in_dy ? " of dy" : " of x"));
          std::vector<float> x = random_floats(2 * 18 * 195, 1), dy = random_floats(2 * 21 * 195, 3);
          for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = i % 3 == 0 ? dy[i] : 0.0F;  // as ReLU's gradient leaves it
          float* const odd = (in_dy ? dy : x).data() + at;
          *odd = great;
          const std::vector<WeightGradient> want = weight_gradients(s, x, dy, odd);
          const ConvGradWeights plan = plan_conv_grad_weights(s);
          Workspace room(conv_grad_weights_workspace_bytes(plan));
          std::vector<float> dw(want.size());
          conv_grad_weights_f32(plan, x.data(), dy.data(), dw.data(), room.memory.data());
          double usual = 0;
          for (const WeightGradient& w : want) usual = std::max(usual, w.without);
          for (std::size_t i = 0; i < dw.size(); ++i) {
            if (std::isfinite(want[i].size)) {
              ASSERT_NEAR(dw[i], want[i].value, 2e-6 * want[i].size + 2e-5 * usual) << i;
            } else if (std::isnan(want[i].value)) {
              ASSERT_TRUE(std::isnan(dw[i])) << i;
            } else {
              ASSERT_EQ(dw[i], want[i].value) << i;
            }
          }
        }
      }
    }
  });
}

TEST(ConvGrad, NothingToSumGivesZeros) {
  const ConvShape s = conv_shape(0, 2, 3, 1, {5, 3}, {5, 3});
  const ConvGradWeights plan = plan_conv_grad_weights(s);
  Workspace workspace(conv_grad_weights_workspace_bytes(plan));
  Guarded<float> dw(54, 1, random_floats(54, 1));
  conv_grad_weights_f32(plan, nullptr, nullptr, dw.data(), workspace.memory.data());
  for (std::int64_t i = 0; i < dw.size(); ++i) EXPECT_EQ(dw[i], 0.0F);
  Guarded<float> db(3, 1, random_floats(3, 1));
  conv_grad_bias_f32(s, nullptr, db.data(), nullptr);
  for (std::int64_t i = 0; i < db.size(); ++i) EXPECT_EQ(db[i], 0.0F);
}

}  // namespace
}  // namespace sdx::cpu
