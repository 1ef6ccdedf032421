// + - * / // % ** and slices.

#include <algorithm>
#include <cmath>

#include "text/template/runtime.h"
#include "text/template/unicode.h"

namespace sdx::text::jinja {
namespace {

constexpr const char* signs[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

[[noreturn]] void too_large() { throw PyError(PyError::Type::overflow, "an integer beyond 127 bits"); }

[[noreturn]] void unsupported(Binary op, const Value& a, const Value& b) {
  for (const Value* side : {&a, &b}) {
    if (side->is_undefined()) {
      const auto& info = side->object<UndefinedInfo>();
      throw PyError(info.unsafe ? PyError::Type::security : PyError::Type::undefined, info.message());
    }
  }
  if (op == Binary::add && a.is_string())
    type_error(std::string("can only concatenate str (not \"") + type_name(b) + "\") to str");
  if (op == Binary::add && a.is_sequence()) {
    type_error(std::string("can only concatenate ") + type_name(a) + " (not \"" + type_name(b) + "\") to " + type_name(a));
  }
  type_error(std::string("unsupported operand type(s) for ") + signs[static_cast<int>(op)] + ": '" + type_name(a) + "' and '" +
             type_name(b) + "'");
}

[[noreturn]] void by_zero(const char* message) { throw PyError(PyError::Type::zero_division, message); }

Int floor_div(Int a, Int b) {
  if (b == -1) {
    Int result = 0;
    if (__builtin_sub_overflow(Int{0}, a, &result)) too_large();
    return result;
  }
  const Int quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Int floor_mod(Int a, Int b) {
  if (b == -1) return 0;
  const Int rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value power(Runtime& rt, Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 0) by_zero("0.0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  Int result = 1;
  while (exponent > 0) {
    rt.step();
    if (exponent & 1) {
      if (__builtin_mul_overflow(result, base, &result)) too_large();
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) too_large();
  }
  return Value::integer(result);
}

// a / b, rounded once, as Python has it.
double quotient(Int a, Int b) {
  constexpr Int exact = Int{1} << 53;
  if (a > -exact && a < exact && b > -exact && b < exact) return static_cast<double>(a) / static_cast<double>(b);
  const auto magnitude = [](Int v) { return v < 0 ? -static_cast<UInt>(v) : static_cast<UInt>(v); };
  const UInt divisor = magnitude(b);
  UInt whole = magnitude(a) / divisor, rest = magnitude(a) % divisor;
  int shift = 0;
  for (; whole < (UInt{1} << 60) && rest != 0; shift++) {  // more bits than a double has; what is left decides ties
    rest <<= 1;
    whole = whole << 1 | (rest >= divisor ? 1 : 0);
    if (rest >= divisor) rest -= divisor;
  }
  const double result = std::ldexp(static_cast<double>(whole | (rest != 0 ? 1 : 0)), -shift);
  return (a < 0) != (b < 0) ? -result : result;
}

Value integers(Runtime& rt, Binary op, Int a, Int b) {
  Int result = 0;
  switch (op) {
    case Binary::add:
      if (__builtin_add_overflow(a, b, &result)) too_large();
      return Value::integer(result);
    case Binary::sub:
      if (__builtin_sub_overflow(a, b, &result)) too_large();
      return Value::integer(result);
    case Binary::mul:
      if (__builtin_mul_overflow(a, b, &result)) too_large();
      return Value::integer(result);
    case Binary::div:
      if (b == 0) by_zero("division by zero");
      return Value::real(quotient(a, b));
    case Binary::floordiv:
      if (b == 0) by_zero("integer division or modulo by zero");
      return Value::integer(floor_div(a, b));
    case Binary::mod:
      if (b == 0) by_zero("integer modulo by zero");
      return Value::integer(floor_mod(a, b));
    case Binary::pow: return power(rt, a, b);
  }
  return {};
}

double real_mod(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) rest += b;
  } else {
    rest = std::copysign(0.0, b);
  }
  return rest;
}

double real_floor_div(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

Value reals(Binary op, double a, double b) {
  switch (op) {
    case Binary::add: return Value::real(a + b);
    case Binary::sub: return Value::real(a - b);
    case Binary::mul: return Value::real(a * b);
    case Binary::div:
      if (b == 0) by_zero("float division by zero");
      return Value::real(a / b);
    case Binary::floordiv:
      if (b == 0) by_zero("float floor division by zero");
      return Value::real(real_floor_div(a, b));
    case Binary::mod:
      if (b == 0) by_zero("float modulo");
      return Value::real(real_mod(a, b));
    case Binary::pow: {
      if (a == 0 && b < 0) by_zero("0.0 cannot be raised to a negative power");
      const double result = std::pow(a, b);
      if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) type_error("complex numbers are not supported");
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
        throw PyError(PyError::Type::overflow, "(34, 'Numerical result out of range')");
      }
      return Value::real(result);
    }
  }
  return {};
}

Value repeat(Runtime& rt, const Value& of, Int times) {
  const std::size_t size = of.is_string() ? of.text().size() : of.sequence().items.size();
  const Int count = std::max<Int>(times, 0);
  if (size && count > Int{rt.budget.max_live} / static_cast<Int>(size)) limit_error("a repetition that is too long");
  const auto n = size ? static_cast<std::size_t>(count) : 0;
  if (of.is_string()) {
    rt.budget.reserve(size * n);
    rt.work(size * n);
    std::string text;
    text.reserve(size * n);
    for (std::size_t i = 0; i < n; i++) text += of.text();
    return rt.str(std::move(text), of.str().markup);
  }
  rt.budget.reserve(size * n * sizeof(Value));
  rt.step(size * n / 4);
  Values items;
  items.reserve(size * n);
  for (std::size_t i = 0; i < n; i++) items.insert(items.end(), of.sequence().items.begin(), of.sequence().items.end());
  return of.is(Kind::list) ? rt.list(std::move(items)) : rt.tuple(std::move(items));
}

Value concatenate(Runtime& rt, const Value& a, const Value& b) {
  if (a.is_string()) {
    const bool markup = a.str().markup || b.str().markup;
    std::string text;
    text.reserve(a.text().size() + b.text().size());
    rt.budget.reserve(a.text().size() + b.text().size());
    text += markup && !a.str().markup ? escape_html(a.text()) : a.text();
    text += markup && !b.str().markup ? escape_html(b.text()) : b.text();
    return rt.str(std::move(text), markup);
  }
  Values items;
  rt.budget.reserve((a.sequence().items.size() + b.sequence().items.size()) * sizeof(Value));
  items.reserve(a.sequence().items.size() + b.sequence().items.size());
  items = a.sequence().items;
  items.insert(items.end(), b.sequence().items.begin(), b.sequence().items.end());
  return a.is(Kind::list) ? rt.list(std::move(items)) : rt.tuple(std::move(items));
}

bool repeatable(const Value& v) { return v.is_string() || v.is_sequence(); }

}  // namespace

Int index_of(const Value& value) {
  if (value.is_integral()) return value.as_int();
  if (value.is_undefined()) throw PyError(PyError::Type::undefined, value.object<UndefinedInfo>().message());
  type_error(std::string("'") + type_name(value) + "' object cannot be interpreted as an integer");
}

double real_of(const Value& value) {
  if (value.is_number()) return value.as_real();
  if (value.is_undefined()) throw PyError(PyError::Type::undefined, value.object<UndefinedInfo>().message());
  type_error(std::string("must be real number, not ") + type_name(value));
}

Value binary(Runtime& rt, Binary op, const Value& a, const Value& b) {
  rt.step();
  if (a.is_integral() && b.is_integral()) return integers(rt, op, a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) return reals(op, a.as_real(), b.as_real());
  if (op == Binary::mod && a.is_string()) return format_percent(rt, a, b);
  if (op == Binary::add && a.kind() == b.kind() && repeatable(a)) return concatenate(rt, a, b);
  if (op == Binary::mul && repeatable(a) && b.is_integral()) return repeat(rt, a, b.as_int());
  if (op == Binary::mul && repeatable(b) && a.is_integral()) return repeat(rt, b, a.as_int());
  unsupported(op, a, b);
}

Value negate(Runtime& rt, const Value& a) {
  rt.step();
  if (a.is_integral()) return integers(rt, Binary::sub, 0, a.as_int());
  if (a.is(Kind::real)) return Value::real(-a.as_real());
  if (a.is_undefined()) throw PyError(PyError::Type::undefined, a.object<UndefinedInfo>().message());
  type_error(std::string("bad operand type for unary -: '") + type_name(a) + "'");
}

Value plus(Runtime& rt, const Value& a) {
  rt.step();
  if (a.is_integral()) return Value::integer(a.as_int());
  if (a.is(Kind::real)) return a;
  if (a.is_undefined()) throw PyError(PyError::Type::undefined, a.object<UndefinedInfo>().message());
  type_error(std::string("bad operand type for unary +: '") + type_name(a) + "'");
}

namespace {

struct Places {
  Int start, stop, step, count;
};

Places places_of(Int length, const Value& start, const Value& stop, const Value& step) {
  for (const Value* value : {&start, &stop, &step}) {
    if (!value->is_none() && !value->is_integral())
      type_error("slice indices must be integers or None or have an __index__ method");
  }
  Places p{};
  p.step = step.is_none() ? 1 : step.as_int();
  if (p.step == 0) value_error("slice step cannot be zero");
  constexpr Int far = Int{1} << 100;
  p.step = std::clamp(p.step, -far, far);
  const auto bound = [&](const Value& value, Int otherwise) {
    if (value.is_none()) return otherwise;
    Int i = std::clamp(value.as_int(), -far, far);
    if (i < 0) i += length;
    return std::clamp<Int>(i, p.step < 0 ? -1 : 0, p.step < 0 ? length - 1 : length);
  };
  p.start = bound(start, p.step < 0 ? length - 1 : 0);
  p.stop = bound(stop, p.step < 0 ? -1 : length);
  if (p.step > 0) {
    p.count = p.start < p.stop ? (p.stop - p.start - 1) / p.step + 1 : 0;
  } else {
    p.count = p.stop < p.start ? (p.start - p.stop - 1) / -p.step + 1 : 0;
  }
  return p;
}

template <class T>
T take(const T& from, const Places& p) {
  T result;
  result.reserve(static_cast<std::size_t>(p.count));
  for (Int i = 0; i < p.count; i++) result.push_back(from[static_cast<std::size_t>(p.start + i * p.step)]);
  return result;
}

Value slice_text(Runtime& rt, const Value& of, const Value& start, const Value& stop, const Value& step) {
  const std::string& text = of.text();
  const bool markup = of.str().markup;
  if (of.str().ascii) {
    const Places p = places_of(static_cast<Int>(text.size()), start, stop, step);
    if (p.step == 1) return rt.str(text.substr(static_cast<std::size_t>(p.start), static_cast<std::size_t>(p.count)), markup);
    return rt.str(take(text, p), markup);
  }
  rt.work(text.size() * 4);
  const std::u32string characters = decode(text);
  return rt.str(encode(take(characters, places_of(static_cast<Int>(characters.size()), start, stop, step))), markup);
}

}  // namespace

Value slice(Runtime& rt, const Value& of, const Value& start, const Value& stop, const Value& step) {
  if (of.is_string()) return slice_text(rt, of, start, stop, step);
  if (of.is_sequence()) {
    const Values& items = of.sequence().items;
    Values taken = take(items, places_of(static_cast<Int>(items.size()), start, stop, step));
    return of.is(Kind::list) ? rt.list(std::move(taken)) : rt.tuple(std::move(taken));
  }
  if (of.is(Kind::range)) {
    const auto& range = of.object<Range>();
    const Places p = places_of(range.size(), start, stop, step);
    auto object = rt.make<Range>();
    object->start = range.start + p.start * range.step;
    object->step = range.step * p.step;
    object->stop = range.start + p.stop * range.step;
    return Value(Kind::range, std::move(object));
  }
  if (of.is_undefined()) throw PyError(PyError::Type::undefined, of.object<UndefinedInfo>().message());
  type_error(std::string("'") + type_name(of) + "' object is not subscriptable");
}

}  // namespace sdx::text::jinja
