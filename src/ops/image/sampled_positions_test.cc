// GridSample, RoiAlign and AffineGrid against themselves in another form: two axes against three, and pictures that are known.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/single_op.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

using testing::make_node;
using testing::run_op;

Tensor waves(DataType dtype, const Shape& shape, double scale, double phase) {
  Tensor t(dtype, shape);
  for (std::int64_t i = 0; i < t.size(); ++i) {
    set_element(t, i, scale * std::sin(static_cast<double>(i) * 0.7 + phase + static_cast<double>(i * i % 17)));
  }
  return t;
}

Node grid_sample(const std::string& mode, const std::string& padding, bool align) {
  Node n = make_node("", "GridSample", 20, 2, 1);
  n.attributes.set("mode", mode);
  n.attributes.set("padding_mode", padding);
  n.attributes.set("align_corners", std::int64_t{align});
  return n;
}

// A third axis of extent 1, met in its middle.
Tensor with_depth(const Tensor& grid) {
  Tensor out(grid.dtype(), {grid.dim(0), 1, grid.dim(1), grid.dim(2), 3});
  for (std::int64_t i = 0; i < grid.size() / 2; ++i) {
    set_element(out, i * 3, element_as_double(grid, i * 2));
    set_element(out, i * 3 + 1, element_as_double(grid, i * 2 + 1));
    set_element(out, i * 3 + 2, 0);
  }
  return out;
}

TEST(SampledPositions, TwoAxesAgreeWithThree) {
  for (const DataType t : {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16}) {
    const Tensor x = waves(t, {2, 3, 7, 9}, 4, 0), grid = waves(t, {2, 13, 25, 2}, 1.6, 2);  // two blocks of positions
    for (const std::string mode : {"nearest", "linear"}) {
      for (const std::string padding : {"zeros", "border", "reflection"}) {
        for (const bool align : {false, true}) {
          const Node n = grid_sample(mode, padding, align);
          const Tensor flat = run_op(n, {x, grid})[0].tensor();
          const Tensor deep = run_op(n, {x.reshaped({2, 3, 1, 7, 9}), with_depth(grid)})[0].tensor();
          ASSERT_EQ(flat.shape(), (Shape{2, 3, 13, 25}));
          // Sums in float instead of double: 4 terms of at most 4, rounded once more for the 16-bit types.
          const double tolerance =
              t == DataType::float64 ? 1e-12 : (t == DataType::bfloat16 ? 0.02 : (t == DataType::float16 ? 4e-3 : 2e-6));
          for (std::int64_t i = 0; i < flat.size(); ++i) {
            ASSERT_NEAR(element_as_double(flat, i), element_as_double(deep, i), tolerance)
                << mode << padding << align << " " << i;
          }
        }
      }
    }
  }
}

TEST(SampledPositions, WhatLiesOutsideWeighsNothingWhateverThePictureHolds) {
  Tensor x =
      Tensor::of<float>({1, 1, 2, 2}, {std::numeric_limits<float>::infinity(), 1, 2, std::numeric_limits<float>::quiet_NaN()});
  const Tensor grid = Tensor::of<float>({1, 1, 3, 2}, {9, 9, -9, 0, 0.5F, -1.5F});
  for (const char* mode : {"nearest", "linear"}) {
    const Tensor inside =
        run_op(grid_sample(mode, "zeros", true), {x, Tensor::of<float>({1, 1, 1, 2}, {-1.5F, 1.5F})})[0].tensor();
    EXPECT_EQ(inside.values<float>()[0], mode[0] == 'n' ? 2 : 2 * 0.75F * 0.75F) << "beside a NaN and an infinity";
    const Tensor y = run_op(grid_sample(mode, "zeros", false), {x, grid})[0].tensor();
    EXPECT_EQ(y.values<float>()[0], 0) << mode;
    EXPECT_EQ(y.values<float>()[1], 0) << mode;
    EXPECT_EQ(y.values<float>()[2], 0) << mode;
  }
}

TEST(SampledPositions, NearestMovesElementsOfAnySize) {
  for (const DataType t : {DataType::uint8, DataType::int64, DataType::complex128}) {
    const Tensor x(t, {1, 1, 1, 3});
    auto* p = static_cast<std::uint8_t*>(const_cast<void*>(x.data()));
    for (std::size_t i = 0; i < x.bytes(); ++i) p[i] = static_cast<std::uint8_t>(i + 1);
    const Tensor y =
        run_op(grid_sample("nearest", "zeros", true), {x, Tensor::of<float>({1, 1, 3, 2}, {1, 0, -1, 0, 0, 0})})[0].tensor();
    const std::size_t size = x.bytes() / 3;
    for (std::size_t i = 0; i < y.bytes(); ++i) {
      const std::size_t from = (i / size + 2) % 3 * size + i % size;
      EXPECT_EQ(static_cast<const std::uint8_t*>(y.data())[i], p[from]) << i;
    }
  }
}

TEST(SampledPositions, RegionsOfARampAverageToTheirMiddle) {
  const std::int64_t h = 20, w = 30;
  for (const DataType t : {DataType::float32, DataType::float64}) {
    Tensor x(t, {1, 2, h, w});
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const std::int64_t k = i / (h * w), row = i / w % h, column = i % w;
      set_element(x, i, static_cast<double>(k == 0 ? row : column));
    }
    Tensor rois(t, {1, 4});
    const double corners[] = {4.5, 3.5, 18.5, 17.5};
    for (int i = 0; i < 4; ++i) set_element(rois, i, corners[i]);
    for (const std::int64_t ratio : {0, 1, 2, 16}) {  // 16: more samples than are prepared at once
      Node n = make_node("", "RoiAlign", 16, 3, 1);
      n.attributes.set("output_height", std::int64_t{7});
      n.attributes.set("output_width", std::int64_t{7});
      n.attributes.set("sampling_ratio", ratio);
      const Tensor y = run_op(n, {x, rois, Tensor::of<std::int64_t>({1}, {0})})[0].tensor();
      for (std::int64_t i = 0; i < y.size(); ++i) {
        const std::int64_t row = i / 7, column = i % 7;
        const double middle = i < 49 ? 3 + (static_cast<double>(row) + 0.5) * 2 : 4 + (static_cast<double>(column) + 0.5) * 2;
        ASSERT_NEAR(element_as_double(y, i), middle, 1e-4) << ratio << " " << i;
      }
    }
  }
}

TEST(SampledPositions, RegionsOfAPictureMeetTheStrongestPixel) {
  Tensor x = Tensor::of<float>({1, 1, 3, 3}, {0, 0, 0, 0, 8, 0, 0, 0, 0});
  Node n = make_node("", "MaxRoiPool", 22, 2, 1);
  n.attributes.set("pooled_shape", std::vector<std::int64_t>{3, 1});
  const Tensor y = run_op(n, {x, Tensor::of<float>({2, 5}, {0, 0, 0, 2, 2, 0, 2, 0, 2, 2})})[0].tensor();
  EXPECT_EQ(to_floats(y), (std::vector<float>{0, 8, 0, 0, 0, 0}));
}

TEST(SampledPositions, AffineGridsAreLinearInTheirPositions) {
  for (const bool align : {false, true}) {
    for (const std::vector<std::int64_t>& size :
         {std::vector<std::int64_t>{2, 1, 3, 5}, {2, 1, 2, 3, 5}, {1, 1, 1, 1}, {1, 1, 0, 4}, {1, 1, 4, 0}}) {
      const std::int64_t r = static_cast<std::int64_t>(size.size()) - 2;
      const Tensor theta = waves(DataType::float64, {size[0], r, r + 1}, 1, 1);
      Node n = make_node("", "AffineGrid", 20, 2, 1);
      n.attributes.set("align_corners", std::int64_t{align});
      const Tensor y = run_op(n, {theta, from_ints(size)})[0].tensor();
      for (std::int64_t i = 0; i < y.size(); ++i) {
        std::int64_t rest = i / r;
        const std::int64_t k = i % r;
        std::vector<double> at;  // x first
        for (std::int64_t d = r + 1; d >= 2; --d) {
          const std::int64_t extent = size[static_cast<std::size_t>(d)], p = rest % extent;
          rest /= extent;
          const auto e = static_cast<double>(extent);
          at.push_back(align ? (extent > 1 ? 2 * static_cast<double>(p) / (e - 1) - 1 : 0)
                             : (2 * static_cast<double>(p) + 1) / e - 1);
        }
        at.push_back(1);
        double expected = 0;
        for (std::int64_t j = 0; j <= r; ++j) {
          expected += at[static_cast<std::size_t>(j)] * element_as_double(theta, (rest * r + k) * (r + 1) + j);
        }
        ASSERT_NEAR(element_as_double(y, i), expected, 1e-12) << i;
      }
    }
  }
}

}  // namespace
}  // namespace sdx::ops
