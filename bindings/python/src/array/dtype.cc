#include "dtype.h"

#include <array>

namespace sdx::python::arrays {
namespace {

struct DtypeObject {
  PyObject_HEAD Dtype dtype;
};

PyTypeObject* dtype_type = nullptr;
std::array<PyObject*, kDataTypeCount> objects{};
PyObject* prefix = nullptr;  // of the types' names when they are printed

constexpr Dtype kTypes[] = {Dtype::boolean, Dtype::uint8,   Dtype::uint16,   Dtype::uint32,    Dtype::uint64,
                            Dtype::int8,    Dtype::int16,   Dtype::int32,    Dtype::int64,     Dtype::float16,
                            Dtype::float32, Dtype::float64, Dtype::bfloat16, Dtype::complex64, Dtype::complex128};

Dtype of(PyObject* self) { return reinterpret_cast<DtypeObject*>(self)->dtype; }

Object name_of(PyObject* self) { return text(of(self) == Dtype::boolean ? "bool" : name(of(self))); }

PyObject* repr(PyObject* self) {
  return guarded<PyObject*>(nullptr, [&] { return PyUnicode_FromFormat("%U.%U", prefix, name_of(self).get()); });
}

PyObject* size(PyObject* self, void*) { return PyLong_FromLong(bit_width(of(self)) / 8); }
PyObject* dtype_name(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&] { return name_of(self).release(); });
}

// Pickled by name: sardonyx.array.float32.
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    const Object find = Object::taken(PyImport_ImportModule("sardonyx.array")).attribute("_dtype");
    return tuple(find, tuple(name_of(self))).release();
  });
}

// Each type is there once: one made by calling the class would have no meaning.
PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "element types cannot be constructed: use sardonyx.array.float32 or another constant");
  return nullptr;
}

PyGetSetDef properties[] = {{"size", size, nullptr, "Bytes of one element.", nullptr},
                            {"itemsize", size, nullptr, "Bytes of one element.", nullptr},
                            {"name", dtype_name, nullptr, "As in sardonyx.array.NAME.", nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

}  // namespace

void set_prefix(PyObject* text) { prefix = Object::of(text).release(); }

namespace {

void make_dtypes() {
  set_prefix(text("sardonyx.array").get());
  static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&refuse_new)},
                                {Py_tp_repr, reinterpret_cast<void*>(&repr)},
                                {Py_tp_getset, properties},
                                {Py_tp_methods, methods},
                                {Py_tp_doc, const_cast<char*>("The type of an array's elements.")},
                                {0, nullptr}};
  static PyType_Spec spec{"sardonyx.array.Dtype", sizeof(DtypeObject), 0, Py_TPFLAGS_DEFAULT, slots};
  Object type = Object::taken(PyType_FromSpec(&spec));
  if (dtype_type == nullptr) dtype_type = reinterpret_cast<PyTypeObject*>(type.release());
  for (const Dtype t : kTypes) {
    PyObject*& place = objects[static_cast<std::size_t>(t)];
    if (place != nullptr) continue;
    auto* made = PyObject_New(DtypeObject, dtype_type);
    if (made == nullptr) throw Raised();
    made->dtype = t;
    place = reinterpret_cast<PyObject*>(made);
  }
}

}  // namespace

// A module may be made again: the types of elements, which programs compare, stay the same as long as the process.
void add_dtypes(const Object& module) {
  if (dtype_type == nullptr) make_dtypes();
  check(PyObject_SetAttrString(module.get(), "Dtype", reinterpret_cast<PyObject*>(dtype_type)));
  for (const Dtype t : kTypes) {
    const std::string attribute = t == Dtype::boolean ? "bool" : std::string(name(t));
    check(PyObject_SetAttrString(module.get(), attribute.c_str(), dtype_object(t)));
  }
}

PyObject* dtype_object(Dtype dtype) {
  PyObject* const found = objects[static_cast<std::size_t>(dtype)];
  if (found == nullptr) raise_type_error("arrays of " + std::string(name(dtype)) + " have no name in Python");
  return found;
}

bool is_dtype(PyObject* object) { return Py_TYPE(object) == dtype_type; }

Dtype to_dtype(PyObject* object) {
  if (is_dtype(object)) return of(object);
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return Dtype::boolean;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return Dtype::int32;
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return Dtype::float32;
  if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) return Dtype::complex64;
  raise_type_error("expected an element type such as float32, received " + class_name(object));
}

}  // namespace sdx::python::arrays
