// Tests, global functions, and the tables that find filters and tests.

#include <algorithm>
#include <unordered_map>

#include "text/template/filters.h"
#include "text/template/interpreter.h"

namespace sdx::text::jinja {
namespace {

const Value& argument(Arguments& arguments, const char* test) {
  if (arguments.positional.size() != 1 || !arguments.named.empty())
    type_error(std::string("the test '") + test + "' takes one argument");
  return arguments.positional[0];
}
void none(Arguments& arguments) {
  if (!arguments.positional.empty() || !arguments.named.empty()) type_error("this test takes no argument");
}

template <bool (*check)(Runtime&, const Value&)>
bool plain(Runtime& rt, const Value& value, Arguments& arguments) {
  none(arguments);
  return check(rt, value);
}

bool is_odd(Runtime& rt, const Value& v) { return equal(rt, binary(rt, Binary::mod, v, Value::integer(2)), Value::integer(1)); }
bool is_even(Runtime& rt, const Value& v) { return equal(rt, binary(rt, Binary::mod, v, Value::integer(2)), Value::integer(0)); }
bool is_defined(Runtime&, const Value& v) { return !v.is_undefined(); }
bool is_undefined(Runtime&, const Value& v) { return v.is_undefined(); }
bool is_none(Runtime&, const Value& v) { return v.is_none(); }
bool is_boolean(Runtime&, const Value& v) { return v.is(Kind::boolean); }
bool is_false(Runtime&, const Value& v) { return v.is(Kind::boolean) && v.as_int() == 0; }
bool is_true(Runtime&, const Value& v) { return v.is(Kind::boolean) && v.as_int() == 1; }
bool is_integer(Runtime&, const Value& v) { return v.is(Kind::integer); }
bool is_float(Runtime&, const Value& v) { return v.is(Kind::real); }
bool is_lower(Runtime& rt, const Value& v) { return all_lower(rt, to_text(rt, v)); }
bool is_upper(Runtime& rt, const Value& v) { return all_upper(rt, to_text(rt, v)); }
bool is_string(Runtime&, const Value& v) { return v.is_string(); }
bool is_mapping(Runtime&, const Value& v) { return v.is(Kind::dict); }
bool is_number(Runtime&, const Value& v) { return v.is_number(); }
bool is_sequence(Runtime&, const Value& v) {
  return v.is_string() || v.is_sequence() || v.is(Kind::dict) || v.is(Kind::range) || v.is_undefined();
}
bool is_iterable(Runtime&, const Value& v) { return iterable(v); }
bool is_callable(Runtime&, const Value& v) {
  return v.is(Kind::function) || v.is(Kind::macro) || v.is(Kind::loop) || v.is(Kind::joiner) || v.is_undefined();
}
bool is_escaped(Runtime&, const Value& v) { return v.is_string() && v.str().markup; }
bool is_filter(Runtime& rt, const Value& v) {
  hash(rt, v);
  return v.is_string() && find_filter(v.text());
}
bool is_test(Runtime& rt, const Value& v) {
  hash(rt, v);
  return v.is_string() && find_test(v.text());
}

bool divisible(Runtime& rt, const Value& value, Arguments& arguments) {
  const Bound args(arguments, "divisibleby", {"num"}, 1);
  return equal(rt, binary(rt, Binary::mod, value, args[0]), Value::integer(0));
}
bool same_as(Runtime&, const Value& value, Arguments& arguments) {
  const Bound args(arguments, "sameas", {"other"}, 1);
  return identical(value, args[0]);
}
bool is_in(Runtime& rt, const Value& value, Arguments& arguments) {
  const Bound args(arguments, "in", {"seq"}, 1);
  return contains(rt, args[0], value);
}
template <Comparison op>
bool compared(Runtime& rt, const Value& value, Arguments& arguments) {
  return compare(rt, op, value, argument(arguments, "comparison"));
}

const std::unordered_map<std::string_view, Test>& tests() {
  static const std::unordered_map<std::string_view, Test> table = {
      {"odd", plain<is_odd>},
      {"even", plain<is_even>},
      {"divisibleby", divisible},
      {"defined", plain<is_defined>},
      {"undefined", plain<is_undefined>},
      {"filter", plain<is_filter>},
      {"test", plain<is_test>},
      {"none", plain<is_none>},
      {"boolean", plain<is_boolean>},
      {"false", plain<is_false>},
      {"true", plain<is_true>},
      {"integer", plain<is_integer>},
      {"float", plain<is_float>},
      {"lower", plain<is_lower>},
      {"upper", plain<is_upper>},
      {"string", plain<is_string>},
      {"mapping", plain<is_mapping>},
      {"number", plain<is_number>},
      {"sequence", plain<is_sequence>},
      {"iterable", plain<is_iterable>},
      {"callable", plain<is_callable>},
      {"sameas", same_as},
      {"escaped", plain<is_escaped>},
      {"in", is_in},
      {"==", compared<Comparison::eq>},
      {"eq", compared<Comparison::eq>},
      {"equalto", compared<Comparison::eq>},
      {"!=", compared<Comparison::ne>},
      {"ne", compared<Comparison::ne>},
      {">", compared<Comparison::gt>},
      {"gt", compared<Comparison::gt>},
      {"greaterthan", compared<Comparison::gt>},
      {"ge", compared<Comparison::ge>},
      {">=", compared<Comparison::ge>},
      {"<", compared<Comparison::lt>},
      {"lt", compared<Comparison::lt>},
      {"lessthan", compared<Comparison::lt>},
      {"<=", compared<Comparison::le>},
      {"le", compared<Comparison::le>},
  };
  return table;
}

// ---- Globals

constexpr Int max_range = 100000;

Value range_function(Runtime& rt, const Value&, Arguments& arguments) {
  no_named(arguments, "range");
  const auto& given = arguments.positional;
  if (given.empty() || given.size() > 3) type_error("range expected 1 to 3 arguments, got " + std::to_string(given.size()));
  auto range = rt.make<Range>();
  range->start = given.size() > 1 ? index_of(given[0]) : 0;
  range->stop = index_of(given[given.size() > 1 ? 1 : 0]);
  range->step = given.size() > 2 ? index_of(given[2]) : 1;
  if (range->step == 0) value_error("range() arg 3 must not be zero");
  constexpr Int far = Int{1} << 100;
  for (const Int part : {range->start, range->stop, range->step}) {
    if (part > far || part < -far) throw PyError(PyError::Type::overflow, "Python int too large to convert to C ssize_t");
  }
  if (range->size() > max_range) {
    throw PyError(PyError::Type::overflow, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
  }
  return Value(Kind::range, std::move(range));
}

void add_pairs(Runtime& rt, Arguments& arguments, std::vector<std::pair<Value, Value>>& pairs) {
  if (arguments.positional.size() > 1) type_error("dict expected at most 1 argument");
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (from.is(Kind::dict)) {
      pairs = from.dict().items;
    } else {
      if (!iterable(from)) type_error(std::string("'") + type_name(from) + "' object is not iterable");
      for (const Value& pair : elements(rt, from)) {
        const Values parts = iterable(pair) ? elements(rt, pair) : Values();
        if (parts.size() != 2) value_error("dictionary update sequence element has not length 2");
        pairs.emplace_back(parts[0], parts[1]);
      }
    }
  }
  for (auto& [name, value] : arguments.named) pairs.emplace_back(rt.str(name), value);
}

Value dict_function(Runtime& rt, const Value&, Arguments& arguments) {
  std::vector<std::pair<Value, Value>> pairs;
  add_pairs(rt, arguments, pairs);
  return rt.dict(std::move(pairs));
}

Value namespace_function(Runtime& rt, const Value&, Arguments& arguments) {
  std::vector<std::pair<Value, Value>> pairs;
  add_pairs(rt, arguments, pairs);
  auto space = rt.make_namespace();
  const Value all = rt.dict(std::move(pairs));
  rt.grow(*space, all.dict().items.size() * (sizeof(Value) + sizeof(std::string)));
  for (const auto& [key, value] : all.dict().items) {
    if (key.is_string()) space->attributes.emplace_back(key.text(), value);
  }
  return Value(Kind::name_space, std::move(space));
}

Value cycler_function(Runtime& rt, const Value&, Arguments& arguments) {
  no_named(arguments, "cycler");
  if (arguments.positional.empty()) throw PyError(PyError::Type::runtime, "at least one item has to be provided");
  const Value items = rt.tuple(std::move(arguments.positional));
  auto cycler = rt.make<Cycler>(items.sequence().items.size() * sizeof(Value));
  cycler->items = items.sequence().items;
  cycler->depth = items.depth();
  return Value(Kind::cycler, std::move(cycler));
}

Value joiner_function(Runtime& rt, const Value&, Arguments& arguments) {
  const Bound args(arguments, "joiner", {"sep"});
  auto joiner = rt.make<Joiner>();
  joiner->separator = args.has(0) ? args[0] : rt.str(", ");
  joiner->depth = rt.tuple({joiner->separator}).depth();
  return Value(Kind::joiner, std::move(joiner));
}

Value raise_function(Runtime& rt, const Value&, Arguments& arguments) {
  const Bound args(arguments, "raise_exception", {"message"}, 1);
  throw PyError(PyError::Type::raised, to_text(rt, args[0]));
}

Value strftime_function(Runtime& rt, const Value&, Arguments& arguments) {
  const Bound args(arguments, "strftime_now", {"format"}, 1);
  if (!args[0].is_string()) type_error(std::string("strftime() argument 1 must be str, not ") + type_name(args[0]));
  return rt.str(format_time(rt.now, args[0].text()));
}

Value lipsum_function(Runtime&, const Value&, Arguments&) {
  throw PyError(PyError::Type::runtime, "lipsum is not supported in chat templates");
}

}  // namespace

Filter find_filter(std::string_view name) {
  static const auto all = [] {
    std::unordered_map<std::string_view, Filter> map;
    for (const auto table : {text_filters(), sequence_filters()}) {
      for (const NamedFilter& filter : table) map.emplace(filter.name, filter.call);
    }
    return map;
  }();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

Test find_test(std::string_view name) {
  const auto found = tests().find(name);
  return found == tests().end() ? nullptr : found->second;
}

const Globals& globals() {
  static const Globals all = [] {
    Globals map;
    const auto add = [&map](const char* name, Function::Call call) {
      auto function = std::make_shared<Function>();
      function->name = name;
      function->call = call;
      map.emplace(name, Value(Kind::function, std::move(function)));
    };
    add("range", range_function);
    add("dict", dict_function);
    add("namespace", namespace_function);
    add("cycler", cycler_function);
    add("joiner", joiner_function);
    add("lipsum", lipsum_function);
    add("raise_exception", raise_function);
    add("strftime_now", strftime_function);
    return map;
  }();
  return all;
}

}  // namespace sdx::text::jinja
