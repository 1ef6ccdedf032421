#pragma once
// One rendering: its limits, the values it makes, and calls. For operators, filters and methods.

#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "text/template/value.h"

namespace sdx::text::jinja {

class Interpreter;

struct Now {
  std::tm time{};
  long microseconds = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  Budget budget;
  Now now;

  void step(std::uint64_t n = 1) { budget.step(n); }
  // Counts bytes that are copied or examined.
  void work(std::size_t bytes) { budget.step(1 + bytes / 64); }

  Value str(std::string text, bool markup = false);
  Value list(Values items);
  Value tuple(Values items);
  Value dict(
      std::vector<std::pair<Value, Value>>&& items);  // a later pair replaces the value of an earlier one with the same key
  Value iterator(Values items, const char* type = "generator", std::exception_ptr error = nullptr);
  Value undefined(std::string hint);
  Value undefined_name(std::string_view name);
  Value missing(const Value& owner, const Value& key, bool unsafe = false);  // neither attribute nor element
  Value method(const char* name, const Value& self, Function::Call call);
  // Counts an object that was just filled.
  template <class T>
  std::shared_ptr<T> make(std::size_t bytes = 0) {
    budget.reserve(bytes + sizeof(T));
    auto object = std::make_shared<T>();
    object->budget = &budget;
    object->charged = bytes + sizeof(T);
    budget.live += object->charged;
    return object;
  }
  void grow(Object& object, std::size_t bytes);

  virtual Value call(const Value& function, Arguments arguments) = 0;
  virtual Value call_filter(const Value& name, Value value, Arguments arguments) = 0;
  virtual bool call_test(const Value& name, Value value, Arguments arguments) = 0;
  virtual std::shared_ptr<Namespace> make_namespace() = 0;

  // Limits the nesting of calls and values, to protect C++'s stack.
  std::uint32_t depth = 0;
};

// One level deeper while it lives.
class Deeper {
 public:
  explicit Deeper(Runtime& rt, std::uint32_t by = 1) : rt_(rt), by_(by) {
    rt.depth += by;
    if (rt.depth > 2000) {
      rt.depth -= by;
      limit_error("nested too deeply");
    }
  }
  ~Deeper() { rt_.depth -= by_; }
  Deeper(const Deeper&) = delete;

 private:
  Runtime& rt_;
  std::uint32_t by_;
};

// ---- Text (text.cc)
std::string to_text(Runtime& rt, const Value& value);  // str()
void append_text(Runtime& rt, std::string& to, const Value& value);
std::string repr(Runtime& rt, const Value& value);
void append_quoted(std::string& to, std::string_view text);  // repr of a string
std::string escape_html(std::string_view text);
Value escaped(Runtime& rt, const Value& value);  // markupsafe.escape
std::string repr_int(Int value);
std::string repr_real(double value);
std::string to_json(Runtime& rt, const Value& value, const Value& indent, const Value& item_separator, const Value& key_separator,
                    bool sort_keys, bool ascii);

// ---- Comparing (compare.cc)
bool equal(Runtime& rt, const Value& a, const Value& b);
bool identical(const Value& a, const Value& b);
bool less(Runtime& rt, const Value& a, const Value& b, const char* op = "<");
enum class Comparison { eq, ne, lt, le, gt, ge, in, not_in };
bool compare(Runtime& rt, Comparison op, const Value& a, const Value& b);
bool contains(Runtime& rt, const Value& container, const Value& item);
std::size_t hash(Runtime& rt, const Value& value);  // throws for lists and dicts
const Value* find(Runtime& rt, const Dict& dict, const Value& key);
const Value* find(const Dict& dict, std::string_view key);

// ---- Arithmetic (arithmetic.cc)
enum class Binary { add, sub, mul, div, floordiv, mod, pow };
Value binary(Runtime& rt, Binary op, const Value& a, const Value& b);
Value negate(Runtime& rt, const Value& a);
Value plus(Runtime& rt, const Value& a);
Value slice(Runtime& rt, const Value& of, const Value& start, const Value& stop, const Value& step);
Int index_of(const Value& value);  // where Python wants an integer
double real_of(const Value& value);

// ---- Containers (access.cc)
Value get_attribute(Runtime& rt, const Value& of, std::string_view name);
Value get_item(Runtime& rt, const Value& of, const Value& key);
bool iterable(const Value& value);
// All that iteration gives; an iterator is used up.
Values elements(Runtime& rt, const Value& value);
std::optional<Int> length(Runtime& rt, const Value& value);  // len(); nothing where Python has none
// The attribute of a Python object (a method, mostly), or nothing.
std::optional<Value> python_attribute(Runtime& rt, const Value& of, std::string_view name);
std::optional<Function::Call> string_method(std::string_view name, const char*& canonical);
bool modifies(const Value& of, std::string_view name);
Value replaced(Runtime& rt, const Value& self, const std::string& old, const std::string& by, Int limit);  // limit < 0: all
std::string justified(Runtime& rt, const Value& self, Int width, const std::string& fill, char how);       // how: one of < ^ >
bool all_upper(Runtime& rt, std::string_view text);                                                        // str.isupper
bool all_lower(Runtime& rt, std::string_view text);

// ---- Formatting (format_*.cc)
Value format_percent(Runtime& rt, const Value& format, const Value& arguments);
std::string format_braces(Runtime& rt, const Value& format, const Arguments& arguments);
std::string format_spec(Runtime& rt, const Value& value, std::string_view spec);
std::string format_time(const Now& now, std::string_view format);

// ---- Filters, tests, globals
using Filter = Value (*)(Runtime&, Value& value, Arguments&);
using Test = bool (*)(Runtime&, const Value& value, Arguments&);
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);
using Globals = std::map<std::string, Value, std::less<>>;
const Globals& globals();

// Arguments by place and by name, bound as in Python; nothing for those that were not given.
class Bound {
 public:
  Bound(Arguments& arguments, const char* function, std::initializer_list<const char*> names, std::size_t required = 0);
  bool has(std::size_t i) const { return values_[i] != nullptr; }
  const Value& operator[](std::size_t i) const { return *values_[i]; }
  Value get(std::size_t i, const Value& otherwise = {}) const { return values_[i] ? *values_[i] : otherwise; }
  bool flag(Runtime& rt, std::size_t i, bool otherwise = false) const { return values_[i] ? truthy(rt, *values_[i]) : otherwise; }

 private:
  std::vector<const Value*> values_;
};
void no_arguments(Arguments& arguments, const char* function);
void no_named(const Arguments& arguments, const char* function);

}  // namespace sdx::text::jinja
