#include "kernels/cpu/conv/plain/conv.h"

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "kernels/cpu/conv/plain/conv_shifted.h"
#include "kernels/cpu/conv/plain/conv_transpose.h"
#include "kernels/cpu/conv/plain/conv_transpose_phases.h"
#include "kernels/cpu/conv/plain/conv_transpose_tiles.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "support/conv_problems.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::Axis;
using test::conv_shape;
using test::for_each_isa;
using test::for_each_product;
using test::Guarded;
using test::kNone;
using test::plain_conv;
using test::random_floats;

void check(const ConvShape& s, ConvAlgorithm algorithm, bool with_residual, double tolerance) {
  const std::int64_t cg = s.in_channels / s.groups;
  const std::int64_t nx = s.batch * s.in_channels * volume(s.in);
  const std::int64_t nw = s.out_channels * cg * volume(s.kernel);
  const std::int64_t ny = s.batch * s.out_channels * volume(s.out);
  const std::vector<float> xv = random_floats(nx, 1);
  const std::vector<float> wv = random_floats(nw, 2);
  const std::vector<float> rv = random_floats(ny, 4);
  Guarded<float> x(nx, 1, xv);
  Guarded<float> bias(s.out_channels, 3, random_floats(s.out_channels, 3));
  std::vector<char> raw(static_cast<std::size_t>(nw) * 4 + 1);
  std::memcpy(raw.data() + 1, wv.data(), static_cast<std::size_t>(nw) * 4);
  Guarded<float> packed(static_cast<std::int64_t>(conv_packed_bytes(algorithm, s) / 4));
  conv_pack_f32(algorithm, s, raw.data() + 1, packed.data());
  Guarded<float> y(ny, 5, rv);
  const UnarySpec act = with_residual ? UnarySpec{Unary::relu} : UnarySpec{Unary::tanh};
  conv_f32(algorithm, s, x.data(), packed.data(), bias.data(), with_residual ? y.data() : nullptr, act, y.data());
  const std::vector<double> want = plain_conv(s, xv, wv);
  double scale = 1;
  for (const double v : want) scale = std::max(scale, std::fabs(v));
  for (std::int64_t i = 0; i < ny; ++i) {
    double v = want[static_cast<std::size_t>(i)] + bias[i / volume(s.out) % s.out_channels];
    v = with_residual ? std::max(0.0, v + rv[static_cast<std::size_t>(i)]) : std::tanh(v);
    ASSERT_NEAR(y[i], v, tolerance * scale) << "element " << i;
  }
}

const std::vector<ConvShape>& general_shapes() {
  static const std::vector<ConvShape> all = {
      conv_shape(1, 3, 8, 1, kNone, {9, 3, 1, 1, 1, 1}, {11, 3, 1, 1, 1, 1}),
      conv_shape(2, 5, 7, 1, kNone, {8, 3, 2, 1, 1, 0}, {13, 3, 2, 1, 1, 1}),
      conv_shape(1, 3, 16, 1, kNone, {23, 7, 2, 1, 3, 3}, {29, 7, 2, 1, 3, 3}),
      conv_shape(1, 8, 20, 1, kNone, {7, 1, 1, 1, 0, 0}, {7, 1, 1, 1, 0, 0}),
      conv_shape(1, 70, 30, 1, kNone, {14, 1, 1, 1, 0, 0}, {14, 1, 1, 1, 0, 0}),
      conv_shape(1, 8, 20, 1, kNone, {7, 1, 2, 1, 0, 0}, {9, 1, 2, 1, 0, 0}),
      conv_shape(2, 8, 12, 4, kNone, {6, 3, 1, 1, 1, 1}, {10, 3, 1, 1, 1, 1}),
      conv_shape(1, 4, 6, 2, kNone, {12, 3, 1, 2, 2, 2}, {12, 3, 1, 3, 3, 3}),
      conv_shape(1, 6, 5, 1, kNone, kNone, {40, 5, 3, 2, 4, 1}),
      conv_shape(1, 2, 3, 1, {5, 3, 2, 1, 1, 1}, {6, 2, 1, 1, 0, 1}, {7, 3, 1, 1, 1, 1}),
      conv_shape(1, 60, 5, 1, kNone, {5, 3, 1, 1, 1, 1}, {60, 3, 1, 1, 1, 1}),
      // Patches of 4 columns: whole images, a rest, rows outside, and a block of K that ends within a patch.
      conv_shape(2, 3, 24, 1, kNone, {40, 4, 4, 1, 0, 0}, {76, 4, 4, 1, 0, 0}),
      conv_shape(1, 3, 20, 1, {3, 2, 1, 1, 0, 0}, {19, 3, 3, 2, 2, 3}, {47, 4, 4, 1, 0, 0}),
      conv_shape(1, 33, 18, 1, kNone, {32, 5, 5, 1, 0, 0}, {76, 4, 4, 1, 0, 0}),
      conv_shape(1, 3, 2, 1, kNone, {4, 3, 1, 1, 5, 5}, {4, 3, 1, 1, 6, 7}),     // padding wider than the image
      conv_shape(1, 2, 3, 1, kNone, {6, 3, 1, 1, -1, 1}, {9, 3, 1, 1, -2, -1}),  // negative padding crops
      conv_shape(2, 4, 6, 2, kNone, {40, 5, 2, 2, 3, 1}, kNone),                 // one column
      conv_shape(1, 4, 6, 1, {3, 2, 1, 1, 0, 1}, {40, 5, 1, 1, 2, 2}, kNone),
      conv_shape(1, 4, 6, 1, kNone, {20, 5, 1, 1, 2, 2}, {1, 2, 1, 1, 1, 0}),  // one column of results from two taps
  };
  return all;
}

TEST(KernelsConv, ImplicitGemmMatchesTheDefinition) {
  for_each_isa([] {
    for (std::size_t i = 0; i < general_shapes().size(); ++i) {
      SCOPED_TRACE(i);
      check(general_shapes()[i], ConvAlgorithm::gemm, false, 1e-5);
      check(general_shapes()[i], ConvAlgorithm::gemm, true, 1e-5);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(KernelsConv, ManyImagesOfFewPixels) {
  for_each_isa([] {
    for (const ConvShape& s : {conv_shape(37, 5, 7, 1, kNone, kNone, {4, 3, 1, 1, 1, 1}),
                               conv_shape(9, 130, 20, 1, kNone, kNone, {4, 3, 2, 1, 1, 1}),  // two blocks of sums
                               conv_shape(131, 4, 9, 1, kNone, kNone, {1, 3, 1, 1, 1, 1}),
                               conv_shape(5, 6, 8, 1, kNone, {3, 3, 1, 1, 1, 1}, {3, 2, 1, 2, 1, 1}),
                               conv_shape(6, 3, 5, 1, {2, 2, 1, 1, 1, 0}, {3, 3, 2, 1, 1, 1}, {2, 1, 1, 1, 0, 0}),
                               conv_shape(7, 4, 6, 1, kNone, {5, 3, 2, 1, 1, 1}, kNone),  // one column
                               conv_shape(4, 3, 2, 1, kNone, kNone, {3, 3, 1, 1, 4, -1})}) {
      check(s, ConvAlgorithm::gemm, false, 1e-5);
      check(s, ConvAlgorithm::gemm, true, 1e-5);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(KernelsConv, RowsReadInPlace) {
  for_each_isa([] {
    for (const ConvShape& s : {
             conv_shape(1, 40, 20, 1, kNone, kNone, {600, 11, 1, 5, 25, 25}),   // sums in two parts that cut a channel
             conv_shape(1, 3, 120, 1, kNone, kNone, {530, 7, 1, 1, 3, 3}),      // two blocks of columns
             conv_shape(2, 1, 33, 1, kNone, kNone, {401, 10, 5, 1, 0, 0}),      // wav2vec's first: phases of rows
             conv_shape(1, 12, 24, 4, kNone, kNone, {70, 128, 1, 1, 64, 63}),   // wav2vec's positions
             conv_shape(1, 6, 5, 1, kNone, kNone, {190, 4, 2, 3, 4, 1}),        // taps in both phases
             conv_shape(1, 4, 6, 1, kNone, kNone, {190, 8, 4, 1, -3, -2}),      // cropping
             conv_shape(1, 2, 4, 1, kNone, kNone, {3, 3, 1, 1, 50, 50}),        // mostly padding
             conv_shape(1, 5, 9, 1, kNone, {333, 9, 1, 2, 8, 8}, kNone),        // one column
             conv_shape(1, 270, 300, 1, kNone, kNone, {77, 2, 1, 40, 20, 20}),  // two blocks of rows, not with short vectors
         }) {
      ConvShape row = s;
      if (s.in[2] == 1) row = conv_shape(1, 5, 9, 1, kNone, kNone, {333, 9, 1, 2, 8, 8});
      EXPECT_EQ(conv_is_shifted(row), s.out_channels / s.groups <= 128 || gemm_kernels().nr > kShortPanel);
      for (const int threads : {1, 3}) {
        ThreadPool pool(threads);
        const PoolScope scope(pool);
        check(s, ConvAlgorithm::gemm, false, 1e-5);
        check(s, ConvAlgorithm::gemm, true, 1e-5);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
    // Copies would be longer than patches.
    EXPECT_FALSE(conv_is_shifted(conv_shape(1, 4, 8, 1, kNone, kNone, {5000, 3, 1, 2000, 2000, 2000})));
    EXPECT_FALSE(conv_is_shifted(conv_shape(1, 4, 8, 1, kNone, kNone, {400, 2, 3, 1, 0, 0})));
  });
}

TEST(KernelsConv, FewPositions) {
  for_each_isa([] {
    for (std::int64_t positions = 1; positions <= 17; ++positions) {
      SCOPED_TRACE(positions);
      check(conv_shape(1, 3, 29, 1, kNone, kNone, {positions, 3, 1, 1, 1, 1}), ConvAlgorithm::gemm, positions % 2 == 0, 1e-5);
      check(conv_shape(1, 130, 43, 1, kNone, kNone, {positions, 1, 1, 1, 0, 0}), ConvAlgorithm::gemm, positions % 2 != 0, 1e-5);
      if (::testing::Test::HasFatalFailure()) return;
    }
    for (const ConvShape& s : {conv_shape(1, 1, 258, 1, kNone, kNone, {640, 256, 128, 1, 0, 0}),  // a spectrum
                               conv_shape(1, 300, 1, 1, kNone, kNone, {6, 3, 2, 1, 1, 1}),        // one channel, blocks of sums
                               conv_shape(3, 5, 15, 1, kNone, kNone, {7, 3, 2, 2, 2, 1}),         // images side by side
                               conv_shape(1, 20, 31, 1, kNone, {3, 3, 1, 1, 1, 1}, {4, 3, 1, 1, 1, 1}),
                               conv_shape(1, 4, 17, 1, {4, 2, 2, 1, 0, 0}, {3, 2, 1, 2, 1, 0}, {4, 3, 3, 1, 2, 2}),
                               conv_shape(1, 6, 15, 1, kNone, {2, 3, 1, 1, 4, 4}, {1, 1, 1, 1, 0, 0}),  // only padding in reach
                               conv_shape(1, 6, 16, 1, kNone, {6, 3, 1, 1, -1, -1}, {5, 3, 1, 1, -2, 1})}) {
      check(s, ConvAlgorithm::gemm, false, 1e-5);
      check(s, ConvAlgorithm::gemm, true, 1e-5);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(KernelsConv, DepthwiseMatchesTheDefinition) {
  const std::vector<ConvShape> shapes = {
      conv_shape(1, 6, 6, 6, kNone, {9, 3, 1, 1, 1, 1}, {11, 3, 1, 1, 1, 1}),
      conv_shape(2, 5, 5, 5, kNone, {16, 3, 2, 1, 1, 1}, {33, 3, 2, 1, 1, 1}),
      conv_shape(1, 4, 8, 4, kNone, {15, 5, 1, 1, 2, 2}, {70, 5, 1, 1, 2, 2}),
      conv_shape(1, 3, 3, 3, kNone, {15, 5, 2, 1, 1, 2}, {17, 5, 3, 1, 2, 2}),
      conv_shape(1, 3, 9, 3, kNone, {14, 3, 1, 2, 2, 2}, {18, 3, 2, 3, 3, 3}),
      conv_shape(1, 3, 3, 3, kNone, {7, 1, 1, 1, 0, 0}, {7, 1, 1, 1, 0, 0}),
      conv_shape(1, 2, 2, 2, kNone, {14, 13, 1, 1, 6, 6}, {15, 11, 1, 1, 5, 5}),  // 143 taps: several passes
      conv_shape(1, 2, 2, 2, {6, 3, 1, 1, 1, 1}, {5, 3, 2, 1, 1, 1}, {8, 3, 1, 1, 1, 1}),
      conv_shape(1, 3, 3, 3, kNone, kNone, {31, 4, 1, 1, 3, 0}),
      conv_shape(1, 1, 2, 1, kNone, {300, 3, 1, 1, 1, 1}, {310, 3, 1, 1, 1, 1}),  // several bands
      conv_shape(1, 2, 2, 2, kNone, {4, 3, 1, 1, 5, 5}, {4, 3, 1, 1, 6, 7}),
      conv_shape(1, 2, 2, 2, kNone, {6, 3, 1, 1, -1, 1}, {9, 3, 2, 1, -2, -1}),
      conv_shape(1, 3, 3, 3, kNone, {7, 5, 1, 1, 2, 2}, {7, 5, 1, 1, 2, 2}),
      conv_shape(1, 2, 4, 2, kNone, {14, 5, 2, 1, 2, 2}, {14, 5, 2, 1, 2, 2}),
      conv_shape(1, 2, 2, 2, kNone, {29, 5, 2, 1, 1, 2}, {33, 5, 1, 1, 2, 1}),
      conv_shape(1, 2, 2, 2, kNone, {4, 3, 1, 1, 1, 0}, {5, 3, 1, 1, 1, 1}),
      conv_shape(1, 2, 2, 2, kNone, {10, 3, 2, 1, 1, 1}, {6, 3, 2, 1, 0, 1}),
      conv_shape(1, 1, 1, 1, kNone, {2, 5, 1, 1, 2, 2}, {1, 5, 1, 1, 2, 2}),
      conv_shape(1, 2, 2, 2, kNone, {90, 3, 2, 1, 0, 1}, {400, 3, 2, 1, 1, 1}),  // several bands
      conv_shape(1, 3, 3, 3, kNone, {11, 7, 1, 1, 3, 3}, {19, 7, 1, 1, 3, 3}),
      conv_shape(2, 2, 4, 2, kNone, {15, 7, 2, 1, 3, 2}, {18, 7, 2, 1, 2, 3}),
      conv_shape(1, 2, 2, 2, kNone, {90, 7, 2, 1, 0, 1}, {80, 7, 1, 2, 6, 1}),  // several bands
      conv_shape(1, 3, 6, 3, kNone, {20, 3, 1, 2, 2, 2}, {21, 3, 1, 2, 2, 2}),
      conv_shape(1, 2, 2, 2, kNone, {150, 5, 1, 3, 6, 6}, {90, 5, 1, 1, 2, 2}),  // several bands
      conv_shape(1, 2, 2, 2, kNone, {4, 3, 1, 5, 5, 5}, {9, 3, 1, 4, 4, 4}),     // fewer rows than the dilation
      conv_shape(2, 3, 6, 3, {5, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}, {12, 3, 1, 1, 1, 1}),
      conv_shape(1, 2, 2, 2, {6, 3, 2, 2, 3, 2}, {9, 3, 2, 1, 1, 1}, {12, 3, 2, 1, 1, 1}),
      conv_shape(1, 2, 2, 2, {2, 3, 1, 1, 4, 4}, {5, 5, 1, 2, 4, 4}, {6, 5, 1, 1, 2, 2}),  // results without a tap
      // Depth slices that several slices of outputs read.
      conv_shape(1, 2, 2, 2, {7, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 0, 0}, {12, 3, 1, 1, 0, 0}),
      conv_shape(2, 2, 2, 2, {5, 2, 1, 1, 0, 1}, {9, 4, 1, 1, 0, 0}, {13, 3, 2, 1, 0, 0}),
      conv_shape(1, 2, 2, 2, {9, 7, 2, 1, 3, 3}, {30, 3, 1, 1, 1, 1}, {12, 3, 1, 1, 1, 1}),   // more taps than in one pass
      conv_shape(1, 2, 2, 2, {4, 3, 1, 1, 1, 1}, {300, 3, 1, 1, 0, 1}, {40, 3, 1, 1, 1, 1}),  // several bands
      // More rows than are computed at once, and rows and columns outside on each side.
      conv_shape(1, 2, 2, 2, kNone, {56, 7, 1, 1, 3, 3}, {56, 7, 1, 1, 3, 3}),
      conv_shape(1, 2, 2, 2, kNone, {43, 5, 1, 1, 9, 9}, {35, 5, 1, 1, 9, 20}),
      conv_shape(1, 2, 2, 2, kNone, {57, 5, 2, 1, 2, 2}, {57, 5, 2, 1, 2, 2}),
      conv_shape(1, 2, 2, 2, kNone, {31, 7, 2, 1, 12, 9}, {40, 7, 2, 1, 21, 33}),
      conv_shape(1, 2, 2, 2, kNone, {33, 3, 2, 1, -2, 1}, {50, 3, 2, 1, -3, 4}),
  };
  for_each_isa([&] {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      SCOPED_TRACE(i);
      ASSERT_TRUE(conv_supports(ConvAlgorithm::depthwise, shapes[i]));
      check(shapes[i], ConvAlgorithm::depthwise, false, 1e-5);
      check(shapes[i], ConvAlgorithm::depthwise, true, 1e-5);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(KernelsConv, PixelsAndFewFilters) {
  for_each_isa([] {
    for (const ConvShape& s : {conv_shape(3, 37, 21, 1, kNone, {1, 1, 1, 1, 0, 0}, {1, 1, 1, 1, 0, 0}),
                               conv_shape(1, 400, 9, 1, kNone, {1, 1, 1, 1, 0, 0}, {1, 1, 1, 1, 0, 0}),
                               conv_shape(2, 5, 18, 1, kNone, {9, 1, 1, 1, 0, 0}, {15, 1, 1, 1, 0, 0})}) {
      check(s, ConvAlgorithm::pixel, false, 1e-5);
      check(s, ConvAlgorithm::pixel, true, 1e-5);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
  EXPECT_EQ(conv_choose(conv_shape(1, 8, 8, 1, kNone, {1, 1, 1, 1, 0, 0}, {1, 1, 1, 1, 0, 0})), ConvAlgorithm::pixel);
  EXPECT_EQ(conv_choose(conv_shape(1, 1, 8, 1, kNone, {28, 5, 1, 1, 2, 2}, {28, 5, 1, 1, 2, 2})), ConvAlgorithm::depthwise);
  EXPECT_EQ(conv_choose(conv_shape(1, 1, 64, 1, kNone, {28, 5, 1, 1, 2, 2}, {28, 5, 1, 1, 2, 2})), ConvAlgorithm::gemm);
  EXPECT_EQ(conv_choose(conv_shape(1, 8, 8, 2, kNone, {1, 1, 1, 1, 0, 0}, {1, 1, 1, 1, 0, 0})), ConvAlgorithm::gemm);
}

TEST(KernelsConv, ThreadCountsAgree) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    check(conv_shape(2, 16, 32, 1, kNone, {20, 3, 1, 1, 1, 1}, {21, 3, 1, 1, 1, 1}), ConvAlgorithm::gemm, true, 1e-5);
    check(conv_shape(1, 64, 70, 1, kNone, {7, 3, 1, 1, 1, 1}, {7, 3, 1, 1, 1, 1}), ConvAlgorithm::gemm, true, 1e-5);
    check(conv_shape(2, 16, 16, 16, kNone, {20, 3, 1, 1, 1, 1}, {21, 3, 1, 1, 1, 1}), ConvAlgorithm::depthwise, true, 1e-5);
  }
}

TEST(KernelsConv, WinogradMatchesTheDefinition) {
  const std::vector<ConvShape> shapes = {
      conv_shape(1, 3, 5, 1, kNone, {9, 3, 1, 1, 1, 1}, {11, 3, 1, 1, 1, 1}),
      conv_shape(2, 17, 50, 1, kNone, {7, 3, 1, 1, 1, 1}, {7, 3, 1, 1, 1, 1}),
      conv_shape(1, 16, 16, 1, kNone, {40, 3, 1, 1, 1, 1}, {41, 3, 1, 1, 1, 1}),
      conv_shape(1, 20, 70, 1, kNone, {13, 3, 1, 1, 0, 0}, {14, 3, 1, 1, 0, 0}),
      conv_shape(1, 4, 3, 1, kNone, {3, 3, 1, 1, 0, 0}, {3, 3, 1, 1, 0, 0}),
      conv_shape(1, 400, 9, 1, kNone, {6, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}),
      conv_shape(1, 5, 6, 1, kNone, {8, 3, 1, 1, 2, 0}, {8, 3, 1, 1, 0, 2}),
  };
  for_each_isa([&] {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      SCOPED_TRACE(i);
      ASSERT_TRUE(conv_supports(ConvAlgorithm::winograd4, shapes[i]));
      check(shapes[i], ConvAlgorithm::winograd2, false, 2e-6);
      check(shapes[i], ConvAlgorithm::winograd2, true, 2e-6);
      check(shapes[i], ConvAlgorithm::winograd4, false, 8e-6);
      check(shapes[i], ConvAlgorithm::winograd4, true, 8e-6);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
  for (const int threads : {2, 3, 4}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    check(conv_shape(1, 32, 200, 1, kNone, {7, 3, 1, 1, 1, 1}, {7, 3, 1, 1, 1, 1}), ConvAlgorithm::winograd2, true, 2e-6);
    check(conv_shape(2, 16, 32, 1, kNone, {50, 3, 1, 1, 1, 1}, {50, 3, 1, 1, 1, 1}), ConvAlgorithm::winograd4, true, 1e-5);
  }
}

// Each output is as exact as its own window allows, whatever lies beside it: a value for "no data", an infinity, NaN.
TEST(KernelsConv, OnePixelOfGreatValueDisturbsNoOther) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const ConvShape s = conv_shape(2, 18, 21, 1, kNone, {13, 3, 1, 1, 1, 1}, {15, 3, 1, 1, 1, 1});
  const std::vector<float> w = random_floats(18 * 21 * 9, 2);
  for_each_isa([&] {
    for (const float great : {-9999.0F, 1e6F, 3e38F, kInf, kNan}) {
      for (const std::int64_t at : {0, 18 * 195 + 6 * 15 + 3}) {
        std::vector<float> x = random_floats(2 * 18 * 195, 1), sizes = x, weights = w;
        x[static_cast<std::size_t>(at)] = sizes[static_cast<std::size_t>(at)] = great;
        for (float& v : sizes) v = std::fabs(v);
        for (float& v : weights) v = std::fabs(v);
        const std::vector<double> want = plain_conv(s, x, w), scale = plain_conv(s, sizes, weights);
        sizes[static_cast<std::size_t>(at)] = 0.0F;
        const std::vector<double> without = plain_conv(s, sizes, weights);
        for (const ConvAlgorithm algorithm : {ConvAlgorithm::winograd2, ConvAlgorithm::winograd4}) {
          std::vector<float> packed(conv_packed_bytes(algorithm, s) / 4), y(want.size());
          conv_pack_f32(algorithm, s, w.data(), packed.data());
          conv_f32(algorithm, s, x.data(), packed.data(), nullptr, nullptr, {}, y.data());
          for (std::size_t i = 0; i < y.size(); ++i) {
            if (std::isfinite(scale[i]) && scale[i] < 1e38) {
              // Taps are known to a few roundings of the filter's largest.
              const double of_taps = scale[i] > without[i] ? 1e-6 * std::fabs(static_cast<double>(great)) : 0.0;
              ASSERT_NEAR(y[i], want[i], 2e-6 * scale[i] + of_taps) << great << " at " << at << ", output " << i;
            } else {
              ASSERT_FALSE(std::isfinite(y[i]) && !(scale[i] < 1e39)) << great << " at " << at << ", output " << i;
              ASSERT_EQ(std::isnan(y[i]), std::isnan(want[i])) << great << " at " << at << ", output " << i;
            }
          }
        }
      }
    }
  });
}

// A transposed convolution by its definition: where a convolution reads, it adds.
std::vector<double> transposed(const ConvShape& s, const std::vector<float>& xv, const std::vector<float>& wv) {
  ConvShape back = s;
  std::swap(back.in_channels, back.out_channels), std::swap(back.in, back.out);
  std::vector<double> want(static_cast<std::size_t>(s.batch * s.out_channels * volume(s.out)));
  for_each_product(back, [&](std::int64_t y, std::int64_t w, std::int64_t x) {
    want[static_cast<std::size_t>(y)] += static_cast<double>(xv[static_cast<std::size_t>(x)]) * wv[static_cast<std::size_t>(w)];
  });
  return want;
}

// Another way of computing a transposed convolution.
struct TransposeForm {
  std::size_t (*packed_bytes)(const ConvShape&);
  void (*pack)(const ConvShape&, const void*, float*);
  std::size_t (*workspace_bytes)(const ConvShape&);
  void (*run)(const ConvShape&, const float*, const float*, const float*, const UnarySpec&, float*, void*);
  double tolerance;
};
constexpr TransposeForm kPhases = {conv_transpose_phases_packed_bytes, conv_transpose_phases_pack_f32,
                                   conv_transpose_phases_workspace_bytes, conv_transpose_phases_f32, 1e-5};
constexpr TransposeForm kTiles = {conv_transpose_tiles_packed_bytes, conv_transpose_tiles_pack_f32,
                                  conv_transpose_tiles_workspace_bytes, conv_transpose_tiles_f32, 1e-4};

template <class Check>
void check_form(const TransposeForm& form, const ConvShape& s, const float* x, const std::vector<float>& weights,
                const float* bias, Guarded<float>& y, const Check& check) {
  Guarded<float> packed(static_cast<std::int64_t>(form.packed_bytes(s) / 4));
  form.pack(s, weights.data(), packed.data());
  Guarded<float> workspace(static_cast<std::int64_t>(form.workspace_bytes(s) / 4));
  std::fill_n(y.data(), s.batch * s.out_channels * volume(s.out), -1.0F);
  form.run(s, x, packed.data(), bias, {Unary::relu}, y.data(), workspace.data());
  check(form.tolerance);
}

TEST(KernelsConv, TransposeMatchesTheDefinition) {
  struct Case {
    ConvShape s;
  };
  // out = (in - 1) stride + (kernel - 1) dilation + 1 + output_padding - pad - pad_end
  const auto make = [](std::int64_t batch, std::int64_t c, std::int64_t m, std::int64_t groups, Axis h, Axis w,
                       std::int64_t extra) {
    ConvShape s;
    s.batch = batch, s.in_channels = c, s.out_channels = m, s.groups = groups;
    const Axis axes[3] = {kNone, h, w};
    for (int i = 0; i < 3; ++i) {
      s.in[i] = axes[i].in, s.kernel[i] = axes[i].kernel, s.stride[i] = axes[i].stride;
      s.dilation[i] = axes[i].dilation, s.pad[i] = axes[i].pad;
      s.out[i] = (axes[i].in - 1) * axes[i].stride + (axes[i].kernel - 1) * axes[i].dilation + 1 - axes[i].pad - axes[i].pad_end +
                 (i == 2 ? extra : 0);
    }
    return s;
  };
  const std::vector<ConvShape> shapes = {
      make(1, 3, 4, 1, {5, 3, 1, 1, 0, 0}, {6, 3, 1, 1, 0, 0}, 0),
      make(2, 4, 6, 2, {5, 3, 2, 1, 1, 1}, {7, 3, 2, 1, 1, 1}, 1),
      make(1, 8, 3, 1, {6, 2, 2, 1, 0, 0}, {9, 2, 2, 1, 0, 0}, 0),
      make(1, 2, 3, 1, {4, 3, 3, 2, 2, 1}, {5, 4, 1, 2, 1, 2}, 0),
      make(1, 5, 3, 1, {4, 4, 2, 1, 1, 1}, {19, 4, 2, 1, 1, 1}, 0),
      make(1, 3, 2, 1, {3, 2, 2, 1, 0, 0}, {37, 2, 2, 1, 0, 0}, 1),  // rows and a column that no window covers
      make(1, 3, 2, 1, {3, 3, 3, 1, 0, 0}, {14, 4, 4, 1, 0, 3}, 0),
      make(1, 3, 2, 1, {2, 2, 1, 1, 0, 0}, {13, 7, 5, 1, 2, 1}, 0),
      make(1, 3, 2, 1, {2, 1, 1, 1, 0, 0}, {1, 2, 9, 1, 0, 0}, 0),   // a stride wider than the result
      make(2, 3, 3, 3, {6, 4, 2, 1, 1, 1}, {19, 4, 2, 1, 1, 1}, 0),  // one input channel per group
      make(1, 2, 6, 2, {5, 3, 1, 2, 1, 2}, {9, 5, 3, 2, 4, 1}, 1),
      make(1, 2, 2, 2, {4, 2, 3, 1, 0, 0}, {17, 2, 2, 1, 1, 1}, 0),
      make(1, 2, 4, 2, {3, 3, 1, 1, 2, 2}, {3, 9, 4, 1, 3, 5}, 2),
      // Windows that are multiples of their strides: one row, cut and cropped more than a stride, three taps for each phase, and
      // results that no window covers.
      make(2, 3, 9, 1, {1, 1, 1, 1, 0, 0}, {21, 16, 8, 1, 4, 4}, 0),
      make(1, 4, 17, 1, {5, 4, 2, 1, 3, 2}, {9, 4, 2, 1, -1, -2}, 0),
      make(3, 2, 11, 1, {4, 6, 3, 1, 2, 2}, {40, 6, 2, 1, 1, 0}, 1),
      make(1, 2, 32, 1, {2, 3, 1, 1, 1, 1}, {1, 4, 2, 1, 0, 0}, 0),
      // Phases with the extents of the input.
      make(1, 5, 3, 1, {4, 4, 2, 1, 1, 1}, {4, 4, 2, 1, 1, 1}, 0),
      make(3, 4, 6, 2, {7, 4, 2, 1, 1, 1}, {9, 3, 2, 1, 1, 0}, 0),
      make(1, 3, 2, 1, {5, 9, 3, 1, 3, 3}, {11, 7, 4, 1, 2, 1}, 0),
      make(1, 2, 3, 1, {2, 7, 2, 1, 2, 3}, {1, 12, 2, 1, 5, 5}, 0),  // distances longer than the image
      make(1, 2, 3, 1, {6, 3, 2, 2, 2, 1}, {8, 3, 1, 2, 2, 2}, 0),
      // Windows side by side, a few rows at a time.
      make(2, 6, 200, 2, {19, 2, 2, 1, 0, 0}, {28, 2, 2, 1, 0, 0}, 0),
      make(1, 3, 60, 1, {11, 3, 3, 1, 0, 0}, {37, 4, 4, 1, 0, 0}, 0),
      // Tiles.
      make(2, 33, 17, 1, {14, 4, 2, 1, 1, 1}, {15, 4, 2, 1, 1, 1}, 0),
      make(1, 32, 8, 1, {13, 6, 3, 1, 1, 2}, {17, 8, 4, 1, 2, 2}, 0),
  };
  for_each_isa([&] {
    for (const ConvShape& s : shapes) {
      const std::int64_t mg = s.out_channels / s.groups;
      const std::int64_t nx = s.batch * s.in_channels * volume(s.in), nw = s.in_channels * mg * volume(s.kernel);
      const std::int64_t ny = s.batch * s.out_channels * volume(s.out);
      const std::vector<float> xv = random_floats(nx, 1), wv = random_floats(nw, 2), bv = random_floats(s.out_channels, 3);
      const std::vector<double> want = transposed(s, xv, wv);
      Guarded<float> packed(static_cast<std::int64_t>(conv_transpose_packed_bytes(s) / 4));
      conv_transpose_pack_f32(s, wv.data(), packed.data());
      Guarded<float> workspace(static_cast<std::int64_t>(conv_transpose_workspace_bytes(s) / 4));
      Guarded<float> x(nx, 1, xv), y(ny, 1), bias(s.out_channels, 1, bv);
      const auto check = [&](double tolerance) {
        for (std::int64_t i = 0; i < ny; ++i) {
          const double v = want[static_cast<std::size_t>(i)] + bv[static_cast<std::size_t>(i / volume(s.out) % s.out_channels)];
          ASSERT_NEAR(y[i], std::max(0.0, v), tolerance);
        }
      };
      conv_transpose_f32(s, x.data(), packed.data(), bias.data(), {Unary::relu}, y.data(), workspace.data());
      check(1e-5);
      if (conv_transpose_suits_tiles(s)) check_form(kTiles, s, x.data(), wv, bias.data(), y, check);
      if (!conv_transpose_has_phases(s)) continue;
      check_form(kPhases, s, x.data(), wv, bias.data(), y, check);
    }
  });
}

// Extents may be 0 in a run of a model that was compiled for others.
TEST(KernelsConv, TransposeOfNothing) {
  ConvShape s;
  s.in_channels = s.out_channels = 32;
  for (int i = 1; i < 3; ++i) s.in[i] = s.out[i] = 0, s.kernel[i] = 4, s.stride[i] = 2, s.pad[i] = 1;
  EXPECT_EQ(conv_transpose_tiles_workspace_bytes(s), 0U);
  Guarded<float> packed(static_cast<std::int64_t>(conv_transpose_tiles_packed_bytes(s) / 4));
  conv_transpose_tiles_f32(s, nullptr, packed.data(), nullptr, {}, nullptr, nullptr);
}

TEST(KernelsConv, ChoosesDepthwiseForOneChannelPerGroup) {
  EXPECT_EQ(conv_choose(conv_shape(1, 6, 6, 6, kNone, {9, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1})), ConvAlgorithm::depthwise);
  EXPECT_EQ(conv_choose(conv_shape(1, 6, 6, 1, kNone, {9, 1, 1, 1, 0, 0}, {9, 1, 1, 1, 0, 0})), ConvAlgorithm::gemm);
  const ConvShape large = conv_shape(1, 64, 64, 1, kNone, {56, 3, 1, 1, 1, 1}, {56, 3, 1, 1, 1, 1});
  EXPECT_EQ(conv_choose(large), ConvAlgorithm::winograd4);
  EXPECT_EQ(conv_choose(large, true), ConvAlgorithm::gemm);
  EXPECT_FALSE(
      conv_supports(ConvAlgorithm::winograd2, conv_shape(1, 64, 64, 1, kNone, {56, 3, 2, 1, 1, 1}, {56, 3, 1, 1, 1, 1})));
}

}  // namespace
}  // namespace sdx::cpu
