#pragma once
// Python's `array`: an object that holds a C++ array. Everything here needs the GIL.

#include <sdx/array.hpp>

#include "../entry.h"

// Hidden by the headers of Python 3.9's limited interface, but there since 3.7, and part of the stable interface since 3.10.
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif

namespace sdx::python::arrays {

namespace mx = sdx::array;
using mx::Dtype;
using mx::StreamOrDevice;

struct Handle {
  PyObject_HEAD PyObject* weak;
  mx::array value;  // assignments in place (a += 1, a[0] = 1) put another here
};

inline PyTypeObject* array_type = nullptr;

inline bool is_array(PyObject* object) {
  return Py_TYPE(object) == array_type || PyType_IsSubtype(Py_TYPE(object), array_type) != 0;
}
inline mx::array& array_of(PyObject* handle) { return reinterpret_cast<Handle*>(handle)->value; }
// The array of an argument that must be one: TypeError otherwise.
mx::array& expect_array(PyObject* object);

Object wrap(mx::array value);
Object wrap_list(const std::vector<mx::array>& values);
Object wrap_tuple(const std::vector<mx::array>& values);
Object shape_tuple(const Shape& shape);

// Computes without the GIL; Ctrl-C ends the wait.
void evaluate(std::span<const mx::array> values);
const Tensor& tensor_of(const mx::array& value);
// Whether Python may write to the memory of `value`, a copy of the array in a handle: only if no view, no other array and no
// operation refers to this memory.
bool is_alone(const mx::array& value);

// Makes the type.
void add_array_type(const Object& module);
// Slots of the number protocol, and of indexing.
std::vector<PyType_Slot> number_slots();
std::vector<PyType_Slot> index_slots();
std::vector<PyType_Slot> buffer_slots();

[[noreturn]] inline void raise_type_error(const std::string& message) {
  PyErr_SetString(PyExc_TypeError, message.c_str());
  throw Raised();
}
[[noreturn]] inline void raise_value_error(const std::string& message) {
  PyErr_SetString(PyExc_ValueError, message.c_str());
  throw Raised();
}
[[noreturn]] inline void raise_overflow_error(const std::string& message) {
  PyErr_SetString(PyExc_OverflowError, message.c_str());
  throw Raised();
}
std::string class_name(PyObject* object);

}  // namespace sdx::python::arrays
