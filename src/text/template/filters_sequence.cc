#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/template/filters.h"
#include "text/template/unicode.h"

namespace sdx::text::jinja {

void filter_error(std::string message) { throw PyError(PyError::Type::runtime, std::move(message)); }

Getter::Getter(Runtime& rt, const Value& attribute, bool lower_case, const Value* otherwise)
    : rt_(rt), lower_case_(lower_case), otherwise_(otherwise) {
  if (attribute.is_none()) return;
  if (!attribute.is_string()) {
    parts_.push_back(attribute);
    return;
  }
  std::string_view rest = attribute.text();
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool number = !part.empty() && part.size() < 18 && part.find_first_not_of("0123456789") == std::string_view::npos;
    parts_.push_back(number ? Value::integer(std::stoll(std::string(part))) : rt.str(std::string(part)));
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
}

Value Getter::operator()(const Value& item) const {
  Value value = item;
  for (const Value& part : parts_) {
    value = get_item(rt_, value, part);
    if (otherwise_ && !otherwise_->is_none() && value.is_undefined()) value = *otherwise_;
  }
  if (lower_case_ && value.is_string()) return rt_.str(lower(value.text()));
  return value;
}

namespace {

void need_iterable(const Value& value) {
  if (!iterable(value)) type_error(std::string("'") + type_name(value) + "' object is not iterable");
}

Values items_of(Runtime& rt, const Value& value) {
  need_iterable(value);
  return elements(rt, value);
}

// Runs `produce`; an error in it is thrown only when the result is consumed.
template <class F>
Value generated(Runtime& rt, const char* type, F&& produce) {
  Values out;
  std::exception_ptr error;
  try {
    produce(out);
  } catch (const PyError& e) {
    if (e.type() == PyError::Type::limit) throw;
    error = std::current_exception();
  }
  return rt.iterator(std::move(out), type, std::move(error));
}

void stable_sort(Runtime& rt, Values& items, const Getter& key, bool reverse) {
  std::vector<std::pair<Value, Value>> keyed;
  keyed.reserve(items.size());
  for (Value& item : items) {
    Value k = key(item);
    keyed.emplace_back(std::move(k), std::move(item));
  }
  if (reverse) std::reverse(keyed.begin(), keyed.end());
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) { return less(rt, a.first, b.first); });
  if (reverse) std::reverse(keyed.begin(), keyed.end());
  for (std::size_t i = 0; i < items.size(); i++) items[i] = std::move(keyed[i].second);
}

Value default_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "default", {"default_value", "boolean"});
  if (value.is_undefined() || (args.flag(rt, 1) && !truthy(rt, value))) return args.has(0) ? args[0] : rt.str("");
  return value;
}

Value length_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "length");
  const auto size = length(rt, value);
  if (!size) type_error(std::string("object of type '") + type_name(value) + "' has no len()");
  return Value::integer(*size);
}

Value list_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "list");
  return rt.list(items_of(rt, value));
}

Value items_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "items");
  return generated(rt, "generator", [&](Values& out) {
    if (value.is_undefined()) return;
    if (!value.is(Kind::dict)) type_error("Can only get item pairs from a mapping.");
    for (const auto& [key, item] : value.dict().items) out.push_back(rt.tuple({key, item}));
  });
}

Value first_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "first");
  if (value.is(Kind::iterator)) {
    auto& iterator = value.object<Iterator>();
    if (iterator.at < iterator.items.size()) return iterator.items[iterator.at++];
  }
  if (value.is_string() && !value.text().empty()) return rt.str(value.text().substr(0, byte_offset(value.text(), 1)));
  const Values items = items_of(rt, value);
  return items.empty() ? rt.undefined("No first item, sequence was empty.") : items[0];
}

void need_reversible(const Value& value) {
  const Kind kind = value.kind();
  if (kind != Kind::string && kind != Kind::list && kind != Kind::tuple && kind != Kind::dict && kind != Kind::range &&
      kind != Kind::view && kind != Kind::undefined) {
    type_error(std::string("'") + type_name(value) + "' object is not reversible");
  }
}

Value last_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "last");
  need_reversible(value);
  const Values items = items_of(rt, value);
  return items.empty() ? rt.undefined("No last item, sequence was empty.") : items.back();
}

Value reverse_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "reverse");
  if (value.is_string()) {
    std::u32string text = decode(value.text());
    std::reverse(text.begin(), text.end());
    return rt.str(encode(text), value.str().markup);
  }
  if (!iterable(value)) filter_error("argument must be iterable");
  Values items = elements(rt, value);
  std::reverse(items.begin(), items.end());
  if (value.is(Kind::iterator)) return rt.list(std::move(items));
  return rt.iterator(std::move(items), value.is(Kind::list)   ? "list_reverseiterator"
                                       : value.is(Kind::dict) ? "dict_reversekeyiterator"
                                                              : "reversed");
}

Value join_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "join", {"d", "attribute"});
  const std::string separator = args.has(0) ? to_text(rt, args[0]) : "";
  const Getter getter(rt, args.get(1));
  std::string result;
  bool begun = false;
  for (const Value& item : items_of(rt, value)) {
    if (begun) result += separator;
    begun = true;
    append_text(rt, result, getter(item));
    rt.work(separator.size());
    rt.budget.reserve(result.size());
  }
  return rt.str(std::move(result));
}

Value map_filter(Runtime& rt, Value& value, Arguments& arguments) {
  return generated(rt, "generator", [&](Values& out) {
    if (!truthy(rt, value)) return;
    if (arguments.positional.empty()) {
      const Bound args(arguments, "map", {"attribute", "default"});
      if (!args.has(0)) filter_error("map requires a filter argument");
      const Value otherwise = args.get(1);
      const Getter getter(rt, args[0], false, &otherwise);
      for (const Value& item : items_of(rt, value)) out.push_back(getter(item));
      return;
    }
    const Value name = arguments.positional[0];
    const Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.named};
    for (const Value& item : items_of(rt, value)) out.push_back(rt.call_filter(name, item, rest));
  });
}

template <bool keep, bool attribute>
Value select_filter(Runtime& rt, Value& value, Arguments& arguments) {
  return generated(rt, "generator", [&](Values& out) {
    if (!truthy(rt, value)) return;
    std::size_t used = attribute ? 1 : 0;
    if (arguments.positional.size() < used) filter_error("Missing parameter for attribute name");
    const Getter getter(rt, attribute ? arguments.positional[0] : Value());
    const bool tested = arguments.positional.size() > used;
    const Value name = tested ? arguments.positional[used++] : Value();
    const Arguments rest{{arguments.positional.begin() + static_cast<std::ptrdiff_t>(used), arguments.positional.end()},
                         arguments.named};
    for (const Value& item : items_of(rt, value)) {
      const Value looked_at = attribute ? getter(item) : item;
      if ((tested ? rt.call_test(name, looked_at, rest) : truthy(rt, looked_at)) == keep) out.push_back(item);
    }
  });
}

Value sort_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "sort", {"reverse", "case_sensitive", "attribute"});
  Values items = items_of(rt, value);
  const bool folded = !args.flag(rt, 1);
  if (args.has(2) && args[2].is_string() && args[2].text().find(',') != std::string::npos) {
    std::vector<Getter> getters;
    std::string_view rest = args[2].text();
    while (true) {
      const std::size_t comma = rest.find(',');
      getters.emplace_back(rt, rt.str(std::string(rest.substr(0, comma))), folded);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    Values paired;
    for (const Value& item : items) {
      Values keys;
      for (const Getter& getter : getters) keys.push_back(getter(item));
      paired.push_back(rt.tuple({rt.list(std::move(keys)), item}));
    }
    stable_sort(rt, paired, Getter(rt, Value::integer(0)), args.flag(rt, 0));
    for (std::size_t i = 0; i < items.size(); i++) items[i] = paired[i].sequence().items[1];
    return rt.list(std::move(items));
  }
  // Python compares lists of one key: equal ones are not compared any further.
  Values paired;
  const Getter getter(rt, args.get(2), folded);
  for (const Value& item : items) paired.push_back(rt.tuple({rt.list({getter(item)}), item}));
  stable_sort(rt, paired, Getter(rt, Value::integer(0)), args.flag(rt, 0));
  for (std::size_t i = 0; i < items.size(); i++) items[i] = paired[i].sequence().items[1];
  return rt.list(std::move(items));
}

Value dictsort_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "dictsort", {"case_sensitive", "by", "reverse"});
  const std::string by = args.has(1) ? to_text(rt, args[1]) : "key";
  if (by != "key" && by != "value") filter_error("You can only sort by either \"key\" or \"value\"");
  if (!value.is(Kind::dict)) {
    throw PyError(value.is_undefined() ? PyError::Type::undefined : PyError::Type::attribute,
                  "dictsort needs a mapping, not " + std::string(type_name(value)));
  }
  Values items;
  for (const auto& [key, item] : value.dict().items) items.push_back(rt.tuple({key, item}));
  stable_sort(rt, items, Getter(rt, Value::integer(by == "key" ? 0 : 1), !args.flag(rt, 0)), args.flag(rt, 2));
  return rt.list(std::move(items));
}

Value unique_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "unique", {"case_sensitive", "attribute"});
  return generated(rt, "generator", [&](Values& out) {
    const Getter getter(rt, args.get(1), !args.flag(rt, 0));
    std::unordered_multimap<std::size_t, Value> seen;
    for (const Value& item : items_of(rt, value)) {
      Value key = getter(item);
      const std::size_t hashed = hash(rt, key);
      const auto [begin, end] = seen.equal_range(hashed);
      if (std::any_of(begin, end, [&](const auto& other) { return equal(rt, other.second, key); })) continue;
      seen.emplace(hashed, std::move(key));
      out.push_back(item);
    }
  });
}

template <bool most>
Value extreme(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, most ? "max" : "min", {"case_sensitive", "attribute"});
  const Values items = items_of(rt, value);
  if (items.empty()) return rt.undefined("No aggregated item, sequence was empty.");
  const Getter getter(rt, args.get(1), !args.flag(rt, 0));
  std::size_t best = 0;
  Value best_key = getter(items[0]);
  for (std::size_t i = 1; i < items.size(); i++) {
    Value key = getter(items[i]);
    if (most ? less(rt, key, best_key, ">") : less(rt, key, best_key)) {
      best = i;
      best_key = std::move(key);
    }
  }
  return items[best];
}

Value sum_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "sum", {"attribute", "start"});
  const Getter getter(rt, args.get(0));
  Value total = args.get(1, Value::integer(0));
  if (total.is_string()) type_error("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : items_of(rt, value)) total = binary(rt, Binary::add, total, getter(item));
  return total;
}

Value groupby_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "groupby", {"attribute", "default", "case_sensitive"}, 1);
  const Value otherwise = args.get(1);
  const bool folded = !args.flag(rt, 2);
  const Getter getter(rt, args[0], folded, &otherwise), plain(rt, args[0], false, &otherwise);
  Values items = items_of(rt, value);
  stable_sort(rt, items, getter, false);
  Values groups;
  for (std::size_t i = 0; i < items.size();) {
    const Value key = getter(items[i]);
    Values group;
    const std::size_t first = i;
    for (; i < items.size() && (group.empty() || equal(rt, getter(items[i]), key)); i++) group.push_back(items[i]);
    Value entry = rt.tuple({folded ? plain(items[first]) : key, rt.list(std::move(group))});
    entry.object<Sequence>().group = true;
    groups.push_back(std::move(entry));
  }
  return rt.list(std::move(groups));
}

Value batch_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "batch", {"linecount", "fill_with"}, 1);
  return generated(rt, "generator", [&](Values& out) {
    Values line;
    const Value& size = args[0];
    for (const Value& item : items_of(rt, value)) {
      if (equal(rt, Value::integer(static_cast<Int>(line.size())), size)) out.push_back(rt.list(std::exchange(line, {})));
      line.push_back(item);
    }
    if (line.empty()) return;
    if (args.has(1) && !args[1].is_none() && less(rt, Value::integer(static_cast<Int>(line.size())), size)) {
      const Int wanted = index_of(size);
      if (wanted > 1'000'000) limit_error("batches of more than a million");
      rt.step(static_cast<std::uint64_t>(wanted));
      while (static_cast<Int>(line.size()) < wanted) line.push_back(args[1]);
    }
    out.push_back(rt.list(std::move(line)));
  });
}

Value slice_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "slice", {"slices", "fill_with"}, 1);
  return generated(rt, "generator", [&](Values& out) {
    const Values items = items_of(rt, value);
    const auto size = static_cast<Int>(items.size());
    const Int slices = index_of(args[0]);
    if (slices == 0) throw PyError(PyError::Type::zero_division, "integer division or modulo by zero");
    Int begin = 0;
    for (Int i = 0; i < slices; i++) {
      rt.step();
      const Int end = begin + size / slices + (i < size % slices ? 1 : 0);
      Values part(items.begin() + static_cast<std::ptrdiff_t>(begin), items.begin() + static_cast<std::ptrdiff_t>(end));
      if (args.has(1) && !args[1].is_none() && i >= size % slices) part.push_back(args[1]);
      out.push_back(rt.list(std::move(part)));
      begin = end;
    }
  });
}

Value attr_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "attr", {"name"}, 1);
  if (!args[0].is_string()) type_error("attribute name must be string");
  const std::string& name = args[0].text();
  if (value.is_undefined() || (name.size() > 4 && name.starts_with("__"))) return get_attribute(rt, value, name);
  return python_attribute(rt, value, name) ? get_attribute(rt, value, name) : rt.missing(value, args[0]);
}

Value abs_filter(Runtime& rt, Value& value, Arguments& arguments) {
  no_arguments(arguments, "abs");
  if (value.is(Kind::real)) return Value::real(std::fabs(value.as_real()));
  if (value.is_integral()) return value.as_int() < 0 ? negate(rt, value) : Value::integer(value.as_int());
  type_error(std::string("bad operand type for abs(): '") + type_name(value) + "'");
}

// float(text), or nothing.
std::optional<double> parse_real(std::string_view text) {
  text = strip(text);
  std::string plain;
  for (std::size_t i = 0; i < text.size(); i++) {
    const auto digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
    if (text[i] == '_' && i > 0 && digit(i - 1) && digit(i + 1)) continue;
    plain += text[i];
  }
  const bool negative = plain.starts_with('-');
  if (negative || plain.starts_with('+')) plain.erase(0, 1);
  const std::string word = lower(plain);
  if (word == "inf" || word == "infinity") return negative ? -HUGE_VAL : HUGE_VAL;
  if (word == "nan") return std::nan("");
  if (plain.empty() || !(plain[0] == '.' || (plain[0] >= '0' && plain[0] <= '9'))) return std::nullopt;
  double result = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), result);
  if (end != plain.data() + plain.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) result = std::strtod(plain.c_str(), nullptr);
  return negative ? -result : result;
}

std::optional<Int> parse_int(std::string_view text, Int base) {
  text = strip(text);
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  Int prefix = 0;
  if (text.size() > 1 && text[0] == '0') {
    const char kind = static_cast<char>(text[1] | 0x20);
    prefix = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
  }
  bool separated = false;
  if (prefix && (base == 0 || base == prefix)) {
    text.remove_prefix(2);
    base = prefix;
    separated = true;
  } else if (base == 0) {
    base = 10;
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos) return std::nullopt;
  }
  Int result = 0;
  bool digit_before = separated;
  if (text.empty() || text.back() == '_') return std::nullopt;
  for (const char c : text) {
    if (c == '_') {
      if (!digit_before) return std::nullopt;
      digit_before = false;
      continue;
    }
    const int digit = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10 : 99;
    if (digit >= base) return std::nullopt;
    if (__builtin_mul_overflow(result, base, &result) || __builtin_add_overflow(result, Int{digit}, &result)) {
      throw PyError(PyError::Type::overflow, "an integer beyond 127 bits");
    }
    digit_before = true;
  }
  return negative ? -result : result;
}

std::optional<Int> whole(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  if (std::fabs(value) >= 0x1p126) throw PyError(PyError::Type::overflow, "an integer beyond 127 bits");
  return static_cast<Int>(value);
}

[[noreturn]] void undefined_number(const Value& value) {
  throw PyError(PyError::Type::undefined, value.object<UndefinedInfo>().message());
}

Value int_filter(Runtime&, Value& value, Arguments& arguments) {
  const Bound args(arguments, "int", {"default", "base"});
  if (value.is_undefined()) undefined_number(value);
  std::optional<Int> result;
  if (value.is_integral()) result = value.as_int();
  if (value.is(Kind::real)) {
    if (std::isinf(value.as_real())) throw PyError(PyError::Type::overflow, "cannot convert float infinity to integer");
    result = whole(value.as_real());
  }
  if (value.is_string()) {
    result = parse_int(value.text(), args.has(1) ? index_of(args[1]) : Int{10});
    if (!result) {
      if (const auto real = parse_real(value.text())) result = whole(*real);
    }
  }
  return result ? Value::integer(*result) : args.get(0, Value::integer(0));
}

Value float_filter(Runtime&, Value& value, Arguments& arguments) {
  const Bound args(arguments, "float", {"default"});
  if (value.is_undefined()) undefined_number(value);
  if (value.is_number()) return Value::real(value.as_real());
  if (value.is_string()) {
    if (const auto real = parse_real(value.text())) return Value::real(*real);
  }
  return args.get(0, Value::real(0));
}

Value round_common(Runtime& rt, const Value& value, Int precision) {
  if (value.is_integral()) {
    if (precision >= 0) return Value::integer(value.as_int());
    if (precision < -37) return Value::integer(0);
    const Int unit = binary(rt, Binary::pow, Value::integer(10), Value::integer(-precision)).as_int(), half = unit / 2;
    const Int down = binary(rt, Binary::floordiv, value, Value::integer(unit)).as_int(), rest = value.as_int() - down * unit;
    const bool up = rest > half || (rest == half && (down & 1));
    return Value::integer((down + (up ? 1 : 0)) * unit);
  }
  const double number = real_of(value);
  if (!std::isfinite(number) || precision > 323) return Value::real(number);
  if (precision < -308) return Value::real(std::copysign(0.0, number));
  if (precision >= 0) {
    char buffer[700];
    std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(precision), number);
    return Value::real(std::strtod(buffer, nullptr));
  }
  const double unit = std::pow(10.0, static_cast<double>(-precision));
  return Value::real(std::nearbyint(number / unit) * unit);
}

Value round_filter(Runtime& rt, Value& value, Arguments& arguments) {
  const Bound args(arguments, "round", {"precision", "method"});
  const std::string method = args.has(1) ? to_text(rt, args[1]) : "common";
  if (method != "common" && method != "ceil" && method != "floor") filter_error("method must be common, ceil or floor");
  if (value.is_undefined() || !value.is_number()) {
    if (value.is_undefined() && method != "common") undefined_number(value);
    type_error(std::string("type ") + type_name(value) + " doesn't define __round__ method");
  }
  const Value precision = args.get(0, Value::integer(0));
  if (method == "common") return round_common(rt, value, index_of(precision));
  const Value scale = binary(rt, Binary::pow, Value::integer(10), precision);
  const Value scaled = binary(rt, Binary::mul, value, scale);
  if (scaled.is_integral()) return binary(rt, Binary::div, scaled, scale);
  const double rounded = method == "ceil" ? std::ceil(scaled.as_real()) : std::floor(scaled.as_real());
  const auto result = whole(rounded);
  if (!result) value_error("cannot convert float NaN or infinity to integer");
  return binary(rt, Binary::div, Value::integer(*result), scale);
}

constexpr NamedFilter table[] = {
    {"abs", abs_filter},
    {"attr", attr_filter},
    {"batch", batch_filter},
    {"count", length_filter},
    {"d", default_filter},
    {"default", default_filter},
    {"dictsort", dictsort_filter},
    {"first", first_filter},
    {"float", float_filter},
    {"groupby", groupby_filter},
    {"int", int_filter},
    {"items", items_filter},
    {"join", join_filter},
    {"last", last_filter},
    {"length", length_filter},
    {"list", list_filter},
    {"map", map_filter},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", select_filter<false, false>},
    {"rejectattr", select_filter<false, true>},
    {"reverse", reverse_filter},
    {"round", round_filter},
    {"select", select_filter<true, false>},
    {"selectattr", select_filter<true, true>},
    {"slice", slice_filter},
    {"sort", sort_filter},
    {"sum", sum_filter},
    {"unique", unique_filter},
};

}  // namespace

std::span<const NamedFilter> sequence_filters() { return table; }

}  // namespace sdx::text::jinja
