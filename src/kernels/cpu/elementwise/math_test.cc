#include "kernels/cpu/elementwise/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;
using test::ulps;

struct Case {
  Math op;
  std::function<double(double)> exact;
  float lo, hi;
  double max_ulps;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {Math::exp, [](double x) { return std::exp(x); }, -103, 88.7F, 2},
      {Math::tanh, [](double x) { return std::tanh(x); }, -12, 12, 6},
      {Math::erf, [](double x) { return std::erf(x); }, -5, 5, 2},
      {Math::sin, [](double x) { return std::sin(x); }, -4, 4, 2.5},
      {Math::sin, [](double x) { return std::sin(x); }, -8000, 8000, 2.5},
      {Math::sin, [](double x) { return std::sin(x); }, -131000, 2e5F, 2.5},  // on both sides of the reduction's limits
      {Math::cos, [](double x) { return std::cos(x); }, -4, 4, 2.5},
      {Math::cos, [](double x) { return std::cos(x); }, -8000, 8000, 2.5},
      {Math::cos, [](double x) { return std::cos(x); }, -2e5F, 131000, 2.5},
      {Math::atan, [](double x) { return std::atan(x); }, -5, 5, 3},
      {Math::atan, [](double x) { return std::atan(x); }, -1e6F, 1e6F, 3},
      {Math::asin, [](double x) { return std::asin(x); }, -1, 1, 3},
      {Math::acos, [](double x) { return std::acos(x); }, -1, 1, 3},
  };
  return all;
}

TEST(KernelsMath, IsAccurateAtEverySizeAndAlignment) {
  for_each_isa([] {
    for (const Case& c : cases()) {
      SCOPED_TRACE("op " + std::to_string(static_cast<int>(c.op)));
      for (const std::int64_t n : {1, 2, 3, 7, 8, 15, 17, 33, 1001, 20000}) {
        const std::vector<float> values = random_floats(n, static_cast<unsigned>(n), c.lo, c.hi);
        Guarded<float> x(n, static_cast<int>(n % 3), values);
        Guarded<float> y(n, static_cast<int>(n % 5));
        math_f32(c.op, x.data(), y.data(), n);
        for (std::int64_t i = 0; i < n; ++i) {
          const double error = ulps(y[i], c.exact(x[i]));
          ASSERT_LE(error, c.max_ulps) << "f(" << x[i] << ") = " << y[i];
        }
        math_f32(c.op, x.data(), x.data(), n);  // in place gives the same bits
        ASSERT_EQ(std::memcmp(x.data(), y.data(), static_cast<std::size_t>(n) * 4), 0);
      }
    }
  });
}

TEST(KernelsMath, SpecialValues) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto f = [](Math op, float x) {
    float y = 0;
    math_f32(op, &x, &y, 1);
    return y;
  };
  for_each_isa([&] {
    for (const Case& c : cases()) EXPECT_TRUE(std::isnan(f(c.op, std::nanf("")))) << static_cast<int>(c.op);
    for (const float x : {0.0F, -0.0F, 1e-40F, -1e-40F, 1e-30F}) {
      for (const Math op : {Math::tanh, Math::sin, Math::atan, Math::asin}) {
        const float y = f(op, x);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(y), std::bit_cast<std::uint32_t>(x)) << static_cast<int>(op) << " of " << x;
      }
    }
    for (const float x : {9.0F, 9.5F, 9.9F, 30.0F}) {
      EXPECT_LE(f(Math::tanh, x), 1.0F);
      EXPECT_LE(ulps(f(Math::tanh, -x), std::tanh(static_cast<double>(-x))), 6);
    }
    EXPECT_EQ(f(Math::tanh, -kInf), -1.0F);
    EXPECT_EQ(f(Math::erf, kInf), 1.0F);
    EXPECT_EQ(f(Math::exp, -kInf), 0.0F);
    EXPECT_EQ(f(Math::exp, kInf), kInf);
    EXPECT_TRUE(std::isnan(f(Math::sin, kInf)));
    EXPECT_TRUE(std::isnan(f(Math::cos, -kInf)));
    EXPECT_LE(ulps(f(Math::sin, 1e30F), std::sin(static_cast<double>(1e30F))), 2);
    // Floats next to multiples of pi and pi / 2, where the difference has few bits left.
    for (const float x : {3.14159274F, 6.28318548F, 1.57079637F, 355.0F, 710.0F, 5419351.0F, 8141.0F}) {
      EXPECT_LE(ulps(f(Math::sin, x), std::sin(static_cast<double>(x))), 2.5) << x;
      EXPECT_LE(ulps(f(Math::cos, x), std::cos(static_cast<double>(x))), 2.5) << x;
    }
    EXPECT_LE(ulps(f(Math::atan, kInf), M_PI / 2), 1);
    EXPECT_LE(ulps(f(Math::atan, -kInf), -M_PI / 2), 1);
    EXPECT_EQ(f(Math::asin, 1.0F), static_cast<float>(M_PI / 2));
    EXPECT_EQ(f(Math::acos, 1.0F), 0.0F);
    EXPECT_LE(ulps(f(Math::acos, -1.0F), M_PI), 1);
    EXPECT_TRUE(std::isnan(f(Math::asin, 1.5F)));
    EXPECT_TRUE(std::isnan(f(Math::acos, -1.00001F)));
  });
}

// fmod is exact for all floats; modulo differs by one addition of the divisor.
TEST(KernelsMath, RemaindersAreExact) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float special[] = {0.0F, -0.0F, 1.0F, -3.0F, 0.1F, 1e-40F, 1e30F, 3e38F, kInf, -kInf, std::nanf(""), 16777216.0F, 0.7F};
  std::vector<float> a, b;
  for (const float x : special) {
    for (const float y : special) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const std::vector<float> divisors = random_floats(4000, 3, -2, 2);
  std::mt19937 rng(4);
  for (const float y : divisors) {  // next to multiples of the divisor, where the quotient rounds up
    const float multiple = y * static_cast<float>(rng() % 4000);
    for (const float x :
         {multiple, std::nextafter(multiple, 0.0F), std::nextafter(multiple, 1e9F), multiple * 1.37F, multiple * 1e6F}) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const auto n = static_cast<std::int64_t>(a.size());
  const std::int64_t one = 1;
  const RowPlan<2> plan = plan_rows<2>(1, &n, {&one, &one});
  std::vector<float> y(a.size());
  for_each_isa([&] {
    remainder_f32(Remainder::fmod, plan, a.data(), b.data(), y.data());
    for (std::size_t i = 0; i < a.size(); ++i) {
      const float want = std::fmod(a[i], b[i]);
      ASSERT_TRUE(std::isnan(want) ? std::isnan(y[i]) : y[i] == want && std::signbit(y[i]) == std::signbit(want))
          << a[i] << " by " << b[i] << ": " << y[i] << ", want " << want;
    }
    remainder_f32(Remainder::modulo, plan, a.data(), b.data(), y.data());
    for (std::size_t i = 0; i < a.size(); ++i) {
      const float rest = std::fmod(a[i], b[i]);
      const float want = rest == 0 ? std::copysign(0.0F, b[i]) : ((rest < 0) != (b[i] < 0) ? rest + b[i] : rest);
      ASSERT_TRUE(std::isnan(want) ? std::isnan(y[i]) : y[i] == want && std::signbit(y[i]) == std::signbit(want))
          << a[i] << " modulo " << b[i] << ": " << y[i] << ", want " << want;
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
