#include "array/ops/checked_test.h"

using namespace sdx::array;
using namespace sdx::array::checked;

namespace {

struct Windowing {
  std::int64_t stride, low, high, dilation, spread;
  int groups;
};

// By definition, one number after the other: two spatial axes.
array slowly(const array& x, const array& w, const Windowing& s) {
  const Shape &xs = x.shape(), &ws = w.shape();
  const auto extent = [&](std::size_t i) {
    return ((xs[i] - 1) * s.spread + 1 + s.low + s.high - (ws[i] - 1) * s.dilation - 1) / s.stride + 1;
  };
  const sdx::Shape ys{xs[0], extent(1), extent(2), ws[0]};
  sdx::Tensor out(Dtype::float64, ys);
  const auto a = x.data<double>(), b = w.data<double>();
  std::size_t next = 0;
  for (std::int64_t n = 0; n < ys[0]; ++n) {
    for (std::int64_t h = 0; h < ys[1]; ++h) {
      for (std::int64_t v = 0; v < ys[2]; ++v) {
        for (std::int64_t o = 0; o < ys[3]; ++o) {
          double sum = 0;
          for (std::int64_t i = 0; i < ws[1]; ++i) {
            for (std::int64_t j = 0; j < ws[2]; ++j) {
              const std::int64_t p = h * s.stride + i * s.dilation - s.low, q = v * s.stride + j * s.dilation - s.low;
              if (p < 0 || q < 0 || p % s.spread != 0 || q % s.spread != 0) continue;
              if (p / s.spread >= xs[1] || q / s.spread >= xs[2]) continue;
              for (std::int64_t c = 0; c < ws[3]; ++c) {
                const std::int64_t channel = o / (ws[0] / s.groups) * ws[3] + c;
                sum += a[static_cast<std::size_t>(((n * xs[1] + p / s.spread) * xs[2] + q / s.spread) * xs[3] + channel)] *
                       b[static_cast<std::size_t>(((o * ws[1] + i) * ws[2] + j) * ws[3] + c)];
              }
            }
          }
          out.mutable_values<double>()[next++] = sum;
        }
      }
    }
  }
  return array(out);
}

}  // namespace

TEST(ArrayConvolve, IsTheSumOverWindows) {
  const std::vector<Windowing> setups{{1, 0, 0, 1, 1, 1}, {2, 1, 1, 1, 1, 1}, {1, 2, 2, 2, 1, 2}, {3, 1, 2, 1, 1, 4},
                                      {1, 1, 1, 1, 2, 1}, {1, 2, 1, 1, 3, 2}, {2, 0, 1, 1, 2, 1}, {1, 3, 3, 1, 1, 4}};
  for (const Windowing& s : setups) {
    const array x = numbers({2, 6, 5, 4}), w = numbers({4, 3, 2, 4 / s.groups}, 5);
    const auto by = [](std::int64_t v) { return Extents{static_cast<int>(v)}; };
    for (const Dtype type : {Dtype::float64, Dtype::float32}) {
      const array out = conv_general(astype(x, type), astype(w, type), by(s.stride), by(s.low), by(s.high), by(s.dilation),
                                     by(s.spread), s.groups);
      expect_close(out, slowly(x, w, s), type == Dtype::float64 ? 1e-12 : 1e-5, "stride " + std::to_string(s.stride));
    }
  }
}

TEST(ArrayConvolve, Derivatives) {
  check_all({
      {"conv1d", {{2, 6, 2}, {3, 3, 2}}, [](const Arrays& a) { return conv1d(a[0], a[1], 2, 1); }},
      {"conv2d",
       {{1, 4, 4, 2}, {2, 3, 3, 2}},
       [](const Arrays& a) {
         return conv2d(a[0], a[1], {1, 2}, {1});
       }},
      {"conv2d, groups", {{1, 4, 4, 4}, {2, 2, 2, 2}}, [](const Arrays& a) { return conv2d(a[0], a[1], {1}, {0}, {2}, 2); }},
      {"conv2d, each channel",
       {{1, 4, 4, 3}, {3, 2, 2, 1}},
       [](const Arrays& a) { return conv2d(a[0], a[1], {1}, {1}, {1}, 3); }},
      {"conv2d, one tap", {{1, 3, 2, 2}, {3, 1, 1, 2}}, [](const Arrays& a) { return conv2d(a[0], a[1]); }},
      {"conv3d", {{1, 2, 3, 3, 1}, {2, 2, 2, 2, 1}}, [](const Arrays& a) { return conv3d(a[0], a[1]); }},
      {"conv_transpose1d", {{1, 3, 2}, {3, 3, 2}}, [](const Arrays& a) { return conv_transpose1d(a[0], a[1], 2, 1, 1, 1); }},
      {"conv_transpose2d",
       {{1, 3, 3, 4}, {2, 2, 2, 2}},
       [](const Arrays& a) { return conv_transpose2d(a[0], a[1], {2}, {0}, {1}, {0}, 2); }},
      {"conv_general",
       {{1, 5, 1}, {2, 3, 1}},
       [](const Arrays& a) { return conv_general(a[0], a[1], {2}, {1}, Extents{2}, {1}, {2}, 1, true); }},
  });
}

TEST(ArrayConvolve, RefusesWhatDoesNotFit) {
  const array x = numbers({1, 4, 4, 3});
  EXPECT_THROW(conv2d(x, numbers({2, 3, 3, 2})), sdx::Error);
  EXPECT_THROW(conv2d(x, numbers({2, 5, 5, 3})), sdx::Error);
  EXPECT_THROW(conv2d(x, numbers({2, 3, 3, 3}), {0}), sdx::Error);
  EXPECT_THROW(conv1d(x, numbers({2, 3, 3})), sdx::Error);
}
