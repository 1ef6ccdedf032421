#include <sdx/array/fft.hpp>

#include <array>
#include <complex>
#include <numbers>

#include <gtest/gtest.h>

#include <sdx/array.hpp>

namespace mx = sdx::array;
namespace fft = sdx::array::fft;
using mx::array;
using C = std::complex<double>;

namespace {

array complex_array(const sdx::Shape& shape, const std::vector<C>& values) {
  sdx::Tensor t(sdx::DataType::complex128, shape);
  std::copy(values.begin(), values.end(), static_cast<C*>(t.mutable_data()));
  return array(std::move(t));
}

std::vector<C> complex_list(const array& a) {
  const auto* values = static_cast<const C*>(a.tensor().data());
  return {values, values + a.size()};
}

array real_array(const sdx::Shape& shape, const std::vector<double>& values) {
  return array(sdx::Tensor::of<double>(shape, std::span<const double>(values)));
}

// Some numbers without a pattern.
std::vector<C> numbers(std::size_t count) {
  std::vector<C> out;
  std::uint32_t state = 12345;
  const auto next = [&] {
    state = state * 1664525 + 1013904223;
    return static_cast<double>(state >> 8) / (1 << 24) - 0.5;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const double re = next();
    out.emplace_back(re, next());
  }
  return out;
}

std::vector<double> reals(const std::vector<C>& values) {
  std::vector<double> out;
  for (const C& v : values) out.push_back(v.real());
  return out;
}

// By the definition.
std::vector<C> slow(const std::vector<C>& x, double sign) {
  const auto n = x.size();
  std::vector<C> out(n);
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t j = 0; j < n; ++j) {
      out[k] += x[j] * std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n));
    }
  }
  return out;
}

void near(const std::vector<C>& got, const std::vector<C>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_LT(std::abs(got[i] - expected[i]), 1e-9) << i;
}

class Lengths : public ::testing::TestWithParam<int> {};

TEST(ArrayFft, WindowsOverTime) {
  const std::vector<double> x = reals(numbers(50));
  const array signal = real_array({50}, x);
  fft::ShortTime how;
  how.hop = 5;
  how.center = false;
  how.window = real_array({6}, {1, 2, 3, 3, 2, 1});
  const array plain = fft::stft(signal, 8, how);
  ASSERT_EQ(plain.shape(), (sdx::Shape{5, 9}));
  EXPECT_EQ(plain.dtype(), sdx::DataType::complex128);
  const std::vector<C> got = complex_list(plain);
  for (std::size_t w = 0; w < 9; ++w) {
    std::vector<C> part(8);
    for (std::size_t i = 0; i < 6; ++i) part[i + 1] = x[5 * w + i + 1] * std::array{1, 2, 3, 3, 2, 1}[i];
    const std::vector<C> expected = slow(part, -1);
    for (std::size_t k = 0; k < 5; ++k) EXPECT_LT(std::abs(got[k * 9 + w] - expected[k]), 1e-12) << w << ' ' << k;
  }
  // And back: what windows cover, at the length that is asked for.
  for (const bool half : {true, false}) {
    fft::ShortTime centred;
    centred.window = real_array({8}, {1, 2, 3, 4, 4, 3, 2, 1});
    centred.one_sided = half;
    centred.norm = "ortho";
    const array both = sdx::array::stack({signal, multiply(signal, array(2.0))}, 0);
    const array back = fft::istft(fft::stft(both, 8, centred), 8, centred, 60);
    ASSERT_EQ(back.shape(), (sdx::Shape{2, 60}));
    for (std::size_t i = 0; i < 50; ++i) {
      EXPECT_NEAR(back.data<double>()[i], x[i], 1e-12);
      EXPECT_NEAR(back.data<double>()[60 + i], 2 * x[i], 1e-12);
    }
    EXPECT_EQ(back.data<double>()[59], 0);
  }
  EXPECT_EQ(fft::istft(fft::stft(signal, 16), std::nullopt, {}, std::nullopt).size(), 48);
  const auto refused = [&](const fft::ShortTime& h, std::int64_t n) { EXPECT_THROW(fft::stft(signal, n, h), sdx::Error); };
  refused({}, 0);
  refused({}, 3);  // a hop of 0
  refused(how, 4);
  fft::ShortTime other;
  other.win_length = 9;
  refused(other, 8);
  other = {};
  other.hop = -1;
  refused(other, 8);
  other = {};
  other.center = false;
  refused(other, 64);
  EXPECT_THROW(fft::stft(array(1.0F), 8), sdx::Error);
  EXPECT_THROW(fft::istft(signal), sdx::Error);
  EXPECT_THROW(fft::istft(plain, 8, how, INT64_MAX), sdx::Error);
}

}  // namespace

TEST_P(Lengths, ComplexAndRealAsDefined) {
  const auto n = static_cast<std::size_t>(GetParam());
  const auto x = numbers(n);
  const array a = complex_array({GetParam()}, x);
  const auto expected = slow(x, -1);
  near(complex_list(fft::fft(a)), expected);
  near(complex_list(fft::ifft(fft::fft(a))), x);
  const array r = real_array({GetParam()}, reals(x));
  std::vector<C> as_complex;
  for (const double v : reals(x)) as_complex.emplace_back(v);
  auto half = slow(as_complex, -1);
  half.resize(n / 2 + 1);
  const array transformed = fft::rfft(r);
  near(complex_list(transformed), half);
  const array back = fft::irfft(transformed, GetParam());
  ASSERT_EQ(back.dtype(), sdx::DataType::float64);
  for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(back.data<double>()[i], x[i].real(), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(ArrayFft, Lengths,
                         ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 29, 30, 49, 58, 64, 101, 120, 210, 256, 331));

TEST(ArrayFft, AnyAxisAndManySignals) {
  const auto x = numbers(3 * 10 * 21);
  const array a = complex_array({3, 10, 21}, x);
  const auto got = complex_list(fft::fft(a, std::nullopt, 1));
  for (std::size_t b = 0; b < 3; ++b) {
    for (std::size_t v = 0; v < 21; ++v) {
      std::vector<C> signal, of_signal;
      for (std::size_t k = 0; k < 10; ++k) {
        signal.push_back(x[(b * 10 + k) * 21 + v]);
        of_signal.push_back(got[(b * 10 + k) * 21 + v]);
      }
      near(of_signal, slow(signal, -1));
    }
  }
  const array round = fft::irfftn(fft::rfftn(real_array({3, 10, 21}, reals(x))), sdx::Shape{3, 10, 21});
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(round.data<double>()[i], x[i].real(), 1e-12);
}

TEST(ArrayFft, PointsAndNorms) {
  auto x = numbers(6);
  const array a = complex_array({6}, x);
  auto longer = x;
  longer.resize(8);
  near(complex_list(fft::fft(a, 8)), slow(longer, -1));
  auto shorter = x;
  shorter.resize(4);
  near(complex_list(fft::fft(a, 4)), slow(shorter, -1));
  auto scaled = slow(x, -1);
  for (C& v : scaled) v /= std::sqrt(6.0);
  near(complex_list(fft::fft(a, std::nullopt, -1, "ortho")), scaled);
  near(complex_list(fft::ifft(a, std::nullopt, 0, "forward")), slow(x, 1));
  EXPECT_THROW(fft::fft(a, 0), sdx::Error);
  EXPECT_THROW(fft::fft(a, 4, 1), sdx::Error);
  EXPECT_THROW(fft::fft(a, 4, 0, "sideways"), sdx::Error);
  EXPECT_THROW(fft::fftn(a, sdx::Shape{2, 2}), sdx::Error);
}

// The adjoint A' of each map: <y, A x> = <A' y, x>, real parts.
TEST(ArrayFft, GradientsAreAdjoints) {
  const auto dot = [](const array& a, const array& b) {
    double total = 0;
    const bool complex = a.dtype() == sdx::DataType::complex128;
    const auto* p = static_cast<const double*>(a.tensor().data());
    const auto* q = static_cast<const double*>(b.tensor().data());
    for (std::int64_t i = 0; i < a.size() * (complex ? 2 : 1); ++i) total += p[i] * q[i];
    return total;
  };
  for (const int extent : {6, 7}) {
    for (const int points : {4, 6, 7, 9}) {
      const mx::ArrayFunction maps[] = {[&](const array& x) { return fft::fft(x, points, 0, "ortho"); },
                                        [&](const array& x) { return fft::ifft(x, points, 0); },
                                        [&](const array& x) { return fft::rfft(x, points, 0); },
                                        [&](const array& x) { return fft::irfft(x, points, 0); }};
      for (int m = 0; m < 4; ++m) {
        const auto make = [&](const sdx::Shape& shape, bool real, std::size_t skip) {
          auto values = numbers(static_cast<std::size_t>(shape[0] * 3) + skip);
          values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(skip));
          return real ? real_array(shape, reals(values)) : complex_array(shape, values);
        };
        const array x = make({extent, 3}, m == 2, 0);
        const array image = maps[m](x);
        const array y = make(image.shape(), m == 3, 5);
        const array pulled = mx::vjp(maps[m], x, y).second;
        EXPECT_NEAR(dot(y, image), dot(pulled, x), 1e-9) << m << ' ' << extent << ' ' << points;
        // The forward derivative of a linear map is the map.
        const array pushed = mx::jvp(maps[m], x, x).second;
        EXPECT_NEAR(dot(y, pushed), dot(y, image), 1e-9) << m << ' ' << extent << ' ' << points;
      }
    }
  }
}

TEST(ArrayFft, Batches) {
  const array x = complex_array({4, 3, 5}, numbers(60));
  const auto f = [](const array& a) { return fft::fft(a, std::nullopt, 0); };
  near(complex_list(mx::vmap(mx::ArrayFunction(f), 1, 1)(x)), complex_list(fft::fft(x, std::nullopt, 0)));
}

TEST(ArrayFft, Frequencies) {
  const array frequencies = fft::fftfreq(5, 0.5);
  const auto five = frequencies.data<float>();
  EXPECT_FLOAT_EQ(five[2], 0.8F);
  EXPECT_FLOAT_EQ(five[3], -0.8F);
  EXPECT_EQ(fft::rfftfreq(5).shape(), (sdx::Shape{3}));
  EXPECT_FLOAT_EQ(fft::rfftfreq(4).data<float>()[2], 0.5F);
  EXPECT_FLOAT_EQ(fft::fftfreq(4).data<float>()[2], -0.5F);
  EXPECT_THROW(fft::fftfreq(0), sdx::Error);
}

TEST(ArrayFft, ShiftsTurnAndTurnBack) {
  const array x({0.0F, 1.0F, 2.0F, 3.0F, 4.0F});
  const array turned = fft::fftshift(x);
  const auto values = turned.data<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), (std::vector<float>{3, 4, 0, 1, 2}));
  const array back = fft::ifftshift(turned);
  const auto again = back.data<float>();
  EXPECT_EQ(std::vector<float>(again.begin(), again.end()), (std::vector<float>{0, 1, 2, 3, 4}));
}
