#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "ops/signal/fft.h"
#include "support/single_op.h"

namespace sdx::ops {
namespace {

using Complex = std::complex<double>;

TEST(Fft, MatchesTheDefinitionForEveryLength) {
  for (std::int64_t n = 1; n <= 40; ++n) {
    for (const bool inverse : {false, true}) {
      std::vector<Complex> x;
      for (std::int64_t i = 0; i < n; ++i) x.emplace_back(std::sin(static_cast<double>(i * i)), static_cast<double>(i % 5));
      std::vector<Complex> y = x;
      Fft fft(n, inverse);
      fft(y.data());
      for (std::int64_t k = 0; k < n; ++k) {
        Complex sum = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const double turns = static_cast<double>(i * k) / static_cast<double>(n);
          sum += x[static_cast<std::size_t>(i)] * std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi * turns);
        }
        EXPECT_NEAR(std::abs(sum - y[static_cast<std::size_t>(k)]), 0, 1e-10 * static_cast<double>(n)) << n << " " << k;
      }
    }
  }
}

TEST(SignalOps, OnesidedRoundTrip) {
  for (const std::int64_t n : {6, 7}) {
    const Tensor x = ramp({2, n, 1}, 0.3F, -1);
    const Tensor axis = Tensor::scalar<std::int64_t>(1);
    const Tensor length = Tensor::scalar<std::int64_t>(n);
    const Tensor spectrum = SingleOp("DFT", 20).with("onesided", std::int64_t{1}).checked({x, length, axis})[0];
    EXPECT_EQ(spectrum.shape(), (Shape{2, n / 2 + 1, 2}));
    auto back = SingleOp("DFT", 20).with("onesided", std::int64_t{1}).with("inverse", std::int64_t{1});
    const Tensor y = back.checked({spectrum, length, axis})[0];
    ASSERT_EQ(y.shape(), x.shape());
    expect_floats(y, {x.values<float>().begin(), x.values<float>().end()});
  }
}

TEST(SignalOps, RefusesBadSizes) {
  const Tensor x = ramp({1, 8, 1});
  EXPECT_THROW((SingleOp("DFT", 17).with("axis", std::int64_t{2}).checked({x})), Error);
  EXPECT_THROW((SingleOp("DFT", 17).checked({x, Tensor::scalar<std::int64_t>(0)})), Error);
  EXPECT_THROW((SingleOp("DFT", 17).checked({x, Tensor::scalar<std::int64_t>(std::int64_t{1} << 60)})), Error);
  EXPECT_THROW((SingleOp("STFT", 17).checked({x, Tensor::scalar<std::int64_t>(0), ramp({4})})), Error);
  EXPECT_THROW((SingleOp("STFT", 17).checked({x, Tensor::scalar<std::int64_t>(1), ramp({9})})), Error);
  EXPECT_THROW((SingleOp("HannWindow", 17).checked({Tensor::scalar<std::int64_t>(-1)})), Error);
  EXPECT_THROW((SingleOp("HannWindow", 17).with("output_datatype", std::int64_t{8}).checked({Tensor::scalar<std::int64_t>(1)})),
               Error);
}

TEST(SignalOps, LossesCheckLabels) {
  const Tensor scores = ramp({2, 3});
  auto op = SingleOp("NegativeLogLikelihoodLoss", 22).with("reduction", std::string("none"));
  expect_floats(op.checked({scores, Tensor::of<std::int64_t>({2}, {2, 0})})[0], {-2, -3});
  EXPECT_THROW(op.checked({scores, Tensor::of<std::int64_t>({2}, {3, 0})}), Error);
  op.with("ignore_index", std::int64_t{-100});
  expect_floats(op.checked({scores, Tensor::of<std::int64_t>({2}, {-100, 0})})[0], {0, -3});
}

}  // namespace
}  // namespace sdx::ops
