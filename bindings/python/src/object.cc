#include "object.h"

#include <algorithm>
#include <limits>

namespace sdx::python {

Object text(std::string_view s) {
  return Object::taken(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "surrogateescape"));
}

std::string to_text(PyObject* object) {
  if (PyUnicode_Check(object) == 0) {
    PyErr_Format(PyExc_TypeError, "expected str, received %R", object);
    throw Raised();
  }
  const Object bytes = Object::taken(PyUnicode_AsEncodedString(object, "utf-8", "surrogateescape"));
  char* data = nullptr;
  Py_ssize_t size = 0;
  check(PyBytes_AsStringAndSize(bytes.get(), &data, &size));
  return {data, static_cast<std::size_t>(size)};
}

std::int64_t to_integer(PyObject* object) {
  const Object index = Object::taken(PyNumber_Index(object));
  const long long v = PyLong_AsLongLong(index.get());
  if (v == -1 && PyErr_Occurred() != nullptr) throw Raised();
  return v;
}

bool to_truth(PyObject* object) {
  const int v = PyObject_IsTrue(object);
  check(v);
  return v != 0;
}

double to_double(PyObject* object) {
  const double v = PyFloat_AsDouble(object);
  if (PyErr_Occurred() != nullptr) throw Raised();
  return v;
}

int to_int(PyObject* object) {
  using Limits = std::numeric_limits<int>;
  return static_cast<int>(std::clamp<std::int64_t>(to_integer(object), Limits::min(), Limits::max()));
}

}  // namespace sdx::python
