#include "ops/conv/conv_geometry.h"

#include <gtest/gtest.h>

#include <sdx/error.hpp>

namespace sdx::ops {
namespace {

using Ints = std::vector<std::int64_t>;

Attributes with(std::initializer_list<std::pair<const char*, AttributeValue>> items) {
  Attributes a;
  for (const auto& [name, value] : items) a.set(name, value);
  return a;
}

// Brute force over every position and tap.
void expect_ranges_agree(const WindowAxis& a) {
  for (std::int64_t o = 0; o < a.out; ++o) {
    const IndexRange r = taps_inside(a, o);
    for (std::int64_t k = 0; k < a.kernel; ++k) {
      const std::int64_t i = a.start(o) + k * a.dilation;
      const bool inside = i >= 0 && i < a.in;
      EXPECT_EQ(inside, k >= r.begin && k < r.end) << "output " << o << " tap " << k;
      const IndexRange outs = outputs_inside(a, k);
      EXPECT_EQ(inside, o >= outs.begin && o < outs.end) << "output " << o << " tap " << k;
    }
  }
}

TEST(ConvGeometry, RangesMatchBruteForce) {
  for (std::int64_t in = 0; in < 7; ++in) {
    for (std::int64_t kernel = 1; kernel < 4; ++kernel) {
      for (std::int64_t stride = 1; stride < 4; ++stride) {
        for (std::int64_t dilation = 1; dilation < 4; ++dilation) {
          for (std::int64_t pad = 0; pad < 4; ++pad) expect_ranges_agree({in, 6, kernel, stride, dilation, pad, 1});
        }
      }
    }
  }
}

TEST(ConvGeometry, AutoPad) {
  const Attributes upper = with({{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2}}});
  const ConvGeometry g = conv_geometry(upper, {1, 1, 6}, {1, 1, 3});
  EXPECT_EQ(g.axes[0].out, 3);
  EXPECT_EQ(g.axes[0].pad_begin, 0);
  EXPECT_EQ(g.axes[0].pad_end, 1);
  const Attributes lower = with({{"auto_pad", std::string("SAME_LOWER")}, {"strides", Ints{2}}});
  EXPECT_EQ(conv_geometry(lower, {1, 1, 6}, {1, 1, 3}).axes[0].pad_begin, 1);
  const Attributes valid = with({{"auto_pad", std::string("VALID")}, {"pads", Ints{5, 5}}});
  EXPECT_EQ(conv_geometry(valid, {1, 1, 6}, {1, 1, 3}).axes[0].out, 4);
}

TEST(ConvGeometry, CeilModeDropsWindowsThatStartInThePadding) {
  const Attributes a = with({{"kernel_shape", Ints{1}}, {"strides", Ints{2}}, {"ceil_mode", std::int64_t{1}}});
  EXPECT_EQ(pool_axes(a, {1, 1, 4})[0].out, 2);
  const Attributes b = with({{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"ceil_mode", std::int64_t{1}}});
  EXPECT_EQ(pool_axes(b, {1, 1, 6})[0].out, 3);
}

// Quotients below 0 are rounded towards it, with ceil_mode and without.
TEST(ConvGeometry, PoolsAdmitAWindowThatReachesBeyondTheInput) {
  for (const char* pad : {"NOTSET", "VALID"}) {
    for (std::int64_t in = 1; in < 5; ++in) {
      for (std::int64_t kernel = 1; kernel < 8; ++kernel) {
        for (std::int64_t stride = 1; stride < 5; ++stride) {
          for (std::int64_t dilation = 1; dilation < 3; ++dilation) {
            const std::int64_t room = in - (kernel - 1) * dilation - 1;
            if (room >= 0) continue;
            for (const std::int64_t ceil : {0, 1}) {
              const Attributes attrs = with({{"kernel_shape", Ints{kernel}},
                                             {"strides", Ints{stride}},
                                             {"dilations", Ints{dilation}},
                                             {"auto_pad", std::string(pad)},
                                             {"ceil_mode", ceil}});
              if (room <= -2 * stride) {
                EXPECT_THROW(pool_axes(attrs, {1, 1, in}), Error);
              } else {
                EXPECT_EQ(pool_axes(attrs, {1, 1, in})[0].out, room <= -stride ? 0 : 1);
              }
            }
          }
        }
      }
    }
  }
  const Attributes padded =
      with({{"kernel_shape", Ints{7}}, {"strides", Ints{4}}, {"pads", Ints{1, 1}}, {"ceil_mode", std::int64_t{1}}});
  EXPECT_EQ(pool_axes(padded, {1, 1, 2})[0].out, 1);
  EXPECT_EQ(pool_axes(padded, {1, 1, 0})[0].out, 0);
}

// Negative pads crop.
TEST(ConvGeometry, ConvolutionsCrop) {
  const Attributes a = with({{"pads", Ints{-1, 2}}});
  EXPECT_TRUE(crops(a));
  EXPECT_FALSE(crops(with({{"pads", Ints{0, 2}}})));
  EXPECT_EQ(conv_geometry(a, {1, 2, 7}, {3, 2, 3}).axes[0].out, 6);
  EXPECT_EQ(conv_transpose_geometry(a, {1, 2, 7}, {2, 3, 3}).axes[0].out, 8);
  EXPECT_EQ(to_string(conv_output_shape(a, {Dim::symbol("n"), 2, Dim::symbol("l")}, {3, 2, 3})), "[n,3,l - 1]");
  EXPECT_THROW(pool_axes(with({{"kernel_shape", Ints{2}}, {"pads", Ints{-1, 0}}}), {1, 1, 4}), Error);
}

TEST(ConvGeometry, SymbolicExtents) {
  const Attributes a = with({{"pads", Ints{1, 1, 1, 1}}});
  const SymShape out = conv_output_shape(a, {Dim::symbol("n"), 3, Dim::symbol("h"), Dim::unknown()}, {8, 3, 3, 3});
  EXPECT_EQ(to_string(out), "[n,8,h,?]");
}

TEST(ConvGeometry, RefusesBrokenModels) {
  const Shape x{1, 4, 8, 8};
  const Shape w{6, 4, 3, 3};
  const std::vector<Attributes> broken = {
      with({{"strides", Ints{0, 1}}}),
      with({{"strides", Ints{1}}}),
      with({{"dilations", Ints{1, -1}}}),
      with({{"pads", Ints{-(std::int64_t{1} << 31), 0, 0, 0}}}),
      with({{"pads", Ints{1, 1}}}),
      with({{"group", std::int64_t{0}}}),
      with({{"group", std::int64_t{2}}}),
      with({{"kernel_shape", Ints{3, 5}}}),
      with({{"auto_pad", std::string("SOME")}}),
      with({{"dilations", Ints{4, 4}}}),
      with({{"strides", Ints{std::int64_t{1} << 40, 1}}}),
  };
  for (const Attributes& a : broken) EXPECT_THROW(conv_geometry(a, x, w), Error);
  EXPECT_THROW(conv_geometry({}, x, {6, 4, 3}), Error);
  EXPECT_THROW(conv_geometry({}, {1, 4}, {6, 4}), Error);
  EXPECT_THROW(pool_axes({}, x), Error);
}

TEST(ConvGeometry, TransposedOutputShapeDecidesPads) {
  const Attributes a = with({{"strides", Ints{2}}, {"output_shape", Ints{10}}});
  const ConvGeometry g = conv_transpose_geometry(a, {1, 3, 5}, {3, 2, 3});
  EXPECT_EQ(g.axes[0].out, 10);
  EXPECT_EQ(g.axes[0].pad_begin + g.axes[0].pad_end, 1);
  EXPECT_EQ(g.out_channels, 2);
  const Attributes huge = with({{"strides", Ints{std::int64_t{1} << 30}}});
  EXPECT_THROW(conv_transpose_geometry(huge, {1, 1, std::int64_t{1} << 40}, {1, 1, 1}), Error);
}

}  // namespace
}  // namespace sdx::ops
