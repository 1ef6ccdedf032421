#include "handle.h"

#include <cstddef>
#include <new>

#include "array/node.h"
#include "bind.h"
#include "members.h"

extern "C" {
#include <structmember.h>
}

namespace sdx::python::arrays {
namespace {

// array(val, dtype=None)
PyObject* construct(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    static const char* kNames[] = {"val", "dtype", nullptr};
    PyObject *val = nullptr, *dtype = Py_None;
    if (PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O:array", const_cast<char**>(kNames), &val, &dtype) == 0)
      throw Raised();
    mx::array made = to_array(val, From<std::optional<Dtype>>::get(dtype));
    if (type == array_type) return wrap(std::move(made)).release();
    auto* const allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
    PyObject* const object = allocate(type, 0);
    if (object == nullptr) throw Raised();
    new (&reinterpret_cast<Handle*>(object)->value) mx::array(std::move(made));
    return object;
  });
}

void destroy(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  auto* const handle = reinterpret_cast<Handle*>(self);
  if (handle->weak != nullptr) PyObject_ClearWeakRefs(self);
  handle->value.~array();
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(Handle, weak), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

Py_hash_t hash(PyObject* self) { return static_cast<Py_hash_t>(reinterpret_cast<std::uintptr_t>(self) >> 4); }

}  // namespace

std::string class_name(PyObject* object) {
  return to_text(Object::of(reinterpret_cast<PyObject*>(Py_TYPE(object))).attribute("__name__").get());
}

mx::array& expect_array(PyObject* object) {
  if (!is_array(object)) raise_type_error("expected an array, received " + class_name(object));
  return array_of(object);
}

Object wrap(mx::array value) {
  auto* handle = PyObject_New(Handle, array_type);
  if (handle == nullptr) throw Raised();
  handle->weak = nullptr;
  new (&handle->value) mx::array(std::move(value));
  return Object::taken(reinterpret_cast<PyObject*>(handle));
}

Object wrap_list(const std::vector<mx::array>& values) {
  Object list = Object::taken(PyList_New(static_cast<Py_ssize_t>(values.size())));
  Py_ssize_t i = 0;
  for (const mx::array& a : values) check(PyList_SetItem(list.get(), i++, wrap(a).release()));
  return list;
}

Object wrap_tuple(const std::vector<mx::array>& values) {
  Object made = Object::taken(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  Py_ssize_t i = 0;
  for (const mx::array& a : values) check(PyTuple_SetItem(made.get(), i++, wrap(a).release()));
  return made;
}

Object shape_tuple(const Shape& shape) {
  Object extents = Object::taken(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  Py_ssize_t i = 0;
  for (const std::int64_t d : shape) check(PyTuple_SetItem(extents.get(), i++, number(d).release()));
  return extents;
}

const Tensor& tensor_of(const mx::array& value) {
  if (!value.is_evaluated()) evaluate({&value, 1});
  return value.tensor();
}

bool is_alone(const mx::array& value) {
  const Tensor& t = tensor_of(value);
  return t.writable() && t.owner().use_count() == 1 && value.node()->refs.load() == 2;  // the handle's and this copy
}

namespace {

void make_array_type() {
  static std::vector<PyType_Slot> slots{
      {Py_tp_new, reinterpret_cast<void*>(&construct)},
      {Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
      {Py_tp_members, members},
      {Py_tp_hash, reinterpret_cast<void*>(&hash)},
      {Py_tp_getset, properties()},
      {Py_tp_methods, methods()},
      {Py_tp_doc, const_cast<char*>("array(val, dtype=None)\n--\n\nNumbers in a box of some shape.")}};
  for (const auto& part : {number_slots(), index_slots(), buffer_slots()}) slots.insert(slots.end(), part.begin(), part.end());
  slots.push_back({0, nullptr});
  static PyType_Spec spec{"sardonyx.array.array", sizeof(Handle), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots.data()};
  Object type = Object::taken(PyType_FromSpec(&spec));
  if (array_type == nullptr) array_type = reinterpret_cast<PyTypeObject*>(type.release());
}

}  // namespace

// A module may be made again: arrays of both are of one class, which stays as long as the process.
void add_array_type(const Object& module) {
  if (array_type == nullptr) make_array_type();
  check(PyObject_SetAttrString(module.get(), "array", reinterpret_cast<PyObject*>(array_type)));
}

}  // namespace sdx::python::arrays
