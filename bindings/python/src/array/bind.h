#pragma once
// Functions of C++ as Python's. One line binds one:
//
//   def<&mx::sum>("sum(a, /, axis=None, keepdims=False, *, stream=None)")
//
// The text is what help() and inspect.signature() show, and says how arguments may be passed and what is taken for those that are
// not; their types are those of the C++ function. A function whose last parameter is a StreamOrDevice is given `stream`.

#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "convert.h"
#include "dtype.h"

namespace sdx::python::arrays {

// How arguments find their places.
struct Signature {
  std::string text;  // "sum(a, /, …)\n--\n\n", as CPython wants it
  std::string name;
  std::vector<PyObject*> names;     // interned
  std::vector<PyObject*> defaults;  // null: must be given
  // Other names of keywords: "min|a_min" is shown as min, and may be called a_min.
  std::vector<std::pair<PyObject*, std::size_t>> aliases;
  Py_ssize_t positional_only = 0;
  Py_ssize_t positional = 0;  // how many may be passed by position
  Py_ssize_t rest = -1;       // the place of *arguments, or -1

  explicit Signature(const char* declared);
};

constexpr std::size_t kMostArguments = 20;

// *arguments as they were passed.
struct Rest {
  PyObject* const* items = nullptr;
  std::size_t count = 0;
};

// Borrowed references by place. `slots` has a place for each name; *arguments come to `rest`. Throws Raised (TypeError).
void place(const Signature& s, PyObject* const* arguments, Py_ssize_t count, PyObject* names, PyObject** slots, Rest& rest);

// Keeps what an argument was converted to. `Any` is the object as it is.
struct Any {
  PyObject* object;
};

// OverflowError for numbers beyond the range of int.
int exact_int(PyObject* object);
StreamOrDevice to_stream(PyObject* object);
std::vector<int> to_ints(PyObject* object);  // an int, or several
Shape to_shape(PyObject* object);

template <class T>
struct From {  // one axis or several, or none
  static T get(PyObject* o);
};
template <>
struct From<Any> {
  static Any get(PyObject* o) { return {o}; }
};
template <>
struct From<mx::array> {
  static mx::array get(PyObject* o) { return is_array(o) ? array_of(o) : expect_array_like(o); }
  static mx::array expect_array_like(PyObject* o);
};
template <>
struct From<bool> {
  static bool get(PyObject* o) { return o == Py_True || (o != Py_False && to_truth(o)); }
};
template <>
struct From<int> {
  static int get(PyObject* o) { return exact_int(o); }
};
template <>
struct From<std::int64_t> {
  static std::int64_t get(PyObject* o) { return to_integer(o); }
};
template <>
struct From<std::uint64_t> {
  static std::uint64_t get(PyObject* o) {
    const Object index = Object::taken(PyNumber_Index(o));
    const unsigned long long v = PyLong_AsUnsignedLongLongMask(index.get());
    if (PyErr_Occurred() != nullptr) throw Raised();
    return v;
  }
};
template <>
struct From<double> {
  static double get(PyObject* o) { return to_double(o); }
};
template <>
struct From<float> {
  static float get(PyObject* o) { return static_cast<float>(to_double(o)); }
};
template <>
struct From<std::string> {
  static std::string get(PyObject* o) { return to_text(o); }
};
template <>
struct From<Dtype> {
  static Dtype get(PyObject* o) { return to_dtype(o); }
};
template <>
struct From<StreamOrDevice> {
  static StreamOrDevice get(PyObject* o) { return o == Py_None ? StreamOrDevice() : to_stream(o); }
};
template <>
struct From<std::vector<int>> {
  static std::vector<int> get(PyObject* o) { return to_ints(o); }
};
template <>
struct From<Shape> {
  static Shape get(PyObject* o) { return to_shape(o); }
};
template <>
struct From<std::vector<mx::array>> {
  static std::vector<mx::array> get(PyObject* o) {
    if (is_array(o)) {  // along its first axis
      return to_list(Object::taken(PySequence_List(o)).get(), From<mx::array>::get);
    }
    return to_list(o, From<mx::array>::get);
  }
  template <class Make>
  static std::vector<mx::array> to_list(PyObject* o, const Make& make) {
    return sdx::python::to_list(o, make);
  }
};
template <class T>
struct From<std::optional<T>> {
  static std::optional<T> get(PyObject* o) {
    if (o == Py_None) return std::nullopt;
    return From<T>::get(o);
  }
};
template <class T>
T From<T>::get(PyObject* o) {
  return T(From<std::optional<std::vector<int>>>::get(o));
}
// A pair of ints where one int may stand for both.
template <>
struct From<std::pair<int, int>> {
  static std::pair<int, int> get(PyObject* o) {
    const std::vector<int> v = to_ints(o);
    if (v.size() == 1) return {v[0], v[0]};
    if (v.size() != 2) raise_value_error("expected one or two integers");
    return {v[0], v[1]};
  }
};
template <>
struct From<std::tuple<int, int, int>> {
  static std::tuple<int, int, int> get(PyObject* o) {
    const std::vector<int> v = to_ints(o);
    if (v.size() == 1) return {v[0], v[0], v[0]};
    if (v.size() != 3) raise_value_error("expected one or three integers");
    return {v[0], v[1], v[2]};
  }
};

inline Object to_python(mx::array v) { return wrap(std::move(v)); }
inline Object to_python(const std::vector<mx::array>& v) { return wrap_list(v); }
inline Object to_python(const Shape& v) { return shape_tuple(v); }
inline Object to_python(bool v) { return truth(v); }
inline Object to_python(double v) { return number(v); }
inline Object to_python(std::int64_t v) { return number(v); }
inline Object to_python(std::uint64_t v) { return number(v); }
inline Object to_python(Dtype v) { return Object::of(dtype_object(v)); }
inline Object to_python(Object v) { return v; }
template <class... T>
Object to_python(const std::tuple<T...>& v) {
  return std::apply([](const auto&... one) { return tuple(to_python(one)...); }, v);
}
template <class A, class B>
Object to_python(const std::pair<A, B>& v) {
  return tuple(to_python(v.first), to_python(v.second));
}

template <class F>
struct Caller;
template <class R, class... P>
struct Caller<R (*)(P...)> {
  static constexpr std::size_t count = sizeof...(P);
  template <std::size_t... I>
  static PyObject* call(R (*f)(P...), PyObject** slots, const Rest& rest, std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>) {
      f(one<std::remove_cvref_t<P>>(slots[I], rest)...);
      return Object::none().release();
    } else {
      return to_python(f(one<std::remove_cvref_t<P>>(slots[I], rest)...)).release();
    }
  }
  template <class T>
  static T one(PyObject* slot, const Rest& rest) {
    if constexpr (std::is_same_v<T, Rest>) {
      return rest;
    } else {
      return From<T>::get(slot);
    }
  }
};

// What a bound function needs to know at run time.
template <auto F, std::size_t First, std::size_t Last>
inline const Signature* signature_of = nullptr;

template <auto F, std::size_t First, std::size_t Last>
PyObject* bound(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) noexcept {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    using Call = Caller<decltype(+F)>;
    const Signature& s = *signature_of<F, First, Last>;
    PyObject* slots[kMostArguments];
    Rest rest;
    place(s, arguments, count, names, slots, rest);
    if constexpr (First < Last) {
      std::vector<Object> made;
      settle_weak(slots, First, Last, made);
      return Call::call(+F, slots, rest, std::make_index_sequence<Call::count>());
    } else {
      return Call::call(+F, slots, rest, std::make_index_sequence<Call::count>());
    }
  });
}

struct Definition {
  Signature* signature;
  PyCFunction function;
};

// `First` to `Last` (not included) are operands whose numbers take the type of the arrays among them.
template <auto F, std::size_t First = 0, std::size_t Last = 0>
Definition def(const char* declared) {
  using Call = Caller<decltype(+F)>;
  static_assert(Call::count <= kMostArguments);
  auto* s = new Signature(declared);  // as long as the process
  if (s->names.size() != Call::count) Py_FatalError(declared);
  signature_of<F, First, Last> = s;
  return {s, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&bound<F, First, Last>))};
}
// Two operands.
template <auto F>
Definition binary(const char* declared) {
  return def<F, 0, 2>(declared);
}

// The same as a method: the first argument is the array itself.
template <auto F>
inline const Signature* method_signature_of = nullptr;

template <auto F>
PyObject* bound_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) noexcept {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    using Call = Caller<decltype(+F)>;
    const Signature& s = *method_signature_of<F>;
    PyObject* slots[kMostArguments + 1];
    Rest rest;
    place(s, arguments, count, names, slots + 1, rest);
    slots[0] = self;
    return Call::call(+F, slots, rest, std::make_index_sequence<Call::count>());
  });
}

template <auto F>
Definition method(const char* declared) {
  using Call = Caller<decltype(+F)>;
  auto* s = new Signature(declared);
  if (s->names.size() + 1 != Call::count) Py_FatalError(declared);
  s->text = s->name + "($self, /" + (s->names.empty() ? "" : ", ") + s->text.substr(s->name.size() + 1);
  method_signature_of<F> = s;
  return {s, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&bound_method<F>))};
}

// Adds the functions to a module.
void add_functions(const Object& module, const std::vector<Definition>& definitions);
void add_submodule(const Object& module, const char* name, const char* full_name, const std::vector<Definition>& definitions);
// A table as Python wants it, with an empty entry at its end. It stays as long as the process.
PyMethodDef* method_table(const std::vector<Definition>& definitions);

}  // namespace sdx::python::arrays
