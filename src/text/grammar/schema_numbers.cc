// Numbers of a JSON schema: bounds and multiples.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "text/grammar/schema_conditions.h"
#include "text/grammar/schema_parts.h"

namespace sdx::text::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kSixteenDigits = 9'999'999'999'999'999;  // the limit for numbers without bounds
constexpr int kMostPlaces = 9, kMostFraction = 16;

struct Bound {
  Decimal value;
  bool exclusive = false;
};

struct Limits {
  std::optional<Bound> least, most;
};

bool smaller(const Decimal& a, const Decimal& b) {
  const auto value = [](const Decimal& d) {
    return (d.negative ? -1.0L : 1.0L) * static_cast<long double>(d.digits) *
           std::pow(10.0L, static_cast<long double>(d.exponent));
  };
  return value(a) < value(b);
}

std::optional<Decimal> number_of(const Json& schema, const char* key, const std::string& path) {
  if (!schema.contains(key) || schema[key].is_boolean()) return std::nullopt;
  const Json& value = schema[key];
  if (!value.is_number()) refuse_schema(path + "/" + key, "expected a number");
  if (value.is_number_float()) return Decimal::of(value.get<double>());
  if (value.is_number_unsigned()) return Decimal{false, value.get<std::uint64_t>(), 0};
  return Decimal::of(value.get<std::int64_t>());
}

Limits limits_of(const Json& schema, const std::string& path) {
  Limits limits;
  if (const auto bound = number_of(schema, "minimum", path)) limits.least = Bound{*bound, false};
  if (const auto bound = number_of(schema, "maximum", path)) limits.most = Bound{*bound, false};
  // Draft 4 has true or false.
  if (limits.least && schema.value("exclusiveMinimum", Json()) == Json(true)) limits.least->exclusive = true;
  if (limits.most && schema.value("exclusiveMaximum", Json()) == Json(true)) limits.most->exclusive = true;
  if (const auto bound = number_of(schema, "exclusiveMinimum", path);
      bound && !(limits.least && smaller(*bound, limits.least->value)))
    limits.least = Bound{*bound, true};
  if (const auto bound = number_of(schema, "exclusiveMaximum", path);
      bound && !(limits.most && smaller(limits.most->value, *bound)))
    limits.most = Bound{*bound, true};
  return limits;
}

// One side of zero: magnitudes from `low` to `high`.
struct Side {
  std::optional<Bound> low, high;
  bool negative = false;
};

// The sides that the limits leave. Zero is on the positive one: there is no -0.
std::vector<Side> sides_of(const Limits& l) {
  std::vector<Side> sides;
  const auto is_zero = [](const Bound& b) { return b.value.digits == 0; };
  const bool positive = !l.most || (is_zero(*l.most) ? !l.most->exclusive : !l.most->value.negative);
  if (positive) {
    Side side{l.least, l.most, false};
    if (side.low && side.low->value.negative && !is_zero(*side.low)) side.low.reset();
    sides.push_back(side);
  }
  const bool negative = !l.least || (l.least->value.negative && !is_zero(*l.least));
  if (negative) {
    Side side{l.most, l.least, true};
    if (!side.low || !side.low->value.negative || is_zero(*side.low)) side.low = Bound{Decimal{}, true};
    sides.push_back(side);
  }
  return sides;
}

// Whole numbers of a side with this many places.
struct Scaled {
  std::uint64_t least = 0, most = Decimal::kMost;
  bool empty() const { return least > most; }
};

Scaled scaled(const Side& side, int places) {
  Scaled out;
  bool exact = true;
  if (side.low) {
    out.least = side.low->value.scaled(places, true, &exact);
    if (exact && side.low->exclusive) ++out.least;
  }
  if (side.high) {
    out.most = side.high->value.scaled(places, false, &exact);
    if (exact && side.high->exclusive) {
      if (out.most == 0) return {1, 0};
      --out.most;
    }
  }
  // Bounds beyond sixteen digits have no effect.
  if (out.least <= kSixteenDigits) out.most = std::min(out.most, kSixteenDigits);
  return out;
}

int places_of(const Side& side) {
  const int all = std::max(side.low ? side.low->value.places() : 0, side.high ? side.high->value.places() : 0);
  return std::min(all, kMostPlaces);
}

// Fractions with as many places as the bounds have, or fewer; then any further digits.
Expression fractions(Expressions& to, Decimals& decimals, const Side& side) {
  const int places = std::max(1, places_of(side));
  std::vector<Expression> ways;
  for (int i = 0; i <= places; ++i) {
    const Scaled s = scaled(side, i);
    if (!s.empty()) ways.push_back(decimals.between(s.least, s.most, i, 1));
  }
  const auto count = static_cast<std::uint32_t>(kMostFraction - places);
  const Scaled s = scaled(side, places);
  // No digits between a whole number and the next may exceed the bound.
  std::uint64_t last = s.most;
  bool exact = true;
  if (side.high) {
    const std::uint64_t end = std::min(side.high->value.scaled(places, false, &exact), kSixteenDigits);
    last = end == 0 ? 0 : end - 1;
    if (end == 0) return to.choice(std::move(ways));
  }
  if (s.least <= last) {
    ways.push_back(to.sequence({decimals.between(s.least, last, places, 1), to.repeat(digits(to), 1, count)}));
  }
  if (!side.low || !side.low->exclusive) return to.choice(std::move(ways));
  // Numbers just after a bound that is itself excluded.
  const std::uint64_t bound = side.low->value.scaled(places, false, &exact);
  if (exact && bound <= last) {
    const Expression behind =
        to.sequence({to.repeat(to.text("0"), 0, count - 1), digits(to, '1'), to.repeat(digits(to), 0, count)});
    ways.push_back(to.sequence({decimals.between(bound, bound, places, 1), behind}));
  }
  return to.choice(std::move(ways));
}

// Multiples of `step` * 10^-places.
Expression multiples(Expressions& to, Decimals& decimals, const Side& side, std::uint64_t step, int places) {
  const Scaled s = scaled(side, places);
  std::vector<Expression> ways;
  if (!s.empty()) ways.push_back(decimals.between(s.least, s.most, places, step));
  if (places == 0) return to.choice(std::move(ways));
  std::uint64_t one = 1;
  for (int i = 0; i < places; ++i) one *= 10;
  const Scaled whole = scaled(side, 0);
  if (!whole.empty()) ways.push_back(decimals.between(whole.least, whole.most, 0, step / std::gcd(step, one)));
  return to.choice(std::move(ways));
}

struct Step {
  std::uint64_t step = 1;
  int places = 0;
};

// Nothing where it is too fine or too large to be counted.
std::optional<Step> step_of(const Decimal& multiple, bool whole) {
  Step out{multiple.digits, multiple.places()};
  if (out.places > kMostPlaces) return std::nullopt;
  for (int i = 0; i < multiple.exponent && out.step <= Decimals::kMostSteps; ++i) out.step *= 10;
  if (whole && out.places > 0) {
    std::uint64_t one = 1;
    for (int i = 0; i < out.places; ++i) one *= 10;
    out = {out.step / std::gcd(out.step, one), 0};
  }
  if (out.step == 0 || out.step > Decimals::kMostSteps) return std::nullopt;
  return out;
}

}  // namespace

// Excludes numbers: the ranges below, between, and above them remain.
Expression NumberSchemas::read(const Json& schema, const std::string& path, bool whole) {
  const Json* left_out = left_out_values(schema);
  if (left_out == nullptr) return read_plain(schema, path, whole);
  Json rest = schema;
  rest.erase("not");
  std::vector<Json> numbers;
  for (const Json& value : *left_out) {
    if (value.is_number()) numbers.push_back(value);
  }
  constexpr std::size_t most = 64;
  if (numbers.size() > most) to_.note(path + "/not");
  if (numbers.empty() || numbers.size() > most) return read_plain(rest, path, whole);
  std::sort(numbers.begin(), numbers.end());
  std::vector<Expression> ways;
  for (std::size_t i = 0; i <= numbers.size(); ++i) {
    Json between = rest;
    const auto tighten = [&](const char* key, const Json& bound, bool above) {
      const bool tighter =
          between.contains(key) && between[key].is_number() && (above ? between[key] > bound : between[key] < bound);
      if (!tighter) between[key] = bound;
    };
    if (i > 0) tighten("exclusiveMinimum", numbers[i - 1], true);
    if (i < numbers.size()) tighten("exclusiveMaximum", numbers[i], false);
    ways.push_back(read_plain(between, path, whole));
  }
  return to_.choice(std::move(ways));
}

Expression NumberSchemas::read_plain(const Json& schema, const std::string& path, bool whole) {
  const Limits limits = limits_of(schema, path);
  std::optional<Step> step;
  if (const auto multiple = number_of(schema, "multipleOf", path)) {
    if (multiple->negative || multiple->digits == 0) refuse_schema(path + "/multipleOf", "expected a number greater than 0");
    step = step_of(*multiple, whole);
    if (!step) to_.note(path + "/multipleOf");
    if (step && whole && step->step == 1) step.reset();
  }
  if (!limits.least && !limits.most && !step) return whole ? parts_.integer() : parts_.number();
  std::vector<Expression> ways;
  for (const Side& side : sides_of(limits)) {
    Expression magnitude = to_.never();
    if (step) {
      magnitude = multiples(to_, decimals_, side, step->step, step->places);
    } else if (whole) {
      const Scaled s = scaled(side, 0);
      if (!s.empty()) magnitude = decimals_.between(s.least, s.most, 0, 1);
    } else {
      magnitude = fractions(to_, decimals_, side);
    }
    ways.push_back(side.negative ? to_.sequence({to_.text("-"), magnitude}) : magnitude);
  }
  return to_.choice(std::move(ways));
}

}  // namespace sdx::text::grammar
