#include "quantize/weights/gptq.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "quantize/weights/cholesky.h"

namespace sdx::quantize {
namespace {

std::vector<float> noise(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> out(count);
  for (float& v : out) v = normal(random);
  return out;
}

// Inputs whose places depend on each other, as those of real layers do.
std::vector<float> inputs(std::int64_t rows, std::int64_t columns) {
  const std::vector<float> base = noise(static_cast<std::size_t>(rows * 8), 5),
                           mix = noise(static_cast<std::size_t>(8 * columns), 6);
  std::vector<float> x = noise(static_cast<std::size_t>(rows * columns), 7);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      float& at = x[static_cast<std::size_t>(r * columns + c)];
      at *= 0.1F;
      for (std::int64_t k = 0; k < 8; ++k) {
        at += base[static_cast<std::size_t>(r * 8 + k)] * mix[static_cast<std::size_t>(k * columns + c)];
      }
    }
  }
  return x;
}

std::vector<float> products(const std::vector<float>& x, std::int64_t rows, std::int64_t columns) {
  std::vector<float> h(static_cast<std::size_t>(columns * columns), 0.0F);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* const row = x.data() + r * columns;
    for (std::int64_t i = 0; i < columns; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) h[static_cast<std::size_t>(i * columns + j)] += row[i] * row[j];
    }
  }
  return h;
}

// The error of the products with the inputs, relative to their size.
double output_error(const std::vector<float>& x, std::int64_t rows, const std::vector<float>& w, const BlockMatrix& m) {
  double error = 0, size = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t n = 0; n < m.rows; ++n) {
      double exact = 0, rounded = 0;
      for (std::int64_t k = 0; k < m.columns; ++k) {
        const double a = x[static_cast<std::size_t>(r * m.columns + k)];
        exact += a * w[static_cast<std::size_t>(n * m.columns + k)];
        rounded += a * m.at(n, k);
      }
      error += (exact - rounded) * (exact - rounded);
      size += exact * exact;
    }
  }
  return std::sqrt(error / size);
}

TEST(InverseFactor, ItsProductInverts) {
  constexpr std::int64_t kSize = 150;  // more than two panels
  const std::vector<float> h = products(inputs(400, kSize), 400, kSize);
  std::vector<double> m(h.begin(), h.end());
  for (std::int64_t i = 0; i < kSize; ++i) m[static_cast<std::size_t>(i * kSize + i)] += 1;
  const auto u = inverse_factor(m, kSize);
  ASSERT_TRUE(u);
  const auto at = [&](std::int64_t i, std::int64_t j) {
    return static_cast<double>((*u)[static_cast<std::size_t>(i * kSize + j)]);
  };
  for (std::int64_t i = 0; i < kSize; ++i) {
    for (std::int64_t j = 0; j < i; ++j) ASSERT_EQ(at(i, j), 0);
  }
  // (U^T U) M = 1
  std::vector<double> um(static_cast<std::size_t>(kSize * kSize), 0);
  for (std::int64_t i = 0; i < kSize; ++i) {
    for (std::int64_t k = i; k < kSize; ++k) {
      for (std::int64_t j = 0; j < kSize; ++j)
        um[static_cast<std::size_t>(i * kSize + j)] += at(i, k) * m[static_cast<std::size_t>(k * kSize + j)];
    }
  }
  for (std::int64_t i = 0; i < kSize; ++i) {
    for (std::int64_t j = 0; j < kSize; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k <= i; ++k) sum += at(k, i) * um[static_cast<std::size_t>(k * kSize + j)];
      EXPECT_NEAR(sum, i == j ? 1 : 0, 2e-3) << i << ' ' << j;
    }
  }
}

TEST(InverseFactor, NothingOfWhatIsNotPositive) {
  EXPECT_FALSE(inverse_factor({1, 2, 2, 1}, 2));
  EXPECT_FALSE(inverse_factor({NAN}, 1));
}

TEST(Gptq, ProductsWithInputsErrLess) {
  constexpr std::int64_t kRows = 300, kColumns = 200, kOut = 21;
  const std::vector<float> x = inputs(kRows, kColumns), w = noise(kOut * kColumns, 8);
  const std::vector<float> h = products(x, kRows, kColumns);
  for (const bool symmetric : {false, true}) {
    const BlockFormat format{4, 64, symmetric, DataType::float32};
    const double plain = output_error(x, kRows, w, quantize_blocks(w, kOut, kColumns, format, Rounding::nearest));
    for (const bool act_order : {false, true}) {
      const double made = output_error(x, kRows, w, gptq(w, kOut, kColumns, format, h, {0.01, act_order, Rounding::nearest}));
      EXPECT_LT(made, plain / 2) << symmetric << ' ' << act_order;
    }
  }
}

TEST(Gptq, InputsThatAreAlwaysZero) {
  constexpr std::int64_t kColumns = 48;
  std::vector<float> x = inputs(100, kColumns);
  for (std::size_t r = 0; r < 100; ++r) x[r * kColumns + 7] = 0;
  const std::vector<float> w = noise(3 * kColumns, 9), h = products(x, 100, kColumns);
  const BlockFormat format{8, 16, false, DataType::float32};
  const BlockMatrix m = gptq(w, 3, kColumns, format, h, {});
  EXPECT_NEAR(m.at(1, 7), w[kColumns + 7], 0.05F);
  // Nothing was seen at all: rounded, and no trouble.
  const std::vector<float> none(kColumns * kColumns, 0.0F);
  EXPECT_EQ(gptq(w, 3, kColumns, format, none, {}).codes, quantize_blocks(w, 3, kColumns, format, Rounding::nearest).codes);
}

TEST(Gptq, RefusesInputsThatAreNotFinite) {
  std::vector<float> h(16 * 16, 0.0F);
  h[0] = INFINITY;
  EXPECT_THROW(gptq(noise(16, 1), 1, 16, BlockFormat{4, 16, false, DataType::float32}, h, {}), Error);
}

}  // namespace
}  // namespace sdx::quantize
