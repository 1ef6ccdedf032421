#pragma once
// Values as Python has them, for templates: immutable but for namespaces, shared by reference counts. An object that a rendering
// makes counts against the rendering's memory; how deeply objects hold each other is limited, so that taking them apart needs
// little stack.

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sdx::text::jinja {

__extension__ typedef __int128 Int;
__extension__ typedef unsigned __int128 UInt;

enum class Kind : std::uint8_t {
  undefined,
  none,
  boolean,
  integer,
  real,
  string,
  list,
  tuple,
  dict,
  range,
  view,      // dict.keys(), .values(), .items()
  iterator,  // what a filter yields: consumed once
  name_space,
  function,
  macro,
  loop,
  cycler,
  joiner,
};

// The exceptions that Python would raise.
class PyError : public std::exception {
 public:
  enum class Type {
    type,
    value,
    key_or_index,
    zero_division,
    overflow,
    undefined,
    runtime,
    security,
    attribute,
    syntax,
    raised,
    limit
  };
  PyError(Type type, std::string message) : type_(type), message_(std::move(message)) {}
  Type type() const { return type_; }
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const { return message_; }

 private:
  Type type_;
  std::string message_;
};

[[noreturn]] void type_error(std::string message);
[[noreturn]] void value_error(std::string message);
[[noreturn]] void limit_error(std::string message);

// The resources that one rendering may use.
struct Budget {
  std::uint64_t steps = 0, max_steps = 10'000'000;
  std::size_t live = 0, max_live = std::size_t{256} << 20;  // bytes of values

  void step(std::uint64_t n = 1) {
    steps += n;
    if (steps > max_steps) too_long();
  }
  void reserve(std::size_t bytes);  // throws where so much more would be too much

 private:
  [[noreturn]] void too_long() const;
};

constexpr std::uint32_t max_nesting = 500;  // lists in lists …

struct Object {
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() {
    if (budget) budget->live -= charged;
  }
  Budget* budget = nullptr;  // outlives the object; null for what the template itself holds
  std::size_t charged = 0;
  std::uint32_t depth = 1;
};

struct Str;
struct Sequence;
struct Dict;
struct Range;
struct View;
struct Iterator;
struct Namespace;
struct Function;
struct Macro;
struct Loop;
struct Cycler;
struct Joiner;
struct UndefinedInfo;

class Value {
 public:
  Value() : kind_(Kind::none), int_(0) {}
  static Value boolean(bool b) { return Value(Kind::boolean, b ? 1 : 0); }
  static Value integer(Int i) { return Value(Kind::integer, i); }
  static Value real(double d) {
    Value value(Kind::real, 0);
    value.real_ = d;
    return value;
  }
  Value(Kind kind, std::shared_ptr<Object> object) : kind_(kind), int_(0), object_(std::move(object)) {}

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return kind_ == Kind::undefined; }
  bool is_none() const { return kind_ == Kind::none; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_integral() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  bool is_number() const { return is_integral() || kind_ == Kind::real; }
  bool is_sequence() const { return kind_ == Kind::list || kind_ == Kind::tuple; }

  Int as_int() const { return int_; }  // integers and booleans
  double as_real() const { return kind_ == Kind::real ? real_ : static_cast<double>(int_); }
  const Str& str() const;
  const std::string& text() const;
  const Sequence& sequence() const;
  const Dict& dict() const;
  template <class T>
  T& object() const {
    return static_cast<T&>(*object_);
  }
  const std::shared_ptr<Object>& pointer() const { return object_; }
  std::uint32_t depth() const { return object_ ? object_->depth : 0; }

 private:
  Value(Kind kind, Int i) : kind_(kind), int_(i) {}

  Kind kind_;
  union {
    Int int_;
    double real_;
  };
  std::shared_ptr<Object> object_;
};

using Values = std::vector<Value>;

struct Str : Object {
  std::string text;  // UTF-8
  bool ascii = true;
  bool markup = false;  // markupsafe.Markup
};

struct Sequence : Object {  // list, tuple
  Values items;
  bool group = false;  // a tuple of groupby, with .grouper and .list
};

struct Dict : Object {
  std::vector<std::pair<Value, Value>> items;               // in order of insertion
  std::unordered_multimap<std::size_t, std::size_t> index;  // hash to place; empty for small ones
};

struct Range : Object {
  Int start = 0, stop = 0, step = 1;
  Int size() const;
};

struct View : Object {
  enum class What { keys, values, items } what = What::keys;
  Value of;
};

// Filled when it is made. What went wrong on the way is raised when the consumer gets there, as a generator would.
struct Iterator : Object {
  Values items;
  std::size_t at = 0;
  std::exception_ptr error;
  const char* type = "generator";
};

struct Namespace : Object {
  std::vector<std::pair<std::string, Value>> attributes;
};

struct Cycler : Object {
  Values items;
  std::size_t at = 0;
};

struct Joiner : Object {
  Value separator;
  bool used = false;
};

struct UndefinedInfo : Object {
  std::string hint;             // the whole message, where not empty
  std::string name;             // as repr() prints it
  const char* owner = nullptr;  // type of the object that lacks it; null: a variable
  bool element = false;         // a key that is not a string
  bool unsafe = false;          // a SecurityError when used
  std::string message() const;
};

class Runtime;

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Function : Object {
  using Call = Value (*)(Runtime&, const Value& self, Arguments&);
  const char* name = "";
  Value self;  // of methods
  bool method = false;
  Call call = nullptr;
};

inline const std::string& Value::text() const { return object<Str>().text; }
inline const Str& Value::str() const { return object<Str>(); }
inline const Sequence& Value::sequence() const { return object<Sequence>(); }
inline const Dict& Value::dict() const { return object<Dict>(); }

const char* type_name(const Value& value);   // Python's: "int", "NoneType", …
const char* owner_name(const Value& value);  // as messages of undefined values have it: "str object", "None"
bool truthy(Runtime& rt, const Value& value);
bool is_ascii(std::string_view text);

}  // namespace sdx::text::jinja
