#pragma once
// Shared by all parts of the module: classes that hold a value of the engine, and functions in the form that Python calls.
// Everything here needs the GIL.

#include <memory>
#include <new>

#include "base/error.h"
#include "object.h"

namespace sdx::python {

// Instances of the classes that hold a T. Without a value when Python code makes one by itself.
template <class T>
struct Instance {
  PyObject_HEAD T* value;
};

template <class T>
inline PyTypeObject* class_of = nullptr;

template <class T>
T& value_of(PyObject* self) {
  if (PyObject_TypeCheck(self, class_of<T>) == 0 || reinterpret_cast<Instance<T>*>(self)->value == nullptr) {
    PyErr_SetString(PyExc_TypeError, "not an object that this module made");
    throw Raised();
  }
  return *reinterpret_cast<Instance<T>*>(self)->value;
}

template <class T>
Object instance_of(T value) {
  auto held = std::make_unique<T>(std::move(value));
  auto* instance = PyObject_New(Instance<T>, class_of<T>);
  if (instance == nullptr) throw Raised();
  instance->value = held.release();
  return Object::taken(reinterpret_cast<PyObject*>(instance));
}

template <class T>
void free_instance(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  {
    const Unlocked others;  // the last of a session waits for its providers
    delete reinterpret_cast<Instance<T>*>(self)->value;
  }
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

template <class T>
void make_class(const char* full_name, PyMethodDef* methods) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&free_instance<T>)}, {Py_tp_methods, methods}, {0, nullptr}};
  PyType_Spec spec{full_name, sizeof(Instance<T>), 0, Py_TPFLAGS_DEFAULT, slots};
  Object type = Object::taken(PyType_FromSpec(&spec));
  // Another thread may have come here while Python tidied up.
  if (class_of<T> == nullptr) class_of<T> = reinterpret_cast<PyTypeObject*>(type.release());
}

// A module may be made again: objects of both are of one class, which stays as long as the process.
template <class T>
void add_class(const Object& module, const char* name, const char* full_name, PyMethodDef* methods) {
  if (class_of<T> == nullptr) make_class<T>(full_name, methods);
  check(PyObject_SetAttrString(module.get(), name, reinterpret_cast<PyObject*>(class_of<T>)));
}

// A module with the functions of a list, which stays as long as the process. `name` is a literal.
template <PyMethodDef* Functions>
Object new_module(const char* name) {
  static PyModuleDef definition{PyModuleDef_HEAD_INIT, name, nullptr, -1, Functions, nullptr, nullptr, nullptr, nullptr};
  return Object::taken(PyModule_Create(&definition));
}

// Sets Python's error: one of the exception classes of sardonyx/_errors.py, which chooses by the code's name.
void raise(const Error& e);

// Runs `body` and turns C++ exceptions into Python's. Returns `failed` if there was one.
template <class R, class Body>
R guarded(R failed, const Body& body) noexcept {
  try {
    try {
      return body();
    } catch (const Error& e) {
      raise(e);
    }
  } catch (const Raised&) {  // by Python
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return failed;
}

// A C++ function as Python calls it: with itself (or the module) and a tuple.
template <auto Function>
PyObject* entry(PyObject* self, PyObject* arguments) noexcept {
  return guarded<PyObject*>(nullptr, [&] { return Function(self, arguments).release(); });
}

// The number of arguments, and the arguments, borrowed.
inline void expect_arguments(PyObject* arguments, Py_ssize_t count) {
  if (PyTuple_Size(arguments) == count) return;
  PyErr_Format(PyExc_TypeError, "expected %zd arguments, received %zd", count, PyTuple_Size(arguments));
  throw Raised();
}
inline PyObject* argument(PyObject* arguments, Py_ssize_t i) { return PyTuple_GetItem(arguments, i); }

}  // namespace sdx::python
