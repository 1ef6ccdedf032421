#include "ops/math/broadcast.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/error.h"

namespace sdx::ops {
namespace {

// Whether `d` is min(c, x) with a constant c >= 1, as a Slice of a table of c rows up to x has it. Both are extents, so x is what
// they broadcast to: where x > c they fit only if c is 1.
bool is_least_of(const Dim& d, const Dim& x) {
  constexpr std::string_view kBegin = "min(", kBetween = ", ";
  const std::string name = d.symbol_name();
  if (!name.starts_with(kBegin)) return false;
  for (const std::size_t at : {kBegin.size(), name.rfind(kBetween) + kBetween.size()}) {  // either may be the constant
    std::int64_t c = 0;
    const auto [end, error] = std::from_chars(name.data() + std::min(at, name.size()), name.data() + name.size(), c);
    if (error == std::errc() && c >= 1 && min(Dim(c), x) == d) return true;
  }
  return false;
}

}  // namespace

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  const std::size_t pad = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    const std::int64_t d = shorter[i];
    std::int64_t& o = out[pad + i];
    if (o == 1) {
      o = d;
    } else if (d != 1 && d != o) {
      fail(ErrorCode::runtime_failure, "shapes {} and {} cannot be broadcast: extents {} and {} differ and neither is 1",
           to_string(a), to_string(b), o, d);
    }
  }
  return out;
}

SymShape broadcast_shapes(const SymShape& a, const SymShape& b) {
  const SymShape& longer = a.size() >= b.size() ? a : b;
  const SymShape& shorter = a.size() >= b.size() ? b : a;
  SymShape out = longer;
  const std::size_t pad = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    const Dim& d = shorter[i];
    Dim& o = out[pad + i];
    if (o == d || (d.is_const() && d.value() == 1)) continue;
    const bool one = o.is_const() && o.value() == 1;
    if (o.is_const() && d.is_const() && !one) {
      fail(ErrorCode::invalid_model, "shapes {} and {} cannot be broadcast: extents {} and {} differ and neither is 1",
           to_string(a), to_string(b), o.value(), d.value());
    }
    // A constant other than 1 decides.
    if (one || d.is_const() || is_least_of(o, d)) {
      o = d;
    } else if (!o.is_const() && !is_least_of(d, o)) {
      o = Dim::unknown();  // two different symbols: either may be 1
    }
  }
  return out;
}

void infer_broadcast(InferContext& c, std::size_t first, std::size_t last, DataType elem) {
  SymShape shape;
  for (std::size_t i = first; i < last; ++i) {
    const SymShape* s = c.shape(i);
    if (s == nullptr) return c.output(0, elem);
    shape = broadcast_shapes(shape, *s);
  }
  c.output(0, elem, std::move(shape));
}

}  // namespace sdx::ops
