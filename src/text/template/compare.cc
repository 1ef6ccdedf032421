// == and <, in, hashes.

#include <algorithm>
#include <cmath>

#include "text/template/runtime.h"
#include "text/template/search.h"

namespace sdx::text::jinja {
namespace {

// -1, 0, 1; 2 where one is not a number.
int order_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int() ? 1 : 0;
  if (a.is(Kind::real) && b.is(Kind::real)) {
    const double x = a.as_real(), y = b.as_real();
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
  }
  if (b.is(Kind::real)) {
    const double y = b.as_real();
    if (std::isnan(y)) return 2;
    if (y >= 0x1p126) return -1;
    if (y <= -0x1p126) return 1;
    const auto whole = static_cast<Int>(y);
    if (a.as_int() != whole) return a.as_int() < whole ? -1 : 1;
    const double fraction = y - static_cast<double>(whole);
    return fraction > 0 ? -1 : fraction < 0 ? 1 : 0;
  }
  const int turned = order_numbers(b, a);
  return turned == 2 ? 2 : -turned;
}

bool equal_items(Runtime& rt, const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); i++) {
    if (!identical(a[i], b[i]) && !equal(rt, a[i], b[i])) return false;
  }
  return true;
}

bool equal_dicts(Runtime& rt, const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    const Value* other = find(rt, b, key);
    if (!other || (!identical(value, *other) && !equal(rt, value, *other))) return false;
  }
  return true;
}

bool equal_ranges(const Range& a, const Range& b) {
  const Int size = a.size();
  if (size != b.size()) return false;
  return size == 0 || (a.start == b.start && (size == 1 || a.step == b.step));
}

bool set_like(const Value& v) { return v.is(Kind::view) && v.object<View>().what != View::What::values; }

bool equal_views(Runtime& rt, const Value& a, const Value& b) {
  const Values x = elements(rt, a), y = elements(rt, b);
  if (x.size() != y.size()) return false;
  return std::all_of(x.begin(), x.end(), [&](const Value& item) { return contains(rt, b, item); });
}

bool less_sequence(Runtime& rt, const Values& a, const Values& b, const char* op) {
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && (identical(a[i], b[i]) || equal(rt, a[i], b[i]))) i++;
  const bool or_equal = op[1] == '=', greater = op[0] == '>';
  if (i == a.size() || i == b.size()) {
    if (a.size() == b.size()) return or_equal;
    return greater ? a.size() > b.size() : a.size() < b.size();
  }
  return less(rt, a[i], b[i], op);
}

bool decide(int order, const char* op) {
  if (order == 2) return false;
  const bool strict = op[0] == '<' ? order < 0 : order > 0;
  return strict || (op[1] == '=' && order == 0);
}

}  // namespace

bool identical(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.pointer()) return a.pointer() == b.pointer();
  switch (a.kind()) {
    case Kind::none: return true;
    case Kind::boolean: return a.as_int() == b.as_int();
    case Kind::integer: return a.as_int() == b.as_int() && a.as_int() >= -5 && a.as_int() <= 256;  // CPython's own small ones
    default: return false;
  }
}

bool equal(Runtime& rt, const Value& a, const Value& b) {
  rt.step();
  if (a.is_number() && b.is_number()) return order_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  const Deeper deeper(rt);
  switch (a.kind()) {
    case Kind::undefined:
    case Kind::none: return true;
    case Kind::string: rt.work(a.text().size()); return a.text() == b.text();
    case Kind::list:
    case Kind::tuple: return equal_items(rt, a.sequence().items, b.sequence().items);
    case Kind::dict: return equal_dicts(rt, a.dict(), b.dict());
    case Kind::range: return equal_ranges(a.object<Range>(), b.object<Range>());
    case Kind::view: return set_like(a) && set_like(b) ? equal_views(rt, a, b) : a.pointer() == b.pointer();
    case Kind::function: {
      const auto &x = a.object<Function>(), &y = b.object<Function>();
      return x.call == y.call && x.method == y.method && (!x.method || identical(x.self, y.self));
    }
    default: return a.pointer() == b.pointer();
  }
}

bool less(Runtime& rt, const Value& a, const Value& b, const char* op) {
  rt.step();
  const Deeper deeper(rt);
  if (a.is_number() && b.is_number()) return decide(order_numbers(a, b), op);
  for (const Value* side : {&a, &b}) {
    if (side->is_undefined()) throw PyError(PyError::Type::undefined, side->object<UndefinedInfo>().message());
  }
  if (a.is_string() && b.is_string()) {
    rt.work(std::min(a.text().size(), b.text().size()));
    const int order = a.text().compare(b.text());  // UTF-8 sorts as code points do
    return decide(order < 0 ? -1 : order > 0 ? 1 : 0, op);
  }
  if (a.is_sequence() && a.kind() == b.kind()) return less_sequence(rt, a.sequence().items, b.sequence().items, op);
  type_error(std::string("'") + op + "' not supported between instances of '" + type_name(a) + "' and '" + type_name(b) + "'");
}

bool compare(Runtime& rt, Comparison op, const Value& a, const Value& b) {
  switch (op) {
    case Comparison::eq: return equal(rt, a, b);
    case Comparison::ne: return !equal(rt, a, b);
    case Comparison::lt: return less(rt, a, b, "<");
    case Comparison::le: return less(rt, a, b, "<=");
    case Comparison::gt: return less(rt, a, b, ">");
    case Comparison::ge: return less(rt, a, b, ">=");
    case Comparison::in: return contains(rt, b, a);
    case Comparison::not_in: return !contains(rt, b, a);
  }
  return false;
}

bool contains(Runtime& rt, const Value& container, const Value& item) {
  rt.step();
  const auto is_item = [&](const Value& v) { return identical(v, item) || equal(rt, v, item); };
  switch (container.kind()) {
    case Kind::string:
      if (!item.is_string()) type_error(std::string("'in <string>' requires string as left operand, not ") + type_name(item));
      rt.work(container.text().size());
      return find_from(container.text(), item.text()) != std::string::npos;
    case Kind::dict: return find(rt, container.dict(), item) != nullptr;
    case Kind::list:
    case Kind::tuple: return std::any_of(container.sequence().items.begin(), container.sequence().items.end(), is_item);
    case Kind::view:
      if (container.object<View>().what == View::What::keys) return find(rt, container.object<View>().of.dict(), item) != nullptr;
      [[fallthrough]];
    default: {
      if (!iterable(container)) type_error(std::string("argument of type '") + type_name(container) + "' is not iterable");
      const Values all = elements(rt, container);
      return std::any_of(all.begin(), all.end(), is_item);
    }
  }
}

std::size_t hash(Runtime& rt, const Value& value) {
  rt.step();
  switch (value.kind()) {
    case Kind::boolean:
    case Kind::integer: return std::hash<double>()(static_cast<double>(value.as_int()));
    case Kind::real: return std::hash<double>()(value.as_real() == 0 ? 0.0 : value.as_real());
    case Kind::string: rt.work(value.text().size()); return std::hash<std::string>()(value.text());
    case Kind::undefined:
    case Kind::none: return static_cast<std::size_t>(value.kind());
    case Kind::tuple: {
      const Deeper deeper(rt);
      std::size_t result = 0x345678;
      for (const Value& item : value.sequence().items) result = result * 1000003 ^ hash(rt, item);
      return result;
    }
    case Kind::list:
    case Kind::dict: type_error(std::string("unhashable type: '") + type_name(value) + "'");
    case Kind::view:
      if (set_like(value)) type_error(std::string("unhashable type: '") + type_name(value) + "'");
      [[fallthrough]];
    default: return std::hash<const void*>()(value.pointer().get());
  }
}

const Value* find(Runtime& rt, const Dict& dict, const Value& key) {
  if (!dict.index.empty()) {
    const auto [begin, end] = dict.index.equal_range(hash(rt, key));
    for (auto it = begin; it != end; ++it) {
      const auto& item = dict.items[it->second];
      if (equal(rt, item.first, key)) return &item.second;
    }
    return nullptr;
  }
  if (!key.is_string()) hash(rt, key);
  for (const auto& [name, value] : dict.items) {
    if (key.is_string() ? name.is_string() && name.text() == key.text() : equal(rt, name, key)) return &value;
  }
  return nullptr;
}

const Value* find(const Dict& dict, std::string_view key) {
  if (!dict.index.empty()) {
    const auto [begin, end] = dict.index.equal_range(std::hash<std::string_view>()(key));
    for (auto it = begin; it != end; ++it) {
      const auto& item = dict.items[it->second];
      if (item.first.is_string() && item.first.text() == key) return &item.second;
    }
    return nullptr;
  }
  for (const auto& [name, value] : dict.items) {
    if (name.is_string() && name.text() == key) return &value;
  }
  return nullptr;
}

}  // namespace sdx::text::jinja
