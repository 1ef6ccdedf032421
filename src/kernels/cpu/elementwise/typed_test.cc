#include "kernels/cpu/elementwise/typed.h"

#include <gtest/gtest.h>

#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;

template <class T>
constexpr Elem elem_of() {
  if constexpr (std::is_same_v<T, float>) return Elem::f32;
  constexpr bool kSign = std::is_signed_v<T>;
  switch (sizeof(T)) {
    case 1: return kSign ? Elem::i8 : Elem::u8;
    case 2: return kSign ? Elem::i16 : Elem::u16;
    case 4: return kSign ? Elem::i32 : Elem::u32;
    default: return kSign ? Elem::i64 : Elem::u64;
  }
}

// Few values, so that equal ones occur; among them the limits of the type and NaN.
template <class T>
std::vector<T> values(std::int64_t n, unsigned seed) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> few = {T(0), T(1), T(2), T(3), Limits::max(), Limits::lowest()};
  if constexpr (std::is_floating_point_v<T>) {
    for (const T v : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), T(-0.0), Limits::denorm_min()})
      few.push_back(v);
  } else if constexpr (std::is_signed_v<T>) {
    few.push_back(T(-1));
    few.push_back(T(-12345678));
  }
  std::mt19937 rng(seed);
  std::vector<T> v(static_cast<std::size_t>(n));
  for (T& x : v) x = few[rng() % few.size()];
  return v;
}

std::int64_t wide_sum(Pair op, std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  return static_cast<std::int64_t>(op == Pair::add ? x + y : (op == Pair::sub ? x - y : x * y));
}

// What the output holds, as a 64-bit number.
template <class T>
std::int64_t expected(Pair op, T a, T b) {
  switch (op) {
    case Pair::equal: return a == b;
    case Pair::less: return a < b;
    case Pair::less_equal: return a <= b;
    case Pair::all: return a != 0 && b != 0;
    case Pair::any: return a != 0 || b != 0;
    case Pair::either: return (a != 0) != (b != 0);
    case Pair::min: return static_cast<std::int64_t>(std::min(a, b));
    case Pair::max: return static_cast<std::int64_t>(std::max(a, b));
    default: return static_cast<T>(wide_sum(op, static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
  }
}

constexpr Pair kPairs[] = {Pair::equal, Pair::less, Pair::less_equal, Pair::all, Pair::any, Pair::either,
                           Pair::add,   Pair::sub,  Pair::mul,        Pair::min, Pair::max};

template <class Out, class T>
void check_pair(Pair op, std::int64_t rows, std::int64_t n, bool a_steps, bool b_steps) {
  const std::int64_t dims[2] = {rows, n};
  const std::int64_t a_step[2] = {n, a_steps ? 1 : 0}, b_step[2] = {0, b_steps ? 1 : 0};
  Guarded<T> a(rows * n, 1, values<T>(rows * n, 1));
  Guarded<T> b(n, 3, values<T>(n, 2));
  Guarded<Out> y(rows * n, 5);
  pair_broadcast(op, elem_of<T>(), plan_rows<2>(2, dims, {a_step, b_step}), a.data(), b.data(), y.data());
  for (std::int64_t i = 0; i < rows * n; ++i) {
    const T left = a[i / n * n + (a_steps ? i % n : 0)], right = b[b_steps ? i % n : 0];
    ASSERT_EQ(static_cast<std::int64_t>(y[i]), expected<T>(op, left, right)) << left << " and " << right << ", element " << i;
  }
}

template <class T>
void check_pairs() {
  for (const Pair op : kPairs) {
    if (pair_row(op, elem_of<T>()) == nullptr) continue;
    SCOPED_TRACE("op " + std::to_string(static_cast<int>(op)));
    for (const std::int64_t n : {1, 2, 7, 16, 31, 65, 300}) {
      for (const auto& [a, b] :
           {std::pair(true, true), std::pair(true, false), std::pair(false, true), std::pair(false, false)}) {
        if (op < Pair::add) {
          check_pair<std::uint8_t, T>(op, 3, n, a, b);
        } else if constexpr (!std::is_floating_point_v<T>) {
          check_pair<T, T>(op, 3, n, a, b);
        }
      }
    }
  }
}

TEST(KernelsTyped, PairsMatchPlainLoops) {
  for_each_isa([] {
    check_pairs<float>();
    check_pairs<std::int32_t>();
    check_pairs<std::int64_t>();
    check_pairs<std::uint8_t>();
    check_pairs<std::int8_t>();
    check_pairs<std::uint16_t>();
    check_pairs<std::int16_t>();
    check_pairs<std::uint32_t>();
    check_pairs<std::uint64_t>();
    EXPECT_EQ(pair_row(Pair::add, Elem::f32), nullptr);
    EXPECT_EQ(pair_row(Pair::all, Elem::i8), nullptr);
  });
}

template <class T>
void check_in_place() {
  const std::int64_t n = 133, dims[1] = {n}, step[1] = {1};
  Guarded<T> a(n, 1, values<T>(n, 1)), b(n, 2, values<T>(n, 2)), y(n, 3);
  const RowPlan<2> plan = plan_rows<2>(1, dims, {step, step});
  const Pair op = sizeof(T) == 1 ? Pair::all : Pair::mul;
  const Map map = sizeof(T) == 1 ? Map::logical_not : Map::negate;
  pair_broadcast(op, elem_of<T>(), plan, a.data(), b.data(), y.data());
  pair_broadcast(op, elem_of<T>(), plan, a.data(), b.data(), a.data());
  EXPECT_EQ(std::memcmp(a.data(), y.data(), static_cast<std::size_t>(n) * sizeof(T)), 0);
  map_elements(map, elem_of<T>(), b.data(), y.data(), n);
  map_elements(map, elem_of<T>(), b.data(), b.data(), n);
  EXPECT_EQ(std::memcmp(b.data(), y.data(), static_cast<std::size_t>(n) * sizeof(T)), 0);
}

TEST(KernelsTyped, InPlaceGivesTheSame) {
  for_each_isa([] {
    check_in_place<std::uint8_t>();
    check_in_place<std::int32_t>();
    check_in_place<std::int64_t>();
  });
}

TEST(KernelsTyped, DoublesMatchPlainLoops) {
  for_each_isa([] {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const std::int64_t n : {1, 7, 33, 129}) {
      Guarded<double> a(n, 1, values<double>(n, 1)), b(n, 2, values<double>(n, 2)), y(n, 3);
      if (n > 7) a.data()[5] = b.data()[6] = nan;
      const std::int64_t dims[1] = {n}, step[1] = {1};
      const RowPlan<2> plan = plan_rows<2>(1, dims, {step, step});
      const auto check = [&](Pair op, auto want) {
        pair_broadcast(op, Elem::f64, plan, a.data(), b.data(), y.data());
        for (std::int64_t i = 0; i < n; ++i) {
          const double w = want(a.data()[i], b.data()[i]);
          ASSERT_TRUE(y[i] == w || (y[i] != y[i] && w != w)) << a[i] << " and " << b[i] << ", op " << static_cast<int>(op);
        }
      };
      check(Pair::add, [](double l, double r) { return l + r; });
      check(Pair::sub, [](double l, double r) { return l - r; });
      check(Pair::mul, [](double l, double r) { return l * r; });
      check(Pair::div, [](double l, double r) { return l / r; });
      check(Pair::min, [&](double l, double r) { return l != l || r != r ? nan : std::min(l, r); });
      check(Pair::max, [&](double l, double r) { return l != l || r != r ? nan : std::max(l, r); });
      const auto check_map = [&](Map op, auto want) {
        map_elements(op, Elem::f64, a.data(), y.data(), n);
        for (std::int64_t i = 0; i < n; ++i) {
          const double w = want(a[i]);
          ASSERT_TRUE(y[i] == w || (y[i] != y[i] && w != w)) << a[i];
        }
      };
      check_map(Map::negate, [](double v) { return -v; });
      check_map(Map::absolute, [](double v) { return std::abs(v); });
      check_map(Map::square_root, [](double v) { return std::sqrt(v); });
    }
  });
}

TEST(KernelsTyped, FloatsAreClassified) {
  for_each_isa([] {
    for (const std::int64_t n : {1, 15, 33, 129}) {
      Guarded<float> x(n, 3, values<float>(n, 5));
      Guarded<std::uint8_t> y(n, 1);
      const auto check = [&](Map op, auto want) {
        map_elements(op, Elem::f32, x.data(), y.data(), n);
        for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], static_cast<std::uint8_t>(want(x[i]))) << x[i];
      };
      check(Map::is_nan, [](float v) { return std::isnan(v); });
      check(Map::is_inf, [](float v) { return std::isinf(v); });
      check(Map::is_positive_inf, [](float v) { return std::isinf(v) && v > 0; });
      check(Map::is_negative_inf, [](float v) { return std::isinf(v) && v < 0; });
    }
  });
}

template <class T>
void check_integers() {
  for (const std::int64_t n : {1, 15, 130}) {
    Guarded<T> x(n, 3, values<T>(n, 5)), y(n, 1);
    map_elements(Map::negate, elem_of<T>(), x.data(), y.data(), n);
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], static_cast<T>(wide_sum(Pair::sub, 0, x[i])));
    map_elements(Map::absolute, elem_of<T>(), x.data(), y.data(), n);
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], x[i] < 0 ? static_cast<T>(wide_sum(Pair::sub, 0, x[i])) : x[i]);
  }
}

TEST(KernelsTyped, IntegersAreNegatedAndWrap) {
  for_each_isa([] {
    check_integers<std::int8_t>();
    check_integers<std::int16_t>();
    check_integers<std::int32_t>();
    check_integers<std::int64_t>();
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
    select_broadcast(sizeof(T), plan, c.data(), a.data(), b.data(), y.data());
    for (std::int64_t i = 0; i < rows * n; ++i) {
      const auto at = [&](int k) { return i / n * step[k][0] + i % n * step[k][1]; };
      ASSERT_EQ(y[i], c[at(0)] != 0 ? a[at(1)] : b[at(2)]) << "form " << form << ", element " << i << " of rows of " << n;
    }
    if (!(step[2][1] == 1)) continue;
    select_broadcast(sizeof(T), plan, c.data(), a.data(), b.data(), b.data());
    EXPECT_EQ(std::memcmp(b.data(), y.data(), static_cast<std::size_t>(rows * n) * sizeof(T)), 0) << "in place, form " << form;
  }
}

TEST(KernelsTyped, SelectTakesEveryForm) {
  for_each_isa([] {
    for (const std::int64_t n : {1, 2, 15, 32, 77}) {
      check_select<std::uint8_t>(n);
      check_select<std::uint16_t>(n);
      check_select<std::uint32_t>(n);
      check_select<std::uint64_t>(n);
    }
  });
}

TEST(KernelsTyped, NothingIsWrittenWhereAnExtentIsZero) {
  const std::int64_t dims[2] = {3, 0}, step[2] = {0, 1};
  std::uint8_t none = 7;
  pair_broadcast(Pair::equal, Elem::i64, plan_rows<2>(2, dims, {step, step}), nullptr, nullptr, &none);
  select_broadcast(4, plan_rows<3>(2, dims, {step, step, step}), nullptr, nullptr, nullptr, &none);
  EXPECT_EQ(none, 7);
}

}  // namespace
}  // namespace sdx::cpu
