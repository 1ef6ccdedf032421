#pragma once
// Python's objects, through the limited part of its C interface alone (Py_LIMITED_API): one build then serves every Python
// from 3.9 on. Everything here needs the GIL.

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdx::python {

// Thrown where Python's error indicator is set.
struct Raised {};

// Runs a function of Python that waits for the GIL. Once the interpreter is ending, Python up to 3.13 ends threads that wait, by
// forced unwinding: that would end the process at the first noexcept function, or run destructors that need the GIL. Such a
// thread stays here instead, as it does from 3.14 on.
template <class Wait>
auto or_stay(const Wait& wait) noexcept {
  try {
    return wait();
  } catch (...) {
    for (;;) ::pause();
  }
}

// A reference that is held.
class Object {
 public:
  Object() = default;
  // Takes over a new reference. Null, which Python's functions return for an error: throws Raised.
  static Object taken(PyObject* reference) {
    if (reference == nullptr) throw Raised();
    return Object(reference);
  }
  static Object of(PyObject* borrowed) {
    Py_XINCREF(borrowed);
    return Object(borrowed);
  }
  static Object none() { return of(Py_None); }
  Object(const Object& other) : held_(other.held_) { Py_XINCREF(held_); }
  Object(Object&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  Object& operator=(Object other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~Object() { Py_XDECREF(held_); }

  PyObject* get() const { return held_; }
  PyObject* release() { return std::exchange(held_, nullptr); }
  bool is_none() const { return held_ == Py_None; }
  explicit operator bool() const { return held_ != nullptr; }

  Object attribute(const char* name) const { return taken(PyObject_GetAttrString(held_, name)); }
  template <class... Arguments>
  Object call(const Arguments&... arguments) const {
    return taken(or_stay([&] { return PyObject_CallFunctionObjArgs(held_, arguments.get()..., nullptr); }));
  }

 private:
  explicit Object(PyObject* owned) : held_(owned) {}
  PyObject* held_ = nullptr;
};

// Throws Raised where a function that answers -1 for an error did.
inline void check(int answer) {
  if (answer == -1) throw Raised();
}

// Converts from C++ to Python. Text that is not UTF-8 passes in both directions as Python's file names do (surrogateescape).
Object text(std::string_view s);
inline Object number(std::int64_t v) { return Object::taken(PyLong_FromLongLong(v)); }
inline Object number(std::uint64_t v) { return Object::taken(PyLong_FromUnsignedLongLong(v)); }
inline Object number(double v) { return Object::taken(PyFloat_FromDouble(v)); }
template <class T>
Object whole(T v) {
  return number(static_cast<std::int64_t>(v));
}
inline Object truth(bool v) { return Object::of(v ? Py_True : Py_False); }
inline Object new_list() { return Object::taken(PyList_New(0)); }
inline Object new_dict() { return Object::taken(PyDict_New()); }
inline void append(const Object& list, const Object& item) { check(PyList_Append(list.get(), item.get())); }
inline void set(const Object& dict, const char* key, const Object& value) {
  check(PyDict_SetItemString(dict.get(), key, value.get()));
}
template <class... Items>
Object tuple(const Items&... items) {
  return Object::taken(PyTuple_Pack(sizeof...(items), items.get()...));
}
template <class Range, class Make>
Object list_of(const Range& range, const Make& make) {
  Object list = new_list();
  for (const auto& item : range) append(list, make(item));
  return list;
}
inline Object texts(const std::vector<std::string>& items) {
  return list_of(items, [](const std::string& s) { return text(s); });
}

// Converts from Python to C++. Throws Raised, with a TypeError, for other types.
std::string to_text(PyObject* object);
std::int64_t to_integer(PyObject* object);
bool to_truth(PyObject* object);
double to_double(PyObject* object);
// The nearest int.
int to_int(PyObject* object);
template <class Make>
auto to_list(PyObject* sequence, const Make& make) {
  std::vector<decltype(make(sequence))> items;
  const Py_ssize_t count = PySequence_Size(sequence);
  if (count < 0) throw Raised();
  for (Py_ssize_t i = 0; i < count; ++i) items.push_back(make(Object::taken(PySequence_GetItem(sequence, i)).get()));
  return items;
}
template <class First, class Second>
auto to_pair(PyObject* sequence, const First& first, const Second& second) {
  const Object a = Object::taken(PySequence_GetItem(sequence, 0)), b = Object::taken(PySequence_GetItem(sequence, 1));
  return std::pair(first(a.get()), second(b.get()));
}
// use(name, value) for each item of a dict.
template <class Use>
void each_item(PyObject* dict, const Use& use) {
  const Object items = Object::taken(PyDict_Items(dict));
  for (Py_ssize_t i = 0; i < PyList_Size(items.get()); ++i) {
    PyObject* item = PyList_GetItem(items.get(), i);
    use(to_text(PyTuple_GetItem(item, 0)), PyTuple_GetItem(item, 1));
  }
}

// How many of the scopes below are open: not 0 for a thread of Python's that does not hold the GIL.
inline thread_local int unlocked_scopes = 0;

// Lets other threads of Python go on while this one computes.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) { ++unlocked_scopes; }
  ~Unlocked() {
    or_stay([&] { PyEval_RestoreThread(state_); });
    --unlocked_scopes;
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Returns compute()'s result; other threads of Python run meanwhile.
template <class Compute>
auto unlocked(const Compute& compute) {
  const Unlocked others;
  return compute();
}

}  // namespace sdx::python
