#include "kernels/cpu/conv/blocked/blocked_split.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/gemm/gemm_split.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::random_floats;

// Lines of pixels with two blocks between their chunks, and results that add to what they hold.
struct Problem {
  std::int64_t lines, width, count, pairs;
  std::vector<float> x, w, bias, y;
  std::vector<std::int64_t> chunks;

  Problem(std::int64_t lines_in, std::int64_t width_in, std::int64_t count_in, std::int64_t pairs_in)
      : lines(lines_in), width(width_in), count(count_in), pairs(pairs_in) {
    x = random_floats((count + 2) * pixels() * 16, 1);
    w = random_floats(pairs * count * 16 * 32, 2);
    bias = random_floats(pairs * 32, 3);
    y = random_floats(pairs * 2 * pixels() * 16, 4);
    for (std::int64_t i = 0; i < count; ++i) chunks.push_back((count - 1 - i) * pixels() * 16);
  }
  std::int64_t pixels() const { return lines * width; }

  void expect_right(const UnarySpec& act) {
    const std::vector<float> before = y;
    multiply_split_pixels({x.data(), width * 16, 16, lines, width, nullptr, chunks.data(), count}, w.data(), pairs,
                          {y.data(), pixels() * 16, bias.data(), y.data(), act});
    for (std::int64_t p = 0; p < pixels(); ++p) {
      for (std::int64_t o = 0; o < pairs * 32; ++o) {
        double sum = bias[static_cast<std::size_t>(o)];
        for (std::int64_t k = 0; k < count * 16; ++k) {
          const float v = x[static_cast<std::size_t>(p * 16 + chunks[static_cast<std::size_t>(k / 16)] + k % 16)];
          sum += static_cast<double>(v) * w[static_cast<std::size_t>((o / 32 * count * 16 + k) * 32 + o % 32)];
        }
        const auto at = static_cast<std::size_t>((o / 16 * pixels() + p) * 16 + o % 16);
        sum += before[at];
        if (act.op == Unary::relu) sum = std::isnan(sum) ? sum : std::max(sum, 0.0);
        if (act.op == Unary::sigmoid) sum = 1 / (1 + std::exp(-sum));
        if (std::isfinite(sum)) {
          ASSERT_NEAR(y[at], sum, 2e-5 * std::sqrt(static_cast<double>(count))) << p << "," << o;
        } else {
          ASSERT_TRUE(std::isnan(sum) ? std::isnan(y[at]) : y[at] == static_cast<float>(sum)) << p << "," << o;
        }
      }
    }
  }
};

class BlockedSplit : public ::testing::Test {
 protected:
  void SetUp() override {
    if (split_kernels() == nullptr) GTEST_SKIP() << "no AMX";
  }
};

TEST_F(BlockedSplit, MatchesTheDefinition) {
  Problem(1, 70, 3, 4).expect_right({Unary::relu});
  Problem(5, 9, 2, 3).expect_right({Unary::sigmoid});
  Problem(2, 17, 67, 2).expect_right({});   // several blocks of chunks
  Problem(3, 100, 40, 1).expect_right({});  // and bands of pixels
}

TEST_F(BlockedSplit, InfinitiesStayWhereTheyBelong) {
  Problem pixels(1, 64, 37, 2), weights(1, 64, 37, 3);
  pixels.x[static_cast<std::size_t>(36 * 64 * 16 + 5 * 16 + 3)] = std::numeric_limits<float>::infinity();
  pixels.expect_right({Unary::relu});
  weights.w[static_cast<std::size_t>((1 * 37 * 16 + 590) * 32 + 7)] = -std::numeric_limits<float>::infinity();
  weights.expect_right({});
}

}  // namespace
}  // namespace sdx::cpu
