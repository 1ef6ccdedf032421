#include "kernels/cpu/elementwise/elementwise.h"

#include <gtest/gtest.h>

#include <functional>

#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;
using test::ulps;

struct Case {
  UnarySpec spec;
  std::function<double(double)> exact;
  float lo, hi;
  double max_ulps;
  double max_abs = 0.0;  // an absolute error that is also accepted (cancellation, or arguments rounded inside)
};

double sig(double x) { return 1.0 / (1.0 + std::exp(-x)); }

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{Unary::relu}, [](double x) { return x < 0 ? 0 : x; }, -4, 4, 0},
      {{Unary::clip, -0.5F, 0.75F}, [](double x) { return std::min(std::max(x, -0.5), 0.75); }, -4, 4, 0},
      {{Unary::leaky_relu, 0.125F}, [](double x) { return x < 0 ? 0.125 * x : x; }, -4, 4, 0.5},
      {{Unary::hard_sigmoid, 0.25F, 0.5F}, [](double x) { return std::clamp(0.25 * x + 0.5, 0.0, 1.0); }, -4, 4, 1, 1e-7},
      {{Unary::hard_swish}, [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }, -5, 5, 2, 5e-7},
      {{Unary::sigmoid}, sig, -87, 100, 4},
      {{Unary::tanh}, [](double x) { return std::tanh(x); }, -12, 12, 6},
      {{Unary::tanh}, [](double x) { return std::tanh(x); }, -0.7F, 0.7F, 6},
      {{Unary::silu, 1.0F}, [](double x) { return x * sig(x); }, -8, 80, 5},
      {{Unary::silu, 1.0F}, [](double x) { return x * sig(x); }, -80, -8, 24},  // 1.3e-8 |x|
      {{Unary::silu, 1.5F}, [](double x) { return x * sig(1.5 * x); }, -4, 4, 6},
      {{Unary::gelu}, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, -12, 12, 4, 3e-7},
      {{Unary::gelu_tanh},
       [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); },
       -6,
       6,
       4,
       1e-6},
      {{Unary::elu, 0.5F}, [](double x) { return x < 0 ? 0.5 * std::expm1(x) : x; }, -20, 4, 4},
      {{Unary::selu, 1.5F, 1.0625F}, [](double x) { return 1.0625 * (x < 0 ? 1.5 * std::expm1(x) : x); }, -20, 4, 4},
      {{Unary::celu, 2.0F}, [](double x) { return std::max(0.0, x) + std::min(0.0, 2 * std::expm1(x / 2)); }, -20, 4, 4},
      {{Unary::celu, 1.0F}, [](double x) { return std::max(0.0, x) + std::min(0.0, std::expm1(x)); }, -20, 4, 4},
      {{Unary::softplus}, [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }, -80, 80, 4},
      {{Unary::softsign}, [](double x) { return x / (1 + std::fabs(x)); }, -80, 80, 2},
      {{Unary::mish}, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, -20, 40, 5},
      {{Unary::thresholded_relu, 0.5F}, [](double x) { return x > 0.5 ? x : 0; }, -4, 4, 0},
      {{Unary::shrink, 0.5F, 0.25F}, [](double x) { return x > 0.5 ? x - 0.25 : (x < -0.5 ? x + 0.25 : 0); }, -4, 4, 0.5},
      {{Unary::abs}, [](double x) { return std::fabs(x); }, -4, 4, 0},
      {{Unary::neg}, [](double x) { return -x; }, -4, 4, 0},
      {{Unary::exp}, [](double x) { return std::exp(x); }, -103, 88.7F, 2},
      {{Unary::exp}, [](double x) { return std::exp(x); }, -1, 1, 2},
      {{Unary::log}, [](double x) { return std::log(x); }, 1e-6F, 4, 2},
      {{Unary::log}, [](double x) { return std::log(x); }, 1, 1e30F, 2},
      {{Unary::sqrt}, [](double x) { return std::sqrt(x); }, 0, 1e5F, 0.5},
      {{Unary::reciprocal}, [](double x) { return 1 / x; }, 0.1F, 100, 0.5},
      {{Unary::rsqrt}, [](double x) { return 1 / std::sqrt(x); }, 0.1F, 100, 1.5},
      {{Unary::erf}, [](double x) { return std::erf(x); }, -5, 5, 2},
      {{Unary::erf}, [](double x) { return std::erf(x); }, -1e-3F, 1e-3F, 2},
      {{Unary::floor}, [](double x) { return std::floor(x); }, -50, 50, 0},
      {{Unary::ceil}, [](double x) { return std::ceil(x); }, -50, 50, 0},
      {{Unary::round}, [](double x) { return std::nearbyint(x); }, -50, 50, 0},
      {{Unary::sign}, [](double x) { return x > 0 ? 1.0 : (x < 0 ? -1.0 : 0.0); }, -5, 5, 0},
      {{Unary::square}, [](double x) { return x * x; }, -5, 5, 0.5},
      {{Unary::affine, 2.0F, 0.5F}, [](double x) { return 2 * x + 0.5; }, -5, 5, 1, 1e-6},
  };
  return all;
}

TEST(KernelsElementwise, UnaryIsAccurateAtEverySizeAndAlignment) {
  for_each_isa([] {
    for (const Case& c : cases()) {
      SCOPED_TRACE("op " + std::to_string(static_cast<int>(c.spec.op)));
      for (const std::int64_t n : {1, 2, 3, 7, 8, 15, 17, 31, 33, 1001}) {
        const std::vector<float> values = random_floats(n, static_cast<unsigned>(n), c.lo, c.hi);
        Guarded<float> x(n, static_cast<int>(n % 3), values);
        Guarded<float> y(n, static_cast<int>(n % 5));
        unary_f32(c.spec, x.data(), y.data(), n);
        for (std::int64_t i = 0; i < n; ++i) {
          const double want = c.exact(values[static_cast<std::size_t>(i)]);
          const double error = ulps(y[i], want);
          ASSERT_TRUE(error <= c.max_ulps || std::fabs(y[i] - want) <= c.max_abs)
              << "f(" << values[static_cast<std::size_t>(i)] << ") = " << y[i] << ", want " << want << " (" << error << " ulp)";
        }
        unary_f32(c.spec, x.data(), x.data(), n);  // in place gives the same bits
        ASSERT_EQ(std::memcmp(x.data(), y.data(), static_cast<std::size_t>(n) * 4), 0);
      }
    }
  });
}

TEST(KernelsElementwise, ExpTanhErfHoldTheirErrorBoundOverADenseSweep) {
  for_each_isa([] {
    constexpr std::int64_t kCount = 200000;
    for (const Case& c : cases()) {
      if (c.spec.op != Unary::exp && c.spec.op != Unary::tanh && c.spec.op != Unary::erf && c.spec.op != Unary::log) continue;
      std::vector<float> x(kCount);
      for (std::int64_t i = 0; i < kCount; ++i) {
        x[static_cast<std::size_t>(i)] = c.lo + (c.hi - c.lo) * static_cast<float>(i) / static_cast<float>(kCount);
      }
      std::vector<float> y(kCount);
      unary_f32(c.spec, x.data(), y.data(), kCount);
      double worst = 0;
      for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, ulps(y[i], c.exact(x[i])));
      EXPECT_LE(worst, c.max_ulps) << static_cast<int>(c.spec.op);
    }
  });
}

TEST(KernelsElementwise, SpecialValues) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto f = [](Unary op, float x, float a = 1.0F, float b = 1.0F) {
    float y = 0;
    unary_f32({op, a, b}, &x, &y, 1);
    return y;
  };
  for_each_isa([&] {
    for (const Case& c : cases()) {
      if (c.spec.op == Unary::thresholded_relu || c.spec.op == Unary::shrink) {  // NaN is not above the threshold
        EXPECT_EQ(f(c.spec.op, kNan, c.spec.a), 0.0F);
        continue;
      }
      EXPECT_TRUE(std::isnan(f(c.spec.op, kNan, c.spec.a, c.spec.b))) << static_cast<int>(c.spec.op);
    }
    EXPECT_EQ(f(Unary::exp, kInf), kInf);
    EXPECT_EQ(f(Unary::exp, 89.0F), kInf);
    EXPECT_EQ(f(Unary::exp, -kInf), 0.0F);
    EXPECT_EQ(f(Unary::exp, -200.0F), 0.0F);
    EXPECT_EQ(f(Unary::exp, 0.0F), 1.0F);
    EXPECT_EQ(f(Unary::log, 0.0F), -kInf);
    EXPECT_EQ(f(Unary::log, kInf), kInf);
    EXPECT_TRUE(std::isnan(f(Unary::log, -1.0F)));
    EXPECT_LE(ulps(f(Unary::log, 1e-42F), std::log(static_cast<double>(1e-42F))), 2);
    EXPECT_EQ(f(Unary::tanh, kInf), 1.0F);
    EXPECT_EQ(f(Unary::tanh, -kInf), -1.0F);
    EXPECT_EQ(f(Unary::erf, kInf), 1.0F);
    EXPECT_EQ(f(Unary::erf, -kInf), -1.0F);
    EXPECT_EQ(f(Unary::sigmoid, kInf), 1.0F);
    EXPECT_EQ(f(Unary::sigmoid, -kInf), 0.0F);
    for (const Unary op : {Unary::gelu, Unary::gelu_tanh}) {
      EXPECT_EQ(f(op, kInf), kInf);
      EXPECT_EQ(f(op, 1e30F), 1e30F);
      EXPECT_EQ(f(op, -1e30F), 0.0F);
      EXPECT_EQ(f(op, 0.0F), 0.0F);
      // -inf times 0, and the product before it is halved.
      constexpr float kMost = std::numeric_limits<float>::max();
      EXPECT_TRUE(std::isnan(f(op, -kInf, 0.0F)));
      EXPECT_TRUE(std::isnan(f(op, -kInf, 1.0F)));
      EXPECT_EQ(f(op, kMost, 0.0F), kMost);
      EXPECT_EQ(f(op, kMost, 1.0F), kInf);
      EXPECT_EQ(f(op, -kMost, 0.0F), 0.0F);
    }
    EXPECT_EQ(f(Unary::softplus, 1000.0F), 1000.0F);
    EXPECT_EQ(f(Unary::mish, 1000.0F), 1000.0F);
    EXPECT_EQ(f(Unary::round, 2.5F), 2.0F);
    EXPECT_EQ(f(Unary::round, -3.5F), -4.0F);
  });
}

double exact_binary(Binary op, double a, double b) {
  switch (op) {
    case Binary::add: return a + b;
    case Binary::sub: return a - b;
    case Binary::mul: return a * b;
    case Binary::div: return a / b;
    case Binary::min: return std::min(a, b);
    case Binary::max: return std::max(a, b);
    case Binary::pow: return std::pow(a, b);
    case Binary::prelu: return a < 0 ? a * b : a;
    case Binary::relu_grad: return b > 0 ? a : 0;
  }
  return 0;
}

constexpr Binary kBinaries[] = {Binary::add, Binary::sub, Binary::mul,   Binary::div,      Binary::min,
                                Binary::max, Binary::pow, Binary::prelu, Binary::relu_grad};

TEST(KernelsElementwise, BinaryFormsMatch) {
  for_each_isa([] {
    for (const Binary op : kBinaries) {
      const float lo = op == Binary::pow ? 0.1F : -2.0F;
      for (const std::int64_t n : {1, 5, 8, 19, 64, 333}) {
        Guarded<float> a(n, 1, random_floats(n, 1, lo, 2));
        Guarded<float> b(n, 3, random_floats(n, 2, 0.5F, 2));
        Guarded<float> y(n, 2);
        binary_f32(op, a.data(), b.data(), y.data(), n);
        for (std::int64_t i = 0; i < n; ++i) ASSERT_LE(ulps(y[i], exact_binary(op, a[i], b[i])), 1) << static_cast<int>(op);
        for (const float s : {2.0F, 1.0F, -1.0F, 3.0F, 0.7F}) {
          binary_scalar_right_f32(op, a.data(), s, y.data(), n);
          for (std::int64_t i = 0; i < n; ++i) ASSERT_LE(ulps(y[i], exact_binary(op, a[i], s)), 2) << static_cast<int>(op);
          if (op == Binary::pow && s < 0) continue;
          binary_scalar_left_f32(op, s, b.data(), y.data(), n);
          for (std::int64_t i = 0; i < n; ++i) ASSERT_LE(ulps(y[i], exact_binary(op, s, b[i])), 2) << static_cast<int>(op);
        }
      }
    }
    float a[3] = {std::numeric_limits<float>::quiet_NaN(), 1.0F, 2.0F};
    float b[3] = {1.0F, std::numeric_limits<float>::quiet_NaN(), 3.0F};
    float y[3];
    for (const Binary op : {Binary::min, Binary::max}) {
      binary_f32(op, a, b, y, 3);
      EXPECT_TRUE(std::isnan(y[0]));
      EXPECT_TRUE(std::isnan(y[1]));
    }
  });
}

// Powers within 1 ulp over all of float32, and exactly the library's result if that is not normal.
TEST(KernelsElementwise, Powers) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for_each_isa([&] {
    std::vector<float> a, b;
    for (const float x :
         {0.0F, -0.0F, 1.0F, -1.0F, -2.0F, 2.5F, 1e-40F, 1e-38F, 3e38F, inf, -inf, nan, 0.99999994F, 1.0000001F}) {
      for (const float e : {0.0F, -0.0F, 0.5F, -0.5F, 3.0F, -3.0F, 0.3F, 130.0F, -130.0F, 1e9F, inf, -inf, nan}) {
        a.push_back(x);
        b.push_back(e);
      }
    }
    const std::size_t special = a.size();
    const std::vector<float> logs = random_floats(3000, 1, -86, 88), more = random_floats(3000, 2, -3, 3);
    for (std::size_t i = 0; i < logs.size(); ++i) {
      a.push_back(std::exp(logs[i]));
      b.push_back(more[i]);
    }
    const auto n = static_cast<std::int64_t>(a.size());
    Guarded<float> x(n, 1, a), e(n, 3, b), y(n, 2);
    binary_f32(Binary::pow, x.data(), e.data(), y.data(), n);
    const auto check = [&](std::int64_t i, float base, float exponent) {
      const float want = std::pow(base, exponent);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(y[i])) << base << " ^ " << exponent;
      } else if (!std::isnormal(want)) {
        ASSERT_EQ(y[i], want) << base << " ^ " << exponent;
        ASSERT_EQ(std::signbit(y[i]), std::signbit(want)) << base << " ^ " << exponent;
      } else {
        ASSERT_LE(ulps(y[i], std::pow(static_cast<double>(base), static_cast<double>(exponent))), 1) << base << " ^ " << exponent;
      }
    };
    for (std::int64_t i = 0; i < n; ++i) check(i, a[static_cast<std::size_t>(i)], b[static_cast<std::size_t>(i)]);
    for (const float s : {0.5F, -0.5F, 2.2F}) {
      binary_scalar_right_f32(Binary::pow, x.data(), s, y.data(), static_cast<std::int64_t>(special));
      for (std::size_t i = 0; i < special; ++i) check(static_cast<std::int64_t>(i), a[i], s);
    }
  });
}

TEST(KernelsElementwise, BroadcastMatchesIndexing) {
  struct Shape {
    std::vector<std::int64_t> dims, a, b;
  };
  const std::vector<Shape> shapes = {
      {{2, 3, 5, 7}, {105, 35, 7, 1}, {0, 1, 0, 0}},  // per channel
      {{6, 9}, {9, 1}, {0, 1}},                       // per row
      {{6, 9}, {9, 1}, {1, 0}},                       // per column
      {{4, 1, 6}, {1, 0, 0}, {0, 0, 1}},              // outer
      {{3, 4, 5}, {20, 5, 1}, {20, 5, 1}},            // merges to one
      {{3, 300}, {1, 3}, {300, 1}},                   // transposed view
      {{1, 1}, {0, 0}, {0, 0}},
      {{2, 1, 3, 2, 5}, {30, 30, 10, 5, 1}, {15, 0, 5, 0, 1}},
      // Short rows, two axes at a time.
      {{5, 6, 37}, {6, 1, 0}, {37, 0, 1}},
      {{5, 6, 37}, {37, 0, 1}, {6, 1, 0}},
      {{5, 6, 16}, {96, 16, 1}, {40, 0, 1}},
      {{1, 3000, 14}, {0, 1, 0}, {0, 20, 1}},
  };
  for_each_isa([&] {
    for (const Shape& s : shapes) {
      std::int64_t n = 1, na = 1, nb = 1;
      for (std::size_t i = 0; i < s.dims.size(); ++i) {
        n *= s.dims[i];
        na += (s.dims[i] - 1) * s.a[i];
        nb += (s.dims[i] - 1) * s.b[i];
      }
      Guarded<float> a(na, 1, random_floats(na, 3));
      Guarded<float> b(nb, 1, random_floats(nb, 4, 0.5F, 2.0F));
      Guarded<float> y(n, 1);
      for (const Binary op : {Binary::sub, Binary::div}) {
        binary_broadcast_f32(op, a.data(), b.data(), y.data(), static_cast<int>(s.dims.size()), s.dims.data(), s.a.data(),
                             s.b.data());
        for (std::int64_t i = 0; i < n; ++i) {
          std::int64_t rest = i, ia = 0, ib = 0;
          for (std::size_t d = s.dims.size(); d-- > 0;) {
            ia += rest % s.dims[d] * s.a[d];
            ib += rest % s.dims[d] * s.b[d];
            rest /= s.dims[d];
          }
          ASSERT_LE(ulps(y[i], exact_binary(op, a[ia], b[ib])), 0.5) << i;
        }
      }
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
