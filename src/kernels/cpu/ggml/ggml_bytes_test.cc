// Products with activations of 8 bits: what they round, and how they compare with llama.cpp's.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/cpu/ggml/ggml.h"
#include "support/ggml_blocks.h"
#include "support/kernel_problems.h"
#include "tensor/types.h"

namespace sdx::cpu {
namespace {

using sdx::test::GgmlWeights;
using sdx::test::weights_of;
using test::for_each_isa;
using test::Guarded;
using test::random_floats;

constexpr GgmlType kTypes[] = {GgmlType::q4_0, GgmlType::q4_1, GgmlType::q5_0,   GgmlType::q5_1,   GgmlType::q8_0, GgmlType::q4_k,
                               GgmlType::q5_k, GgmlType::q6_k, GgmlType::iq4_nl, GgmlType::iq4_xs, GgmlType::mxfp4};

double wide(float v) { return static_cast<double>(v); }

// 32 activations to a scale.
std::vector<double> rounded(const std::vector<float>& x) {
  std::vector<double> out;
  for (std::size_t b = 0; b < x.size(); b += 32) {
    float most = 0;
    for (std::size_t i = b; i < b + 32; ++i) most = std::max(most, std::abs(x[i]));
    for (std::size_t i = b; i < b + 32; ++i)
      out.push_back(most < 1e-30F ? 0.0 : wide(most / 127.0F) * wide(std::nearbyint(x[i] * (127.0F / most))));
  }
  return out;
}

// What llama.cpp makes of them: Q8_K for types of 256 weights, else Q8_0, or Q8_1 with the same codes.
std::vector<double> as_llama(const std::vector<float>& x, std::size_t block) {
  std::vector<double> out;
  for (std::size_t b = 0; b < x.size(); b += block) {
    float most = 0;
    for (std::size_t i = b; i < b + block; ++i) most = std::max(most, std::abs(x[i]));
    const float scale = most / 127.0F, kept = block == 32 ? static_cast<float>(Float16(scale)) : scale;
    for (std::size_t i = b; i < b + block; ++i) out.push_back(wide(kept) * wide(std::round(x[i] / scale)));
  }
  return out;
}

struct Case {
  const GgmlFormat& format;
  std::int64_t m, n, k;
};

// Rows of activations without what lies between them. Their sizes vary.
std::vector<float> activations(std::int64_t m, std::int64_t k) {
  std::vector<float> x = random_floats(m * k, 5);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] *= std::exp2(static_cast<float>(i / 32 * 7 % 9) - 4.0F) * (i % 61 == 3 ? 6.0F : 1.0F);
  return x;
}

std::vector<float> multiply(const Case& c, const GgmlWeights& w, const std::vector<float>& x, GgmlAccuracy accuracy,
                            const float* bias = nullptr) {
  const std::int64_t lda = c.k + 3;
  Guarded<char> weights(static_cast<std::int64_t>(w.bytes.size()), 1, std::vector<char>(w.bytes.begin(), w.bytes.end()));
  std::vector<float> apart(static_cast<std::size_t>(c.m * lda), std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t i = 0; i < c.m; ++i) std::copy_n(x.begin() + i * c.k, c.k, apart.begin() + i * lda);
  Guarded<float> a(c.m * lda, 1, apart), y(c.m * (c.n + 2), 1);
  GgmlArgs args;
  args.format = &c.format;
  args.m = c.m, args.n = c.n, args.k = c.k;
  args.a = a.data(), args.lda = lda;
  args.weights = weights.data();
  args.bias = bias;
  args.accuracy = accuracy;
  args.c = y.data(), args.ldc = c.n + 2;
  ggml_gemm(args);
  std::vector<float> out;
  for (std::int64_t i = 0; i < c.m; ++i) out.insert(out.end(), y.data() + i * (c.n + 2), y.data() + i * (c.n + 2) + c.n);
  return out;
}

// Sums in float64, and those of the products' magnitudes.
struct Expected {
  std::vector<double> sum, size;
};
Expected expected(const Case& c, const GgmlWeights& w, const std::vector<double>& x) {
  Expected e;
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = 0, size = 0;
      for (std::int64_t t = 0; t < c.k; ++t) {
        const double p = x[static_cast<std::size_t>(i * c.k + t)] * w.values[static_cast<std::size_t>(j * c.k + t)];
        sum += p, size += std::abs(p);
      }
      e.sum.push_back(sum), e.size.push_back(size);
    }
  }
  return e;
}

// Products of rounded activations have the roundings of scales and sums in float32 alone.
void compare(const Case& c) {
  SCOPED_TRACE(std::string(c.format.name) + " " + std::to_string(c.m) + "x" + std::to_string(c.k) + " by " + std::to_string(c.n));
  const GgmlWeights w = weights_of(c.format, c.n, c.k);
  const std::vector<float> x = activations(c.m, c.k), bias = random_floats(c.n, 9);
  const std::vector<double> exact(x.begin(), x.end());
  const Expected e = expected(c, w, ggml_multiplies_bytes(c.format) && c.m >= kGgmlRoundedRows ? rounded(x) : exact);
  const std::vector<float> y = multiply(c, w, x, GgmlAccuracy::int8, c.m % 2 == 1 ? bias.data() : nullptr);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double more = c.m % 2 == 1 ? wide(bias[i % static_cast<std::size_t>(c.n)]) : 0.0;
    ASSERT_NEAR(wide(y[i]), e.sum[i] + more, 1e-5 * e.size[i] + 1e-5) << i;
  }
}

TEST(GgmlBytes, ProductsAreThoseOfRoundedActivations) {
  for_each_isa([] {
    for (const GgmlType type : kTypes) {
      const GgmlFormat& f = *find_ggml(static_cast<std::uint32_t>(type));
      for (const std::int64_t m : {1, 2, 3, 4, 5, 7, 8, 9, 13, 17}) compare({f, m, 19, 3 * f.block});
      compare({f, 1, 1, f.block});
      compare({f, 6, 33, 1280});  // in two parts
      compare({f, 5, 1, f.block});
      compare({f, 12, 40, f.block * 2});
      compare({f, 150, 17, 256});  // rows in several parts
    }
  });
}

TEST(GgmlBytes, RoundNoMoreThanLlamaDoes) {
  for_each_isa([] {
    for (const GgmlType type : kTypes) {
      const GgmlFormat& f = *find_ggml(static_cast<std::uint32_t>(type));
      const Case c{f, 9, 23, 1024};
      const GgmlWeights w = weights_of(f, c.n, c.k);
      const std::vector<float> x = activations(c.m, c.k);
      const Expected exact = expected(c, w, std::vector<double>(x.begin(), x.end()));
      const Expected llama = expected(c, w, as_llama(x, f.block == 256 ? 256 : 32));
      const std::vector<float> y = multiply(c, w, x, GgmlAccuracy::int8);
      double ours = 0, theirs = 0, size = 0;
      for (std::size_t i = 0; i < y.size(); ++i) {
        ours += std::pow(wide(y[i]) - exact.sum[i], 2);
        theirs += std::pow(llama.sum[i] - exact.sum[i], 2);
        size += std::pow(exact.sum[i], 2);
      }
      EXPECT_LE(ours, 1.02 * theirs) << f.name;
      EXPECT_LE(ours, 1e-3 * size) << f.name;
    }
  });
}

TEST(GgmlBytes, ActivationsThatAreNotFiniteAreMultipliedAsFloats) {
  for_each_isa([] {
    const GgmlFormat& f = *find_ggml("q4_0");
    for (const std::int64_t m : {5, 9}) {
      const Case c{f, m, 18, 96};
      const GgmlWeights w = weights_of(f, c.n, c.k);
      for (const float odd : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN(), 0x1p101F}) {
        std::vector<float> x = activations(c.m, c.k);
        x[40] = odd;
        const std::vector<float> y = multiply(c, w, x, GgmlAccuracy::int8), floats = multiply(c, w, x, GgmlAccuracy::float32);
        for (std::size_t i = 0; i < y.size(); ++i) EXPECT_TRUE(y[i] == floats[i] || std::isnan(floats[i])) << i;
        EXPECT_FALSE(std::isfinite(y[0]) && std::abs(y[0]) < 1e20F);
      }
    }
  });
}

TEST(GgmlBytes, ZerosAndTinyActivationsGiveZeros) {
  for_each_isa([] {
    for (const char* type : {"q4_0", "q4_k", "q6_k", "q8_0"}) {
      const Case c{*find_ggml(type), 6, 3, 256};
      const GgmlWeights w = weights_of(c.format, c.n, c.k);
      if (!ggml_multiplies_bytes(c.format)) continue;
      for (const float small : {0.0F, 1e-38F, -1e-41F}) {
        for (const float v : multiply(c, w, std::vector<float>(1536, small), GgmlAccuracy::int8)) EXPECT_EQ(v, 0.0F) << type;
      }
    }
  });
}

// Several products at once, of different numbers of rows and types, in one pool and another.
TEST(GgmlBytes, SeveralProductsShareThreads) {
  for_each_isa([] {
    std::vector<GgmlWeights> weights;
    std::vector<std::vector<float>> x, alone, together;
    std::vector<GgmlArgs> all;
    const std::pair<const char*, std::int64_t> kinds[] = {{"q4_k", 1}, {"q8_0", 7}, {"f16", 9}, {"q6_k", 40}, {"q5_0", 5}};
    for (const auto& [type, m] : kinds) {
      const Case c{*find_ggml(type), m, 50, 512};
      weights.push_back(weights_of(c.format, c.n, c.k));
      x.push_back(activations(m, c.k));
      together.emplace_back(static_cast<std::size_t>(m * c.n));
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Case c{*find_ggml(kinds[i].first), kinds[i].second, 50, 512};
      alone.push_back(multiply(c, weights[i], x[i], GgmlAccuracy::int8));
      GgmlArgs args;
      args.format = &c.format;
      args.m = c.m, args.n = c.n, args.k = c.k;
      args.a = x[i].data(), args.lda = c.k;
      args.weights = weights[i].bytes.data();
      args.accuracy = GgmlAccuracy::int8;
      args.c = together[i].data(), args.ldc = c.n;
      all.push_back(args);
    }
    for (const int threads : {1, 2, 3}) {
      for (auto& y : together) std::fill(y.begin(), y.end(), 0.0F);
      ThreadPool pool(threads);
      const PoolScope scope(pool);
      ggml_gemms(all);
      for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(together[i], alone[i]) << kinds[i].first << ", " << threads;
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
