#include "bind.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include <fmt/format.h>

namespace sdx::python::arrays {
namespace {

// "(a, b=(1, 2))" without the brackets, cut at the commas that are in no brackets.
std::vector<std::string> parts_of(const std::string& inside) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (const char c : inside) {
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.push_back(std::exchange(part, {}));
    } else if (c != ' ' || !part.empty()) {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

PyObject* literal(const std::string& text) {
  if (text == "None") return Object::none().release();
  if (text == "True" || text == "False") return truth(text == "True").release();
  const Object code = Object::taken(Py_CompileString(text.c_str(), "<default>", Py_eval_input));
  const Object names = new_dict();
  return Object::taken(PyEval_EvalCode(code.get(), names.get(), names.get())).release();
}

}  // namespace

Signature::Signature(const char* declared) {
  const std::string whole = declared;
  const std::size_t open = whole.find('(');
  name = whole.substr(0, open);
  std::string shown;
  bool keywords_only = false;
  for (const std::string& part : parts_of(whole.substr(open + 1, whole.size() - open - 2))) {
    shown += (shown.empty() ? "" : ", ") + part;
    if (part == "/") {
      positional_only = static_cast<Py_ssize_t>(names.size());
      continue;
    }
    if (part[0] == '*') {
      keywords_only = true;
      if (part == "*") continue;
      rest = static_cast<Py_ssize_t>(names.size());
      names.push_back(PyUnicode_InternFromString(part.c_str() + 1));
      defaults.push_back(Object::none().release());
      continue;
    }
    const std::size_t equals = part.find('=');
    std::string own = part.substr(0, equals);
    if (const std::size_t bar = own.find('|'); bar != std::string::npos) {
      aliases.emplace_back(PyUnicode_InternFromString(own.substr(bar + 1).c_str()), names.size());
      shown.erase(shown.size() - part.size() + bar, own.size() - bar);
      own.resize(bar);
    }
    names.push_back(PyUnicode_InternFromString(own.c_str()));
    defaults.push_back(equals == std::string::npos ? nullptr : literal(part.substr(equals + 1)));
    if (!keywords_only) positional = static_cast<Py_ssize_t>(names.size());
  }
  text = name + "(" + shown + ")\n--\n\n";
}

namespace {

// The place of a keyword, or -1.
std::ptrdiff_t find_keyword(const Signature& s, PyObject* keyword) {
  const auto first = static_cast<std::size_t>(s.positional_only);
  for (std::size_t i = first; i < s.names.size(); ++i) {
    if (s.names[i] == keyword) return static_cast<std::ptrdiff_t>(i);
  }
  for (std::size_t i = first; i < s.names.size(); ++i) {  // a name that is not interned
    if (PyUnicode_Compare(s.names[i], keyword) == 0) return static_cast<std::ptrdiff_t>(i);
  }
  for (const auto& [alias, i] : s.aliases) {
    if (PyUnicode_Compare(alias, keyword) == 0) return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}

[[noreturn]] void refuse_count(const Signature& s, Py_ssize_t count) {
  raise_type_error(fmt::format("{}() takes at most {} positional arguments, received {}", s.name, s.positional, count));
}

void place_keywords(const Signature& s, PyObject* const* values, PyObject* names, PyObject** slots) {
  const Py_ssize_t count = PyTuple_Size(names);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const keyword = PyTuple_GetItem(names, i);
    const std::ptrdiff_t at = find_keyword(s, keyword);
    if (at < 0 || at == s.rest) {
      raise_type_error(
          fmt::format("{}() has no argument '{}': {}", s.name, to_text(keyword), s.text.substr(0, s.text.find('\n'))));
    }
    if (slots[at] != nullptr) raise_type_error(fmt::format("{}(): '{}' is given twice", s.name, to_text(keyword)));
    slots[at] = values[i];
  }
}

}  // namespace

void place(const Signature& s, PyObject* const* arguments, Py_ssize_t count, PyObject* names, PyObject** slots, Rest& rest) {
  const std::size_t places = s.names.size();
  if (count > s.positional && s.rest < 0) refuse_count(s, count);
  const auto taken = static_cast<std::size_t>(std::min(count, s.positional));
  for (std::size_t i = 0; i < taken; ++i) slots[i] = arguments[i];
  for (std::size_t i = taken; i < places; ++i) slots[i] = nullptr;
  if (s.rest >= 0) rest = {arguments + taken, static_cast<std::size_t>(count) - taken};
  if (names != nullptr) place_keywords(s, arguments + count, names, slots);
  for (std::size_t i = taken; i < places; ++i) {
    if (slots[i] != nullptr) continue;
    slots[i] = s.defaults[i];
    if (slots[i] == nullptr) raise_type_error(fmt::format("{}(): '{}' is missing", s.name, to_text(s.names[i])));
  }
}

mx::array From<mx::array>::expect_array_like(PyObject* o) {
  if (!is_operand(o)) raise_type_error("expected an array, received " + class_name(o));
  return to_array(o);
}

int exact_int(PyObject* object) {
  const std::int64_t v = to_integer(object);
  if (v < std::numeric_limits<int>::min() || v > std::numeric_limits<int>::max()) {
    PyErr_SetString(PyExc_OverflowError, fmt::format("expected an integer of 32 bits, received {}", v).c_str());
    throw Raised();
  }
  return static_cast<int>(v);
}

StreamOrDevice to_stream(PyObject* object) {
  if (PyObject_HasAttrString(object, "_place") == 0)
    raise_type_error("expected a stream or a device, received " + class_name(object));
  // (whether it is a stream, its number, the device's type, the device's number)
  const std::vector<std::int64_t> v = sdx::python::to_list(Object::of(object).attribute("_place").get(), to_integer);
  if (v.size() != 4) raise_type_error("expected a stream or a device, received " + class_name(object));
  const mx::Device device{v[2] == 0 ? mx::Device::Type::cpu : mx::Device::Type::gpu, static_cast<int>(v[3])};
  if (v[0] != 0) return mx::Stream{static_cast<int>(v[1]), device};
  return device;
}

std::vector<int> to_ints(PyObject* object) {
  if (PyIndex_Check(object)) return {exact_int(object)};
  return sdx::python::to_list(object, exact_int);
}

Shape to_shape(PyObject* object) {
  if (PyIndex_Check(object)) return {to_integer(object)};
  return sdx::python::to_list(object, to_integer);
}

PyMethodDef* method_table(const std::vector<Definition>& definitions) {
  auto* table = new std::vector<PyMethodDef>();  // Python keeps pointers to it
  for (const Definition& d : definitions) {
    table->push_back({d.signature->name.c_str(), d.function, METH_FASTCALL | METH_KEYWORDS, d.signature->text.c_str()});
  }
  table->push_back({nullptr, nullptr, 0, nullptr});
  return table->data();
}

void add_functions(const Object& module, const std::vector<Definition>& definitions) {
  check(PyModule_AddFunctions(module.get(), method_table(definitions)));
}

void add_submodule(const Object& module, const char* name, const char* full_name, const std::vector<Definition>& definitions) {
  const Object made = Object::taken(PyModule_New(full_name));
  add_functions(made, definitions);
  check(PyObject_SetAttrString(module.get(), name, made.get()));
}

}  // namespace sdx::python::arrays
