#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "support/single_op.h"

namespace sdx::ops {
namespace {

using Complex = std::complex<double>;

// One signal by the definition; `given` holds the first numbers, zeros follow.
std::vector<Complex> by_definition(const std::vector<Complex>& given, std::int64_t n, bool inverse) {
  std::vector<Complex> out(static_cast<std::size_t>(n));
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t i = 0; i < std::min(n, std::ssize(given)); ++i) {
      const double turns = static_cast<double>(i * k % n) / static_cast<double>(n);
      const Complex root = std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi * turns);
      out[static_cast<std::size_t>(k)] += given[static_cast<std::size_t>(i)] * root / (inverse ? static_cast<double>(n) : 1.0);
    }
  }
  return out;
}

// Signals of `given` elements along axis 1 of [2, given, 3, parts].
void check_dft(std::int64_t given, std::int64_t n, std::int64_t parts, bool inverse, bool onesided) {
  Tensor x(DataType::float64, {2, given, 3, parts});
  auto values = x.mutable_values<double>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i * i));
  auto op = SingleOp("DFT", 20).with("inverse", std::int64_t{inverse}).with("onesided", std::int64_t{onesided});
  const Tensor y = op.checked({x, Tensor::scalar<std::int64_t>(n), Tensor::scalar<std::int64_t>(1)})[0];
  const std::int64_t out = onesided ? n / 2 + 1 : n;
  ASSERT_EQ(y.shape(), (Shape{2, out, 3, 2}));
  for (std::int64_t s = 0; s < 6; ++s) {
    const std::int64_t o = s / 3, i = s % 3;
    std::vector<Complex> signal;
    for (std::int64_t k = 0; k < given; ++k) {
      const auto at = static_cast<std::size_t>(((o * given + k) * 3 + i) * parts);
      signal.emplace_back(values[at], parts == 2 ? values[at + 1] : 0);
    }
    const std::vector<Complex> expected = by_definition(signal, n, inverse);
    for (std::int64_t k = 0; k < out; ++k) {
      const double* got = y.values<double>().data() + ((o * out + k) * 3 + i) * 2;
      EXPECT_LT(std::abs(Complex(got[0], got[1]) - expected[static_cast<std::size_t>(k)]), 1e-11 * static_cast<double>(n))
          << given << " of " << n << " " << parts << inverse << onesided << " " << s << " " << k;
    }
  }
}

TEST(SignalOps, DftOfAnyLengthMatchesTheDefinition) {
  for (const std::int64_t n : {1, 2, 3, 5, 6, 7, 8, 12, 29, 30, 31, 62, 100, 106}) {
    for (const std::int64_t parts : {1, 2}) {
      for (const bool inverse : {false, true}) check_dft(n, n, parts, inverse, false);
    }
    check_dft(n, n, 1, false, true);
    check_dft(n + 3, n, 1, false, false);
    if (n > 2) check_dft(n - 2, n, 1, false, true);
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
