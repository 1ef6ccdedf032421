#include "text/grammar/decimals.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace sdx::text::grammar {

Decimal Decimal::of(double value) {
  // The shortest text that reads as this number: the number in the schema, as far as a double holds it.
  std::string shortest = fmt::format("{}", value);
  Decimal out;
  out.negative = shortest.starts_with('-');
  if (out.negative) shortest.erase(0, 1);
  const std::size_t e = shortest.find_first_of("eE");
  if (e != std::string::npos) {
    const std::string_view exponent = std::string_view(shortest).substr(e + 1);
    const bool plus = exponent.starts_with('+');
    std::from_chars(exponent.data() + (plus ? 1 : 0), exponent.data() + exponent.size(), out.exponent);
  }
  bool behind = false;
  for (const char c : std::string_view(shortest).substr(0, e)) {
    if (c == '.') {
      behind = true;
    } else if (out.digits <= kMost / 10) {
      out.digits = out.digits * 10 + static_cast<std::uint64_t>(c - '0');
      out.exponent -= behind ? 1 : 0;
    } else {
      out.exponent += behind ? 0 : 1;
    }
  }
  while (out.digits != 0 && out.digits % 10 == 0) out.digits /= 10, ++out.exponent;
  if (out.digits == 0) out.exponent = 0;
  return out;
}

Decimal Decimal::of(std::int64_t value) {
  Decimal out;
  out.negative = value < 0;
  out.digits = value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
  return out;
}

std::uint64_t Decimal::scaled(int places, bool up, bool* exact) const {
  *exact = true;
  std::uint64_t value = digits;
  int power = exponent + places;
  for (; power > 0 && value != 0; --power) {
    if (value > kMost / 10) {
      *exact = false;
      return kMost;
    }
    value *= 10;
  }
  bool rest = false;
  for (; power < 0 && (value != 0 || rest); ++power) {
    rest = rest || value % 10 != 0;
    value /= 10;
    if (value == 0) break;
  }
  *exact = !rest && value <= kMost;
  return std::min(value + (up && rest ? 1 : 0), kMost);
}

Expression Decimals::choose(const std::map<Expression, Characters>& ways) {
  std::vector<Expression> out;
  for (const auto& [behind, digits] : ways) {
    if (behind != to_.never()) out.push_back(to_.sequence({to_.characters(digits), behind}));
  }
  return to_.choice(std::move(out));
}

// Whatever digits, as many as are left.
Expression Decimals::any(int left, int places, std::uint64_t step, std::uint64_t remainder) {
  if (left == 0) return remainder == 0 ? to_.empty() : to_.never();
  if (step == 1) {
    const auto some = [&](int count) {
      return to_.repeat(to_.characters({{'0', '9'}}), static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(count));
    };
    // If as many digits are left as follow the point, the point has been written.
    return left <= places || places == 0 ? some(left) : to_.sequence({some(left - places), to_.text("."), some(places)});
  }
  if (const auto known = known_.find({left, places, step, remainder}); known != known_.end()) return known->second;
  std::map<Expression, Characters> ways;
  for (char32_t d = '0'; d <= '9'; ++d) {
    const Expression behind = any(left - 1, places, step, (remainder * 10 + (d - '0')) % step);
    if (behind != to_.never()) ways[behind].push_back({d, d});
  }
  // The point follows the last digit before it.
  const bool point = left == places + 1 && places > 0;
  std::vector<Expression> out;
  for (const auto& [behind, digits] : ways) {
    out.push_back(point ? to_.sequence({to_.characters(digits), to_.text("."), behind})
                        : to_.sequence({to_.characters(digits), behind}));
  }
  const Expression digit = to_.choice(std::move(out));
  if (digit == to_.never()) return digit;
  return known_[{left, places, step, remainder}] = to_.as_rule("digits", digit);
}

Expression Decimals::from(const Bounds& b, std::size_t at, bool low, bool high, std::uint64_t remainder) {
  const int left = static_cast<int>(b.low.size() - at);
  if (left == 0) return remainder == 0 ? to_.empty() : to_.never();
  if (!low && !high) return any(left, b.places, b.step, remainder);
  const char first = low ? b.low[at] : '0', last = high ? b.high[at] : '9';
  std::map<Expression, Characters> ways;
  for (char c = first; c <= last; ++c) {
    const auto d = static_cast<char32_t>(c);
    Expression behind = from(b, at + 1, low && c == first, high && c == last, (remainder * 10 + (d - '0')) % b.step);
    if (behind == to_.never()) continue;
    if (left == b.places + 1 && b.places > 0) behind = to_.sequence({to_.text("."), behind});
    ways[behind].push_back({d, d});
  }
  return choose(ways);
}

Expression Decimals::between(std::uint64_t least, std::uint64_t most, int places, std::uint64_t step) {
  if (least > most) return to_.never();
  const auto shortest = static_cast<std::size_t>(places) + 1;
  const auto padded = [&](std::uint64_t value) {
    std::string text = std::to_string(value);
    return text.size() < shortest ? std::string(shortest - text.size(), '0') + text : text;
  };
  const std::string low = padded(least), high = padded(most);
  std::vector<Expression> ways;
  for (std::size_t size = low.size(); size <= high.size(); ++size) {
    const std::string first = size == low.size() ? low : "1" + std::string(size - 1, '0');
    const std::string last = size == high.size() ? high : std::string(size, '9');
    ways.push_back(from({first, last, places, step}, 0, true, true, 0));
  }
  return to_.choice(std::move(ways));
}

}  // namespace sdx::text::grammar
