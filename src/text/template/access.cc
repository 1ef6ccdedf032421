// Attributes, elements, iteration; the methods of everything but strings.

#include <algorithm>
#include <cmath>
#include <span>

#include "base/text/utf8.h"
#include "text/template/interpreter.h"
#include "text/template/runtime.h"
#include "text/template/unicode.h"

namespace sdx::text::jinja {
namespace {

Value make_view(Runtime& rt, const Value& of, View::What what) {
  auto object = rt.make<View>();
  object->what = what;
  object->of = of;
  object->depth = of.depth() + 1;
  return Value(Kind::view, std::move(object));
}

template <View::What what>
Value view(Runtime& rt, const Value& self, Arguments& arguments) {
  no_arguments(arguments, "keys");
  return make_view(rt, self, what);
}

Value dict_get(Runtime& rt, const Value& self, Arguments& arguments) {
  no_named(arguments, "get");
  const Bound args(arguments, "get", {"key", "default"}, 1);
  const Value* found = find(rt, self.dict(), args[0]);
  return found ? *found : args.get(1);
}

Value copy(Runtime& rt, const Value& self, Arguments& arguments) {
  no_arguments(arguments, "copy");
  return self.is(Kind::dict) ? rt.dict(std::vector(self.dict().items)) : rt.list(self.sequence().items);
}

Value sequence_count(Runtime& rt, const Value& self, Arguments& arguments) {
  const Bound args(arguments, "count", {"value"}, 1);
  const Values& items = self.sequence().items;
  return Value::integer(
      std::count_if(items.begin(), items.end(), [&](const Value& v) { return identical(v, args[0]) || equal(rt, v, args[0]); }));
}

Value sequence_index(Runtime& rt, const Value& self, Arguments& arguments) {
  const Bound args(arguments, "index", {"value", "start", "stop"}, 1);
  const Values& items = self.sequence().items;
  const auto size = static_cast<Int>(items.size());
  const auto bound = [&](std::size_t i, Int otherwise) {
    Int at = args.has(i) ? index_of(args[i]) : otherwise;
    if (at < 0) at += size;
    return std::clamp<Int>(at, 0, size);
  };
  for (Int i = bound(1, 0), end = bound(2, size); i < end; i++) {
    const Value& item = items[static_cast<std::size_t>(i)];
    if (identical(item, args[0]) || equal(rt, item, args[0])) return Value::integer(i);
  }
  value_error(repr(rt, args[0]) + " is not in list");
}

Value forbidden(Runtime&, const Value&, Arguments&) {
  throw PyError(PyError::Type::security, "a template may not change lists and dicts");
}
Value unsupported(Runtime&, const Value& self, Arguments&) {
  throw PyError(PyError::Type::runtime, std::string("this method of ") + type_name(self) + " is not supported in templates");
}

Value bit_length(Runtime&, const Value& self, Arguments&) {
  Int bits = 0;
  for (auto rest = self.as_int() < 0 ? -static_cast<UInt>(self.as_int()) : static_cast<UInt>(self.as_int()); rest; rest >>= 1)
    bits++;
  return Value::integer(bits);
}
Value conjugate(Runtime& rt, const Value& self, Arguments&) { return plus(rt, self); }
Value is_integer(Runtime&, const Value& self, Arguments&) { return Value::boolean(self.as_real() == std::floor(self.as_real())); }

Value cycler_next(Runtime& rt, const Value& self, Arguments& arguments) {
  no_arguments(arguments, "next");
  rt.step();
  auto& cycler = self.object<Cycler>();
  Value item = cycler.items[cycler.at];
  cycler.at = (cycler.at + 1) % cycler.items.size();
  return item;
}
Value cycler_reset(Runtime&, const Value& self, Arguments& arguments) {
  no_arguments(arguments, "reset");
  self.object<Cycler>().at = 0;
  return {};
}

struct Named {
  std::string_view name;
  Function::Call call;
};

constexpr Named dict_methods[] = {{"get", dict_get},
                                  {"items", view<View::What::items>},
                                  {"keys", view<View::What::keys>},
                                  {"values", view<View::What::values>},
                                  {"copy", copy},
                                  {"clear", forbidden},
                                  {"pop", forbidden},
                                  {"popitem", forbidden},
                                  {"setdefault", forbidden},
                                  {"update", forbidden},
                                  {"fromkeys", unsupported}};
constexpr Named list_methods[] = {{"count", sequence_count}, {"index", sequence_index}, {"copy", copy},
                                  {"append", forbidden},     {"clear", forbidden},      {"extend", forbidden},
                                  {"insert", forbidden},     {"pop", forbidden},        {"remove", forbidden},
                                  {"reverse", forbidden},    {"sort", forbidden}};
constexpr Named tuple_methods[] = {{"count", sequence_count}, {"index", sequence_index}};
constexpr Named int_methods[] = {{"bit_length", bit_length}, {"conjugate", conjugate},          {"bit_count", unsupported},
                                 {"to_bytes", unsupported},  {"as_integer_ratio", unsupported}, {"from_bytes", unsupported}};
constexpr Named real_methods[] = {{"is_integer", is_integer},
                                  {"conjugate", conjugate},
                                  {"hex", unsupported},
                                  {"fromhex", unsupported},
                                  {"as_integer_ratio", unsupported}};
constexpr Named range_methods[] = {{"count", unsupported}, {"index", unsupported}};
constexpr Named view_methods[] = {{"isdisjoint", unsupported}, {"mapping", unsupported}};
constexpr Named cycler_methods[] = {{"next", cycler_next}, {"reset", cycler_reset}};

std::span<const Named> methods_of(const Value& of) {
  switch (of.kind()) {
    case Kind::dict: return dict_methods;
    case Kind::list: return list_methods;
    case Kind::tuple: return tuple_methods;
    case Kind::boolean:
    case Kind::integer: return int_methods;
    case Kind::real: return real_methods;
    case Kind::range: return range_methods;
    case Kind::view: return view_methods;
    case Kind::cycler: return cycler_methods;
    default: return {};
  }
}

std::optional<Value> plain_attribute(Runtime& rt, const Value& of, std::string_view name) {
  if (of.is_number()) {
    const bool whole = of.is_integral();
    if (name == "real" || (whole && name == "numerator")) return plus(rt, of);
    if (name == "imag") return whole ? Value::integer(0) : Value::real(0);
    if (whole && name == "denominator") return Value::integer(1);
  }
  if (of.is(Kind::tuple) && of.sequence().group) {
    if (name == "grouper") return of.sequence().items[0];
    if (name == "list") return of.sequence().items[1];
  }
  if (of.is(Kind::range)) {
    const auto& range = of.object<Range>();
    if (name == "start") return Value::integer(range.start);
    if (name == "stop") return Value::integer(range.stop);
    if (name == "step") return Value::integer(range.step);
  }
  if (of.is(Kind::cycler)) {
    const auto& cycler = of.object<Cycler>();
    if (name == "current") return cycler.items[cycler.at];
    if (name == "pos") return Value::integer(static_cast<Int>(cycler.at));
    if (name == "items") return rt.tuple(cycler.items);
  }
  if (of.is(Kind::joiner)) {
    if (name == "sep") return of.object<Joiner>().separator;
    if (name == "used") return Value::boolean(of.object<Joiner>().used);
  }
  if (of.is(Kind::name_space)) {
    for (const auto& [key, value] : of.object<Namespace>().attributes) {
      if (key == name) return value;
    }
  }
  return std::nullopt;
}

// obj[key], or nothing where Python raises TypeError or LookupError.
std::optional<Value> subscript(Runtime& rt, const Value& of, const Value& key) {
  if (of.is(Kind::dict)) {
    if (key.is(Kind::list) || key.is(Kind::dict)) return std::nullopt;
    const Value* found = find(rt, of.dict(), key);
    return found ? std::optional(*found) : std::nullopt;
  }
  if (!key.is_integral()) return std::nullopt;
  if (!of.is_string() && !of.is_sequence() && !of.is(Kind::range)) return std::nullopt;
  Int at = key.as_int();
  if (of.is_string() && !of.str().ascii) rt.work(of.text().size());
  const Int size = *length(rt, of);
  if (at < 0) at += size;
  if (at < 0 || at >= size) return std::nullopt;
  if (of.is_sequence()) return of.sequence().items[static_cast<std::size_t>(at)];
  if (of.is(Kind::range)) return Value::integer(of.object<Range>().start + at * of.object<Range>().step);
  const std::string& text = of.text();
  const auto index = static_cast<std::size_t>(at);
  if (of.str().ascii) return rt.str(text.substr(index, 1), of.str().markup);
  const std::size_t begin = byte_offset(text, index);
  return rt.str(text.substr(begin, byte_offset(std::string_view(text).substr(begin), 1)), of.str().markup);
}

[[noreturn]] void use_of_undefined(const Value& of) {
  const auto& info = of.object<UndefinedInfo>();
  throw PyError(info.unsafe ? PyError::Type::security : PyError::Type::undefined, info.message());
}

Value key_of(Runtime& rt, std::string_view name) { return rt.str(std::string(name)); }

bool dunder(std::string_view name) { return name.size() > 4 && name.starts_with("__") && name.ends_with("__"); }

}  // namespace

bool modifies(const Value& of, std::string_view name) {
  if (!of.is(Kind::dict) && !of.is(Kind::list)) return false;
  const auto methods = methods_of(of);
  return std::any_of(methods.begin(), methods.end(), [&](const Named& m) { return m.name == name && m.call == forbidden; });
}

std::optional<Value> python_attribute(Runtime& rt, const Value& of, std::string_view name) {
  if (of.is_string()) {
    const char* canonical = nullptr;
    if (const auto call = string_method(name, canonical)) return rt.method(canonical, of, *call);
    return std::nullopt;
  }
  for (const Named& method : methods_of(of)) {
    if (method.name == name) return rt.method(method.name.data(), of, method.call);
  }
  if (of.is(Kind::loop)) return loop_attribute(rt, of, name);
  if (of.is(Kind::macro)) return macro_attribute(rt, of, name);
  return plain_attribute(rt, of, name);
}

Value get_attribute(Runtime& rt, const Value& of, std::string_view name) {
  rt.step();
  if (of.is_undefined()) use_of_undefined(of);
  if (name == "__repr__" && (of.is(Kind::loop) || of.is(Kind::macro))) return *python_attribute(rt, of, name);
  if (dunder(name)) return rt.missing(of, key_of(rt, name), true);
  if (auto found = python_attribute(rt, of, name)) {
    if (name.starts_with('_') || modifies(of, name)) return rt.missing(of, key_of(rt, name), true);
    return *found;
  }
  if (of.is(Kind::dict)) {
    if (const Value* found = find(of.dict(), name)) return *found;
  }
  return rt.missing(of, key_of(rt, name));
}

Value get_item(Runtime& rt, const Value& of, const Value& key) {
  rt.step();
  if (of.is_undefined()) use_of_undefined(of);
  if (auto found = subscript(rt, of, key)) return *found;
  if (key.is_string()) {
    const std::string& name = key.text();
    if (dunder(name)) return rt.missing(of, key, true);
    if (auto found = python_attribute(rt, of, name)) {
      if (name.starts_with('_') || modifies(of, name)) return rt.missing(of, key, true);
      return *found;
    }
  }
  return rt.missing(of, key);
}

bool iterable(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::string:
    case Kind::list:
    case Kind::tuple:
    case Kind::dict:
    case Kind::range:
    case Kind::view:
    case Kind::iterator:
    case Kind::loop: return true;
    default: return false;
  }
}

namespace {

Values characters_of(Runtime& rt, const Value& value) {
  Values items;
  const std::string& text = value.text();
  rt.budget.reserve(text.size() * sizeof(Value));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = byte_offset(std::string_view(text).substr(at), 1);
    items.push_back(rt.str(text.substr(at, size)));
    at += size;
  }
  return items;
}

Values view_items(Runtime& rt, const View& of) {
  Values items;
  for (const auto& [key, value] : of.of.dict().items) {
    items.push_back(of.what == View::What::keys ? key : of.what == View::What::values ? value : rt.tuple({key, value}));
  }
  return items;
}

Values range_items(Runtime& rt, const Range& range) {
  const Int size = range.size();
  rt.budget.reserve(static_cast<std::size_t>(size) * sizeof(Value));
  Values items;
  items.reserve(static_cast<std::size_t>(size));
  for (Int i = 0; i < size; i++) items.push_back(Value::integer(range.start + i * range.step));
  return items;
}

}  // namespace

Values elements(Runtime& rt, const Value& value) {
  rt.step();
  switch (value.kind()) {
    case Kind::undefined: return {};
    case Kind::string: return characters_of(rt, value);
    case Kind::list:
    case Kind::tuple:
      rt.step(value.sequence().items.size() / 4);
      rt.budget.reserve(value.sequence().items.size() * sizeof(Value));
      return value.sequence().items;
    case Kind::dict: {
      Values items;
      rt.step(value.dict().items.size() / 4);
      for (const auto& item : value.dict().items) items.push_back(item.first);
      return items;
    }
    case Kind::range: {
      const Int size = value.object<Range>().size();
      rt.step(static_cast<std::uint64_t>(size) / 4);
      return range_items(rt, value.object<Range>());
    }
    case Kind::view: return view_items(rt, value.object<View>());
    case Kind::iterator: {
      auto& iterator = value.object<Iterator>();
      Values items(iterator.items.begin() + static_cast<std::ptrdiff_t>(iterator.at), iterator.items.end());
      iterator.at = iterator.items.size();
      if (iterator.error) std::rethrow_exception(std::exchange(iterator.error, nullptr));
      return items;
    }
    case Kind::loop: return loop_elements(rt, value);
    default: type_error(std::string("'") + type_name(value) + "' object is not iterable");
  }
}

std::optional<Int> length(Runtime& rt, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined: return 0;
    case Kind::string:
      rt.work(value.text().size());
      return static_cast<Int>(value.str().ascii ? value.text().size() : count_chars(value.text()));
    case Kind::list:
    case Kind::tuple: return static_cast<Int>(value.sequence().items.size());
    case Kind::dict: return static_cast<Int>(value.dict().items.size());
    case Kind::range: return value.object<Range>().size();
    case Kind::view: return static_cast<Int>(value.object<View>().of.dict().items.size());
    case Kind::loop: return loop_length(rt, value);
    default: return std::nullopt;
  }
}

}  // namespace sdx::text::jinja
