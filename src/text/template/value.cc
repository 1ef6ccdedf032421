#include "text/template/value.h"

#include <algorithm>

#include "text/template/runtime.h"
#include "text/template/unicode.h"

namespace sdx::text::jinja {

void type_error(std::string message) { throw PyError(PyError::Type::type, std::move(message)); }
void value_error(std::string message) { throw PyError(PyError::Type::value, std::move(message)); }
void limit_error(std::string message) { throw PyError(PyError::Type::limit, std::move(message)); }

void Budget::reserve(std::size_t bytes) {
  if (bytes > max_live || live > max_live - bytes) {
    limit_error("the template needs more than " + std::to_string(max_live >> 20) + " MiB of memory");
  }
}

void Budget::too_long() const { limit_error("the template takes more than " + repr_int(static_cast<Int>(max_steps)) + " steps"); }

bool is_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 128; });
}

Int Range::size() const {
  if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
  return start > stop ? (start - stop - 1) / -step + 1 : 0;
}

std::string UndefinedInfo::message() const {
  if (!hint.empty()) return hint;
  if (unsafe) return "access to attribute " + name + " of '" + owner + "' object is unsafe.";
  if (!owner) return name + " is undefined";
  if (element) return std::string(owner) + " has no element " + name;
  return "'" + std::string(owner) + "' has no attribute " + name;
}

const char* type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined: return "Undefined";
    case Kind::none: return "NoneType";
    case Kind::boolean: return "bool";
    case Kind::integer: return "int";
    case Kind::real: return "float";
    case Kind::string: return value.str().markup ? "Markup" : "str";
    case Kind::list: return "list";
    case Kind::tuple: return value.sequence().group ? "_GroupTuple" : "tuple";
    case Kind::dict: return "dict";
    case Kind::range: return "range";
    case Kind::view: {
      const View::What what = value.object<View>().what;
      return what == View::What::keys ? "dict_keys" : what == View::What::values ? "dict_values" : "dict_items";
    }
    case Kind::iterator: return value.object<Iterator>().type;
    case Kind::name_space: return "Namespace";
    case Kind::function: return value.object<Function>().method ? "builtin_function_or_method" : "function";
    case Kind::macro: return "Macro";
    case Kind::loop: return "LoopContext";
    case Kind::cycler: return "Cycler";
    case Kind::joiner: return "Joiner";
  }
  return "object";
}

const char* owner_name(const Value& value) {
  switch (value.kind()) {
    case Kind::none: return "None";
    case Kind::boolean: return "bool object";
    case Kind::integer: return "int object";
    case Kind::real: return "float object";
    case Kind::string: return value.str().markup ? "markupsafe.Markup object" : "str object";
    case Kind::list: return "list object";
    case Kind::tuple: return "tuple object";
    case Kind::dict: return "dict object";
    case Kind::range: return "range object";
    case Kind::name_space: return "jinja2.utils.Namespace object";
    case Kind::macro: return "jinja2.runtime.Macro object";
    case Kind::loop: return "jinja2.runtime.LoopContext object";
    default: return type_name(value);
  }
}

bool truthy(Runtime& rt, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none: return false;
    case Kind::boolean:
    case Kind::integer: return value.as_int() != 0;
    case Kind::real: return value.as_real() != 0;
    case Kind::string: return !value.text().empty();
    case Kind::list:
    case Kind::tuple: return !value.sequence().items.empty();
    case Kind::dict: return !value.dict().items.empty();
    case Kind::range: return value.object<Range>().size() != 0;
    case Kind::view: return !value.object<View>().of.dict().items.empty();
    case Kind::loop: return length(rt, value).value_or(0) != 0;
    default: return true;
  }
}

namespace {

std::uint32_t nesting(const Values& items) {
  std::uint32_t depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  if (depth >= max_nesting) limit_error("values are nested more than " + std::to_string(max_nesting) + " deep");
  return depth + 1;
}

}  // namespace

Value Runtime::str(std::string text, bool markup) {
  work(text.size());
  auto object = make<Str>(text.size());
  object->ascii = is_ascii(text);
  object->text = std::move(text);
  object->markup = markup;
  return Value(Kind::string, std::move(object));
}

Value Runtime::list(Values items) {
  step(1 + items.size() / 4);
  auto object = make<Sequence>(items.size() * sizeof(Value));
  object->depth = nesting(items);
  object->items = std::move(items);
  return Value(Kind::list, std::move(object));
}

Value Runtime::tuple(Values items) {
  Value value = list(std::move(items));
  return Value(Kind::tuple, value.pointer());
}

Value Runtime::dict(std::vector<std::pair<Value, Value>>&& items) {
  step(1 + items.size());
  auto object = make<Dict>(items.size() * (2 * sizeof(Value) + 32));
  const bool indexed = items.size() > 8;
  std::uint32_t depth = 0;
  for (auto& [key, value] : items) {
    depth = std::max({depth, key.depth(), value.depth()});
    const std::size_t hashed = key.is_string() && !indexed ? 0 : hash(*this, key);  // lists cannot be keys
    if (const Value* present = find(*this, *object, key)) {
      *const_cast<Value*>(present) = std::move(value);
      continue;
    }
    if (indexed) object->index.emplace(hashed, object->items.size());
    object->items.emplace_back(std::move(key), std::move(value));
  }
  if (depth >= max_nesting) limit_error("values are nested more than " + std::to_string(max_nesting) + " deep");
  object->depth = depth + 1;
  return Value(Kind::dict, std::move(object));
}

Value Runtime::iterator(Values items, const char* type, std::exception_ptr error) {
  step(1 + items.size() / 4);
  auto object = make<Iterator>(items.size() * sizeof(Value));
  object->depth = nesting(items);
  object->items = std::move(items);
  object->type = type;
  object->error = std::move(error);
  return Value(Kind::iterator, std::move(object));
}

Value Runtime::undefined(std::string hint) {
  auto object = make<UndefinedInfo>(hint.size());
  object->hint = std::move(hint);
  return Value(Kind::undefined, std::move(object));
}

Value Runtime::undefined_name(std::string_view name) {
  auto object = make<UndefinedInfo>(name.size());
  append_quoted(object->name, name);
  return Value(Kind::undefined, std::move(object));
}

Value Runtime::missing(const Value& owner, const Value& key, bool unsafe) {
  auto object = make<UndefinedInfo>(32);
  object->name = key.is_string() && key.text().size() > 200 ? "'" + key.text().substr(0, byte_offset(key.text(), 60)) + "…'"
                                                            : repr(*this, key);
  object->owner = unsafe ? type_name(owner) : owner_name(owner);
  object->element = !key.is_string();
  object->unsafe = unsafe;
  return Value(Kind::undefined, std::move(object));
}

Value Runtime::method(const char* name, const Value& self, Function::Call call) {
  auto object = make<Function>();
  object->name = name;
  object->self = self;
  object->method = true;
  object->call = call;
  object->depth = self.depth() + 1;
  if (object->depth > max_nesting) limit_error("values are nested more than " + std::to_string(max_nesting) + " deep");
  return Value(Kind::function, std::move(object));
}

void Runtime::grow(Object& object, std::size_t bytes) {
  budget.reserve(bytes);
  object.charged += bytes;
  budget.live += bytes;
}

Bound::Bound(Arguments& arguments, const char* function, std::initializer_list<const char*> names, std::size_t required)
    : values_(names.size()) {
  if (arguments.positional.size() > names.size()) {
    type_error(std::string(function) + "() takes at most " + std::to_string(names.size()) + " arguments, but " +
               std::to_string(arguments.positional.size()) + " were given");
  }
  for (std::size_t i = 0; i < arguments.positional.size(); i++) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto* found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) type_error(std::string(function) + "() got an unexpected keyword argument '" + name + "'");
    const Value*& place = values_[static_cast<std::size_t>(found - names.begin())];
    if (place) type_error(std::string(function) + "() got multiple values for argument '" + name + "'");
    place = &value;
  }
  for (std::size_t i = 0; i < required; i++) {
    if (!values_[i]) type_error(std::string(function) + "() missing required argument '" + std::data(names)[i] + "'");
  }
}

void no_arguments(Arguments& arguments, const char* function) { static_cast<void>(Bound(arguments, function, {})); }

void no_named(const Arguments& arguments, const char* function) {
  if (!arguments.named.empty()) type_error(std::string(function) + "() takes no keyword arguments");
}

}  // namespace sdx::text::jinja
