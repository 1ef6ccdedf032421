#pragma once
// Decimal numbers whose digits are chosen one by one: ranges with fractions, and multiples.

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

#include "text/grammar/expressions.h"

namespace sdx::text::grammar {

// A number as JSON writes it: digits * 10^exponent.
struct Decimal {
  bool negative = false;
  std::uint64_t digits = 0;
  int exponent = 0;

  static Decimal of(double value);
  static Decimal of(std::int64_t value);
  int places() const { return exponent < 0 ? -exponent : 0; }  // behind the point
  // The magnitude times 10^places, rounded to a whole number (`up` or down), and whether that was exact. At most `kMost`.
  std::uint64_t scaled(int places, bool up, bool* exact) const;
  static constexpr std::uint64_t kMost = 999'999'999'999'999'999;  // 18 digits
};

class Decimals {
 public:
  explicit Decimals(Expressions& to) : to_(to) {}

  // Whole numbers from `least` to `most`, at most Decimal::kMost, that are multiples of `step` (1 to kMostSteps), written with a
  // point before the last `places` digits.
  Expression between(std::uint64_t least, std::uint64_t most, int places, std::uint64_t step);
  static constexpr std::uint64_t kMostSteps = 512;

 private:
  struct Bounds {
    std::string_view low, high;  // digits, as many of each
    int places = 0;
    std::uint64_t step = 1;
  };
  Expression from(const Bounds& bounds, std::size_t at, bool low, bool high, std::uint64_t remainder);
  Expression any(int left, int places, std::uint64_t step, std::uint64_t remainder);
  Expression choose(const std::map<Expression, Characters>& ways);

  Expressions& to_;
  std::map<std::tuple<int, int, std::uint64_t, std::uint64_t>, Expression> known_;  // left, places, step, remainder
};

}  // namespace sdx::text::grammar
