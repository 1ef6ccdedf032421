// The first run multiplies large weights as the file has them, the second one packs them: results must be the same bits.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "support/session.h"

namespace sdx::cpu {
namespace {

using testing::floats;
using testing::Floats;
using testing::open;

constexpr std::int64_t kIn = 400, kInner = 300, kOut = 270;  // each matrix is above 256 KB

// From -1 to 1 in steps of 1/8: exact as text.
float weight(std::int64_t i) { return static_cast<float>(i * 7919 % 17 - 8) / 8; }

std::string constant(const std::string& name, std::int64_t rows, std::int64_t columns) {
  std::string text = "  constant " + name + ": float32[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
  for (std::int64_t i = 0; i < rows * columns; ++i) text += " " + std::to_string(weight(i));
  return text + "\n";
}

std::string model(const std::string& rows) {
  return "  input x: float32[" + rows + "," + std::to_string(kIn) + "]\n" + constant("w", kIn, kInner) +
         constant("v", kOut, kInner) + R"(
  t = MatMul(x, w)
  y = Gemm(t, v) {transB=1}
  output y
)";
}

Tensor rows_of(std::int64_t rows) {
  Floats values(static_cast<std::size_t>(rows * kIn));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = weight(static_cast<std::int64_t>(i) + 3);
  return floats({rows, kIn}, values);
}

double expected(const Tensor& x, std::int64_t row, std::int64_t column) {
  double sum = 0;
  for (std::int64_t j = 0; j < kInner; ++j) {
    double inner = 0;
    for (std::int64_t i = 0; i < kIn; ++i) {
      inner += static_cast<double>(x.values<float>()[static_cast<std::size_t>(row * kIn + i)]) * weight(i * kInner + j);
    }
    sum += inner * weight(column * kInner + j);
  }
  return sum;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

TEST(LateWeights, FirstAndLaterRunsGiveTheSameBits) {
  for (const std::int64_t rows : {1, 5, 130}) {
    for (const bool known : {true, false}) {  // known extents allow other kernels
      for (const int threads : {1, 3}) {
        SessionOptions options;
        options.threads = threads;
        const Session s = open(model(known ? std::to_string(rows) : "n"), options);
        const Tensor x = rows_of(rows);
        const Tensor first = s.run({{"x", x}}).tensor("y");
        for (int run = 0; run < 3; ++run) {
          EXPECT_TRUE(same_bits(first, s.run({{"x", x}}).tensor("y"))) << rows << " rows, threads " << threads << ", run " << run;
        }
        for (const std::int64_t column : {std::int64_t{0}, std::int64_t{7}, kOut - 1}) {
          const double want = expected(x, rows - 1, column);
          EXPECT_NEAR(first.values<float>()[static_cast<std::size_t>((rows - 1) * kOut + column)], want,
                      1e-4 * (1 + std::abs(want)));
        }
      }
    }
  }
}

TEST(LateWeights, ThreadsMayRunTheFirstTime) {
  for (int turn = 0; turn < 5; ++turn) {
    const Session s = open(model("n"));
    const Tensor x = rows_of(9);
    std::vector<Tensor> results(4);
    std::vector<std::thread> threads;
    for (Tensor& result : results) {
      threads.emplace_back([&] {
        for (int run = 0; run < 3; ++run) result = s.run({{"x", x}}).tensor("y");
      });
    }
    for (std::thread& t : threads) t.join();
    const Tensor after = s.run({{"x", x}}).tensor("y");
    for (const Tensor& result : results) EXPECT_TRUE(same_bits(result, after));
  }
}

}  // namespace
}  // namespace sdx::cpu
