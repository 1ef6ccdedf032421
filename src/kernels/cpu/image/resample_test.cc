#include "kernels/cpu/image/resample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::Guarded;

// Taps of `out` results spread over `in` elements, with any weights.
template <class W>
struct Axis {
  Axis(std::int64_t in, std::int64_t out, std::int64_t count, unsigned seed) {
    for (std::int64_t o = 0; o < out; ++o) {
      first.push_back(static_cast<std::int32_t>(out == 1 ? 0 : o * (in - count) / (out - 1)));
    }
    for (const float w : test::random_floats(out * count, seed, -1, 1)) weights.push_back(static_cast<W>(w));
    view = {in, out, count, first.data(), weights.data()};
  }
  Axis(const Axis&) = delete;
  Axis& operator=(const Axis&) = delete;
  std::vector<std::int32_t> first;
  std::vector<W> weights;
  AxisWeights<W> view{};
};

template <class W, class T>
double plain(const T* plane, const AxisWeights<W>& rows, const AxisWeights<W>& columns, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t k = 0; k < rows.count; ++k) {
    for (std::int64_t l = 0; l < columns.count; ++l) {
      sum += static_cast<double>(rows.weights[i * rows.count + k]) * static_cast<double>(columns.weights[j * columns.count + l]) *
             static_cast<double>(plane[(rows.first[i] + k) * columns.in + columns.first[j] + l]);
    }
  }
  return sum;
}

struct Extents {
  std::int64_t in, out, count;
};
constexpr Extents kExtents[] = {{1, 1, 1}, {7, 30, 2}, {40, 17, 2}, {9, 33, 4}, {50, 11, 7}, {40, 40, 1}, {5, 90, 5}};

TEST(Resample, Floats) {
  test::for_each_isa([] {
    for (const Extents& h : kExtents) {
      for (const Extents& w : kExtents) {
        const Axis<float> rows(h.in, h.out, h.count, 1), columns(w.in, w.out, w.count, 2);
        constexpr std::int64_t kPlanes = 3;
        Guarded<float> x(kPlanes * h.in * w.in, 1, test::random_floats(kPlanes * h.in * w.in, 3)), y(kPlanes * h.out * w.out, 3);
        resample_f32(x.data(), y.data(), kPlanes, rows.view, columns.view);
        for (std::int64_t at = 0; at < kPlanes * h.out * w.out; ++at) {
          const std::int64_t p = at / (h.out * w.out), i = at / w.out % h.out, j = at % w.out;
          // Sums of up to 49 products of numbers below 1.
          ASSERT_NEAR(y[at], plain(x.data() + p * h.in * w.in, rows.view, columns.view, i, j), 1e-5) << at;
        }
      }
    }
  });
}

TEST(Resample, Bytes) {
  test::for_each_isa([] {
    for (const Extents& h : kExtents) {
      for (const Extents& w : kExtents) {
        const Axis<double> rows(h.in, h.out, h.count, 1), columns(w.in, w.out, w.count, 2);
        constexpr std::int64_t kPlanes = 2;
        const std::int64_t n = kPlanes * h.in * w.in;
        Guarded<std::uint8_t> x(n), y(kPlanes * h.out * w.out, 3);
        for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<std::uint8_t>(i * 37 % 256);
        resample_u8(x.data(), y.data(), kPlanes, rows.view, columns.view);
        for (std::int64_t at = 0; at < kPlanes * h.out * w.out; ++at) {
          const std::int64_t p = at / (h.out * w.out), i = at / w.out % h.out, j = at % w.out;
          const double sum = plain(x.data() + p * h.in * w.in, rows.view, columns.view, i, j);
          ASSERT_EQ(y[at], static_cast<int>(std::clamp(sum + 1e-9, 0.0, 255.0))) << at << ": " << sum;
        }
      }
    }
  });
}

TEST(Resample, MeansOfEqualBytesAreTheirValue) {
  test::for_each_isa([] {
    // Seven weights of a seventh add up to a little less or more than one.
    const std::vector<std::int32_t> first{0, 3};
    const std::vector<double> weights(14, 1.0 / 7);
    const AxisWeights<double> axis{10, 2, 7, first.data(), weights.data()};
    for (int value = 0; value < 256; ++value) {
      const std::vector<std::uint8_t> x(100, static_cast<std::uint8_t>(value));
      std::vector<std::uint8_t> y(4);
      resample_u8(x.data(), y.data(), 1, axis, axis);
      ASSERT_EQ(y, std::vector<std::uint8_t>(4, static_cast<std::uint8_t>(value)));
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
