#include "kernels/cpu/elements/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "kernels/cpu/elements/activations.h"
#include "kernels/cpu/elements/tensors.h"
#include "support/kernel_problems.h"
#include "tensor/element.h"
#include "tensor/types.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;

template <class T>
constexpr DataType type_of() {
  if constexpr (std::is_same_v<T, float>) return DataType::float32;
  if constexpr (std::is_same_v<T, double>) return DataType::float64;
  constexpr bool kSign = std::is_signed_v<T>;
  switch (sizeof(T)) {
    case 1: return kSign ? DataType::int8 : DataType::uint8;
    case 2: return kSign ? DataType::int16 : DataType::uint16;
    case 4: return kSign ? DataType::int32 : DataType::uint32;
    default: return kSign ? DataType::int64 : DataType::uint64;
  }
}

// Few values, so that equal ones occur; among them the limits of the type and NaN.
template <class T>
std::vector<T> values(std::int64_t n, unsigned seed) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> few = {T(0), T(1), T(2), T(3), T(7), T(100), Limits::max(), Limits::lowest()};
  if constexpr (std::is_floating_point_v<T>) {
    for (const T v : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), T(-0.0), Limits::denorm_min(), T(-2.5)})
      few.push_back(v);
  } else if constexpr (std::is_signed_v<T>) {
    for (const int v : {-1, -2, -7, -100}) few.push_back(static_cast<T>(v));
  }
  std::mt19937 rng(seed);
  std::vector<T> v(static_cast<std::size_t>(n));
  for (T& x : v) x = few[rng() % few.size()];
  return v;
}

template <class T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a == b || (a != a && b != b);
  return a == b;
}

template <class T>
using Pairs = std::vector<std::pair<BinaryFn, std::function<T(T, T)>>>;
template <class T>
using Maps = std::vector<std::pair<UnaryFn, std::function<T(T)>>>;

template <class T>
T wrapped(std::uint64_t v) {
  return static_cast<T>(v);
}

template <class T>
T shifted(T a, T b, bool left) {
  const bool outside = b < 0 || static_cast<std::uint64_t>(b) >= sizeof(T) * 8;
  if (outside) return !left && a < 0 ? T(-1) : T(0);
  return left ? wrapped<T>(static_cast<std::uint64_t>(a) << b) : static_cast<T>(a >> b);
}

template <class T>
bool negates(T b) {
  return std::is_signed_v<T> && b == static_cast<T>(-1);
}

template <class T>
T power(T a, T b) {
  if (b < 0)
    return a == 0 ? std::numeric_limits<T>::max() : a == 1 || (negates(a) && b % 2 == 0) ? T(1) : negates(a) ? T(-1) : T(0);
  std::uint64_t result = 1, factor = static_cast<std::uint64_t>(a);
  for (auto e = static_cast<std::uint64_t>(b); e != 0; e >>= 1, factor *= factor) result *= (e & 1) != 0 ? factor : 1;
  return wrapped<T>(result);
}

// The results for integers. Divisors are not 0.
template <class T>
Pairs<T> integer_pairs() {
  const auto u = [](T v) { return static_cast<std::uint64_t>(v); };
  return {{BinaryFn::add, [u](T a, T b) { return wrapped<T>(u(a) + u(b)); }},
          {BinaryFn::subtract, [u](T a, T b) { return wrapped<T>(u(a) - u(b)); }},
          {BinaryFn::multiply, [u](T a, T b) { return wrapped<T>(u(a) * u(b)); }},
          {BinaryFn::maximum, [](T a, T b) { return std::max(a, b); }},
          {BinaryFn::minimum, [](T a, T b) { return std::min(a, b); }},
          {BinaryFn::bitwise_and, [](T a, T b) { return static_cast<T>(a & b); }},
          {BinaryFn::bitwise_or, [](T a, T b) { return static_cast<T>(a | b); }},
          {BinaryFn::bitwise_xor, [](T a, T b) { return static_cast<T>(a ^ b); }},
          {BinaryFn::left_shift, [](T a, T b) { return shifted(a, b, true); }},
          {BinaryFn::right_shift, [](T a, T b) { return shifted(a, b, false); }},
          {BinaryFn::truncated_divide, [u](T a, T b) { return negates(b) ? wrapped<T>(0 - u(a)) : static_cast<T>(a / b); }},
          {BinaryFn::fmod, [](T a, T b) { return negates(b) ? T(0) : static_cast<T>(a % b); }},
          {BinaryFn::power_saturating, [](T a, T b) { return power(a, b); }},
          {BinaryFn::prelu, [u](T a, T b) { return a < 0 ? wrapped<T>(u(a) * u(b)) : a; }}};
}

template <class T>
Pairs<T> real_pairs() {
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  return {{BinaryFn::add, [](T a, T b) { return a + b; }},
          {BinaryFn::subtract, [](T a, T b) { return a - b; }},
          {BinaryFn::multiply, [](T a, T b) { return a * b; }},
          {BinaryFn::divide, [](T a, T b) { return a / b; }},
          {BinaryFn::fmod, [](T a, T b) { return std::fmod(a, b); }},
          {BinaryFn::power, [](T a, T b) { return std::pow(a, b); }},
          {BinaryFn::maximum, [=](T a, T b) { return a != a || b != b ? kNan : std::max(a, b); }},
          {BinaryFn::minimum, [=](T a, T b) { return a != a || b != b ? kNan : std::min(a, b); }},
          {BinaryFn::prelu, [](T a, T b) { return a < 0 ? a * b : a; }}};
}

template <class T>
Pairs<T> comparisons() {
  return {{BinaryFn::equal, [](T a, T b) { return T(a == b); }},
          {BinaryFn::not_equal, [](T a, T b) { return T(a != b); }},
          {BinaryFn::less, [](T a, T b) { return T(a < b); }},
          {BinaryFn::less_equal, [](T a, T b) { return T(a <= b); }}};
}

// Rows of n elements, of operands that step or do not.
template <class T, class Out>
void check_pair(BinaryFn fn, const std::function<T(T, T)>& want, std::int64_t n, bool a_steps, bool b_steps) {
  const std::int64_t rows = 3, dims[2] = {rows, n};
  const std::int64_t a_step[2] = {n, a_steps ? 1 : 0}, b_step[2] = {0, b_steps ? 1 : 0};
  Guarded<T> a(rows * n, 1, values<T>(rows * n, 1)), b(n, 3, values<T>(n, 2));
  const bool divides = std::is_integral_v<T> && (fn == BinaryFn::truncated_divide || fn == BinaryFn::fmod);
  for (std::int64_t i = 0; divides && i < n; ++i) b[i] = b[i] == 0 ? T(5) : b[i];
  Guarded<Out> y(rows * n, 5);
  apply(fn, type_of<T>(), plan_rows<2>(2, dims, {a_step, b_step}), a.data(), b.data(), y.data());
  for (std::int64_t i = 0; i < rows * n; ++i) {
    const T left = a[i / n * n + (a_steps ? i % n : 0)], right = b[b_steps ? i % n : 0];
    ASSERT_TRUE(same(static_cast<T>(y[i]), want(left, right)))
        << "function " << static_cast<int>(fn) << " of " << +left << " and " << +right << " gives " << +y[i];
  }
}

template <class T, class Out>
void check_all(const Pairs<T>& pairs) {
  for (const auto& [fn, want] : pairs) {
    for (const std::int64_t n : {1, 2, 7, 16, 31, 65, 300}) {
      for (const int form : {0, 1, 2, 3}) check_pair<T, Out>(fn, want, n, (form & 1) != 0, (form & 2) != 0);
    }
  }
}

TEST(Elements, PairsMatchPlainLoops) {
  for_each_isa([] {
    const auto integers = [](auto zero) {
      using T = decltype(zero);
      check_all<T, T>(integer_pairs<T>());
      check_all<T, std::uint8_t>(comparisons<T>());
    };
    integers(std::int8_t());
    integers(std::int16_t());
    integers(std::int32_t());
    integers(std::int64_t());
    integers(std::uint8_t());
    integers(std::uint16_t());
    integers(std::uint32_t());
    integers(std::uint64_t());
    check_all<float, float>(real_pairs<float>());
    check_all<double, double>(real_pairs<double>());
    check_all<float, std::uint8_t>(comparisons<float>());
    check_all<double, std::uint8_t>(comparisons<double>());
    EXPECT_FALSE(supports(BinaryFn::bitwise_and, DataType::float32));
    EXPECT_FALSE(supports(BinaryFn::add, DataType::string));
  });
}

TEST(Elements, BooleansAreBytesThatAreNotZero) {
  for_each_isa([] {
    const std::int64_t n = 77, step[1] = {1};
    Guarded<std::uint8_t> a(n, 1, values<std::uint8_t>(n, 1)), b(n, 3, values<std::uint8_t>(n, 2)), y(n, 5);
    const std::pair<BinaryFn, std::function<bool(bool, bool)>> functions[] = {{BinaryFn::bitwise_and, std::logical_and<bool>()},
                                                                              {BinaryFn::bitwise_or, std::logical_or<bool>()},
                                                                              {BinaryFn::bitwise_xor, std::not_equal_to<bool>()},
                                                                              {BinaryFn::equal, std::equal_to<bool>()},
                                                                              {BinaryFn::less, std::less<bool>()},
                                                                              {BinaryFn::less_equal, std::less_equal<bool>()}};
    for (const auto& [fn, want] : functions) {
      apply(fn, DataType::boolean, plan_rows<2>(1, &n, {step, step}), a.data(), b.data(), y.data());
      for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], want(a[i] != 0, b[i] != 0) ? 1 : 0) << +a[i] << " and " << +b[i];
    }
    apply(UnaryFn::logical_not, DataType::boolean, a.data(), y.data(), n);
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] == 0 ? 1 : 0);
  });
}

template <class T>
void check_maps(const Maps<T>& maps) {
  for (const auto& [fn, want] : maps) {
    for (const std::int64_t n : {1, 15, 33, 129}) {
      Guarded<T> x(n, 3, values<T>(n, 5)), y(n, 1);
      apply(fn, type_of<T>(), x.data(), y.data(), n);
      for (std::int64_t i = 0; i < n; ++i) ASSERT_TRUE(same(y[i], want(x[i]))) << static_cast<int>(fn) << " of " << +x[i];
      apply(fn, type_of<T>(), x.data(), x.data(), n);
      for (std::int64_t i = 0; i < n; ++i) ASSERT_TRUE(same(y[i], x[i])) << "in place, " << static_cast<int>(fn);
    }
  }
}

template <class T>
Maps<T> integer_maps() {
  const auto minus = [](T v) { return wrapped<T>(0 - static_cast<std::uint64_t>(v)); };
  return {{UnaryFn::negative, minus},
          {UnaryFn::abs, [=](T v) { return v < 0 ? minus(v) : v; }},
          {UnaryFn::sign, [](T v) { return static_cast<T>((v > 0) - (v < 0)); }},
          {UnaryFn::relu, [](T v) { return v < 0 ? T(0) : v; }},
          {UnaryFn::bitwise_invert, [](T v) { return static_cast<T>(~v); }}};
}

template <class T>
Maps<T> real_maps() {
  return {{UnaryFn::negative, [](T v) { return -v; }},
          {UnaryFn::abs, [](T v) { return std::abs(v); }},
          {UnaryFn::sign, [](T v) { return v > 0   ? T(1)
                                           : v < 0 ? T(-1)
                                                   : v; }},
          {UnaryFn::relu, [](T v) { return v < 0 ? T(0) : v; }},
          {UnaryFn::sqrt, [](T v) { return std::sqrt(v); }},
          {UnaryFn::reciprocal, [](T v) { return 1 / v; }},
          {UnaryFn::floor, [](T v) { return std::floor(v); }},
          {UnaryFn::ceil, [](T v) { return std::ceil(v); }},
          {UnaryFn::round, [](T v) { return std::nearbyint(v); }}};
}

TEST(Elements, MapsMatchPlainLoopsAlsoInPlace) {
  for_each_isa([] {
    check_maps(integer_maps<std::int8_t>());
    check_maps(integer_maps<std::int16_t>());
    check_maps(integer_maps<std::int32_t>());
    check_maps(integer_maps<std::int64_t>());
    check_maps(integer_maps<std::uint8_t>());
    check_maps(integer_maps<std::uint64_t>());
    check_maps(real_maps<float>());
    check_maps(real_maps<double>());
  });
}

template <class T>
void check_classes() {
  const std::pair<UnaryFn, std::function<bool(T)>> functions[] = {
      {UnaryFn::isnan, [](T v) { return std::isnan(v); }},
      {UnaryFn::isinf, [](T v) { return std::isinf(v); }},
      {UnaryFn::isposinf, [](T v) { return std::isinf(v) && v > 0; }},
      {UnaryFn::isneginf, [](T v) { return std::isinf(v) && v < 0; }}};
  for (const auto& [fn, want] : functions) {
    Guarded<T> x(129, 3, values<T>(129, 5));
    Guarded<std::uint8_t> y(129, 1);
    apply(fn, type_of<T>(), x.data(), y.data(), 129);
    for (std::int64_t i = 0; i < 129; ++i) ASSERT_EQ(y[i], want(x[i]) ? 1 : 0) << x[i];
  }
}

TEST(Elements, FloatsAreClassified) {
  for_each_isa([] {
    check_classes<float>();
    check_classes<double>();
  });
}

// As tensors, through the float32 that halves are computed in.
TEST(Elements, HalvesAreComputedInFloat32AndRoundedOnce) {
  for_each_isa([] {
    for (const DataType type : {DataType::float16, DataType::bfloat16}) {
      Tensor a(type, {3, 1030}), b(type, {1030}), sum(type, {3, 1030}), root(type, {3, 1030}), less(DataType::boolean, {3, 1030});
      for (std::int64_t i = 0; i < a.size(); ++i) set_element(a, i, static_cast<double>(i % 641) / 7);
      for (std::int64_t i = 0; i < b.size(); ++i) set_element(b, i, static_cast<double>(i % 89) - 33);
      apply(BinaryFn::add, a, b, sum);
      apply(BinaryFn::less, a, b, less);
      apply(UnaryFn::sqrt, a, root);
      Tensor want(type, {1});
      for (std::int64_t i = 0; i < a.size(); ++i) {
        const double x = element_as_double(a, i), y = element_as_double(b, i % 1030);
        set_element(want, 0, static_cast<double>(static_cast<float>(x) + static_cast<float>(y)));
        ASSERT_EQ(element_as_double(sum, i), element_as_double(want, 0)) << x << " + " << y;
        set_element(want, 0, static_cast<double>(std::sqrt(static_cast<float>(x))));
        ASSERT_EQ(element_as_double(root, i), element_as_double(want, 0)) << x;
        ASSERT_EQ(element_as_double(less, i), x < y ? 1 : 0);
      }
    }
  });
}

// Every combination of operands that step and that do not, over rows.
template <class T>
void check_select(std::int64_t n) {
  const std::int64_t rows = 3, dims[2] = {rows, n};
  for (int form = 0; form < 8; ++form) {
    std::int64_t step[3][2];
    for (int k = 0; k < 3; ++k) {
      step[k][0] = k == 1 ? 0 : n;  // one operand is the same in each row
      step[k][1] = form >> k & 1;
    }
    Guarded<std::uint8_t> c(rows * n, 1, values<std::uint8_t>(rows * n, 9));
    Guarded<T> a(n, 1, values<T>(n, 1)), b(rows * n, 3, values<T>(rows * n, 2)), y(rows * n, 5);
    const RowPlan<3> plan = plan_rows<3>(2, dims, {step[0], step[1], step[2]});
    select(sizeof(T), plan, c.data(), a.data(), b.data(), y.data());
    for (std::int64_t i = 0; i < rows * n; ++i) {
      const auto at = [&](int k) { return i / n * step[k][0] + i % n * step[k][1]; };
      ASSERT_EQ(y[i], c[at(0)] != 0 ? a[at(1)] : b[at(2)]) << "form " << form << ", element " << i << " of rows of " << n;
    }
    if (!(step[2][1] == 1)) continue;
    select(sizeof(T), plan, c.data(), a.data(), b.data(), b.data());
    EXPECT_EQ(std::memcmp(b.data(), y.data(), static_cast<std::size_t>(rows * n) * sizeof(T)), 0) << "in place, form " << form;
  }
}

TEST(Elements, SelectTakesEveryForm) {
  for_each_isa([] {
    for (const std::int64_t n : {1, 2, 15, 32, 77}) {
      check_select<std::uint8_t>(n);
      check_select<std::uint16_t>(n);
      check_select<std::uint32_t>(n);
      check_select<std::uint64_t>(n);
    }
  });
}

TEST(Elements, ClipKeepsNanAndTakesOneBound) {
  for_each_isa([] {
    Guarded<double> x(2050, 1, values<double>(2050, 3)), y(2050, 2);
    const double low = -1.5, high = 2.5;
    for (const int bounds : {1, 2, 3}) {
      clip(DataType::float64, (bounds & 1) != 0 ? &low : nullptr, (bounds & 2) != 0 ? &high : nullptr, x.data(), y.data(), 2050);
      for (std::int64_t i = 0; i < 2050; ++i) {
        double want = x[i];
        if ((bounds & 1) != 0 && want < low) want = low;
        if ((bounds & 2) != 0 && want > high) want = high;
        ASSERT_TRUE(same(y[i], want)) << x[i];
      }
    }
  });
}

TEST(Elements, ZerosAreFound) {
  std::vector<std::int16_t> x(301, 256);  // its low bytes are 0
  EXPECT_FALSE(has_zero(DataType::int16, x.data(), 301));
  EXPECT_TRUE(has_zero(DataType::int8, x.data(), 602));
  x[300] = 0;
  EXPECT_TRUE(has_zero(DataType::int16, x.data(), 301));
  EXPECT_FALSE(has_zero(DataType::int16, x.data(), 300));
}

TEST(Elements, NothingIsWrittenWhereAnExtentIsZero) {
  const std::int64_t dims[2] = {3, 0}, step[2] = {0, 1};
  std::uint8_t none = 7;
  apply(BinaryFn::equal, DataType::int64, plan_rows<2>(2, dims, {step, step}), nullptr, nullptr, &none);
  select(4, plan_rows<3>(2, dims, {step, step, step}), nullptr, nullptr, nullptr, &none);
  EXPECT_EQ(none, 7);
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Activations, Float64IsExactToFourUnits) {
  const std::pair<UnarySpec, std::function<double(double)>> functions[] = {
      {{Unary::relu}, [](double x) { return x < 0 ? 0 : x; }},
      {{Unary::clip, -1, 2}, [](double x) { return x < -1  ? -1
                                                   : x > 2 ? 2
                                                           : x; }},
      {{Unary::leaky_relu, 0.25F}, [](double x) { return x < 0 ? 0.25 * x : x; }},
      {{Unary::hard_sigmoid, 0.25F, 0.5F}, [](double x) { return std::clamp(0.25 * x + 0.5, 0.0, 1.0); }},
      {{Unary::hard_swish}, [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {{Unary::sigmoid}, logistic},
      {{Unary::tanh}, [](double x) { return std::tanh(x); }},
      {{Unary::silu, 1.5F}, [](double x) { return x * logistic(1.5 * x); }},
      {{Unary::gelu}, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
      {{Unary::gelu_tanh},
       [](double x) { return x * logistic(2 * std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)); }},
      {{Unary::elu, 0.5F}, [](double x) { return x < 0 ? 0.5 * std::expm1(x) : x; }},
      {{Unary::selu, 1.5F, 1.25F}, [](double x) { return 1.25 * (x > 0 ? x : 1.5 * std::expm1(x)); }},
      {{Unary::celu, 2}, [](double x) { return x > 0 ? x : 2 * std::expm1(x / 2); }},
      {{Unary::softplus}, [](double x) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0); }},
      {{Unary::softsign}, [](double x) { return x / (1 + std::abs(x)); }},
      {{Unary::mish}, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {{Unary::thresholded_relu, 0.5F}, [](double x) { return x > 0.5 ? x : 0; }},
      {{Unary::exp}, [](double x) { return std::exp(x); }},
      {{Unary::erf}, [](double x) { return std::erf(x); }}};
  for_each_isa([&] {
    const std::int64_t n = 1100;
    Guarded<double> x(n, 1), y(n, 2);
    for (const auto& [spec, want] : functions) {
      for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<double>(i - n / 2) / 60;
      activation(spec, DataType::float64, x.data(), y.data(), n);
      for (std::int64_t i = 0; i < n; ++i) {
        const double expected = want(x[i]);
        ASSERT_NEAR(y[i], expected, 1e-15 * (1 + 4 * std::abs(expected)))
            << "function " << static_cast<int>(spec.op) << " of " << x[i];
      }
      activation(spec, DataType::float64, x.data(), x.data(), n);
      for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(x[i], y[i]) << "in place";
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
