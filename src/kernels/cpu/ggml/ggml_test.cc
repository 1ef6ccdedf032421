#include "kernels/cpu/ggml/ggml.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/ggml_blocks.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using sdx::test::GgmlWeights;
using sdx::test::weights_of;
using test::for_each_isa;
using test::Guarded;
using test::random_floats;

void compare(const GgmlFormat& f, std::int64_t m, std::int64_t n, std::int64_t k, bool bias) {
  SCOPED_TRACE(std::string(f.name) + " " + std::to_string(m) + "x" + std::to_string(k) + " by " + std::to_string(n));
  const GgmlWeights w = weights_of(f, n, k);
  const std::vector<float> x = random_floats(m * (k + 3), 5), b = random_floats(n, 9);
  Guarded<char> weights(static_cast<std::int64_t>(w.bytes.size()), 1, std::vector<char>(w.bytes.begin(), w.bytes.end()));
  Guarded<float> a(m * (k + 3), 1, x), c(m * n, 1);
  GgmlArgs args;
  args.format = &f;
  args.m = m, args.n = n, args.k = k;
  args.a = a.data(), args.lda = k + 3;
  args.weights = weights.data();
  args.bias = bias ? b.data() : nullptr;
  args.c = c.data(), args.ldc = n;
  ggml_gemm(args);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = bias ? static_cast<double>(b[static_cast<std::size_t>(j)]) : 0.0, size = 1e-6;
      for (std::int64_t t = 0; t < k; ++t) {
        const double product =
            static_cast<double>(x[static_cast<std::size_t>(i * (k + 3) + t)]) * w.values[static_cast<std::size_t>(j * k + t)];
        sum += product;
        size += std::abs(product);
      }
      // Roundings of weights and sums of float32, relative to the sum of the products' magnitudes. A weight that is the
      // difference of scale and minimum is rounded relative to these: up to 16 times itself in these blocks.
      ASSERT_NEAR(static_cast<double>(c[i * n + j]), sum, 1e-5 * size + 1e-5) << i << "," << j;
    }
  }
}

TEST(Ggml, ProductsOfEveryTypeAndNumberOfRows) {
  for_each_isa([] {
    for (const GgmlType type : sdx::test::kGgmlTypes) {
      const GgmlFormat& f = *find_ggml(static_cast<std::uint32_t>(type));
      for (const std::int64_t m : {1, 2, 3, 4, 5, 8, 9, 15, 16, 23})
        compare(f, m, 19, f.block == 1 ? 71 : 3 * f.block, m % 2 == 1);
      compare(f, 1, 1, f.block, false);
      compare(f, 1, 40, f.block == 1 ? 3 : 4 * f.block, true);
      compare(f, 11, 33, f.block == 1 ? 1300 : 5 * 256, true);
    }
  });
}

TEST(Ggml, TinyScalesAreNotLost) {
  for_each_isa([] {
    const GgmlFormat& f = *find_ggml("q8_0");
    std::string bytes(34, '\0');
    bytes[0] = 3;  // a subnormal half: 3 * 2^-24
    std::fill(bytes.begin() + 2, bytes.end(), char{100});
    const std::vector<float> x(32, 1024.0F);
    float y = 0;
    GgmlArgs args;
    args.format = &f;
    args.m = 1, args.n = 1, args.k = 32;
    args.a = x.data(), args.lda = 32;
    args.weights = bytes.data();
    args.c = &y, args.ldc = 1;
    ggml_gemm(args);
    EXPECT_FLOAT_EQ(y, 3.0F / 16777216.0F * 100.0F * 32.0F * 1024.0F);
  });
}

}  // namespace
}  // namespace sdx::cpu
