#include "numpy.h"

#include <algorithm>
#include <array>
#include <string>

#include "tensor/types.h"

namespace sdx::python {
namespace {

struct ExtensionType {
  DataType dtype;
  const char* name;
};
constexpr std::array kExtensionTypes = {
    ExtensionType{DataType::bfloat16, "bfloat16"},
    ExtensionType{DataType::float8e4m3fn, "float8_e4m3fn"},
    ExtensionType{DataType::float8e4m3fnuz, "float8_e4m3fnuz"},
    ExtensionType{DataType::float8e5m2, "float8_e5m2"},
    ExtensionType{DataType::float8e5m2fnuz, "float8_e5m2fnuz"},
    ExtensionType{DataType::float8e8m0, "float8_e8m0fnu"},
    ExtensionType{DataType::float4e2m1, "float4_e2m1fn"},
    ExtensionType{DataType::float6e2m3, "float6_e2m3fn"},
    ExtensionType{DataType::float6e3m2, "float6_e3m2fn"},
    ExtensionType{DataType::int4, "int4"},
    ExtensionType{DataType::uint4, "uint4"},
    ExtensionType{DataType::int2, "int2"},
    ExtensionType{DataType::uint2, "uint2"},
};

// The result of make(), kept from the first call on and never released, because the module may outlive the interpreter's
// shutdown. Importing may hand the interpreter to another thread that gets here, too; then the first result is kept.
template <class Make>
PyObject* kept(PyObject*& place, const Make& make) {
  if (place != nullptr) return place;
  Object made = make();
  if (place == nullptr) place = made.release();
  return place;
}

// A module as one interpreter has it: a subinterpreter has another, which is emptied when that ends.
struct OfInterpreter {
  std::int64_t interpreter = -1;
  PyObject* module = nullptr;
};

template <class Make>
PyObject* kept(OfInterpreter& place, const Make& make) {
  const std::int64_t here = PyInterpreterState_GetID(PyInterpreterState_Get());
  if (place.interpreter == here) return place.module;
  Object made = make();
  place = {here, made.release()};
  return place.module;
}

PyObject* numpy_module() {
  static OfInterpreter place;
  return kept(place, [] { return Object::taken(PyImport_ImportModule("numpy")); });
}

// Only for types that it alone has: importing it takes 7 to 10 ms, as much as a small model's start. None where it is not
// installed.
PyObject* ml_dtypes() {
  static OfInterpreter place;
  return kept(place, [] {
    PyObject* module = PyImport_ImportModule("ml_dtypes");
    if (module != nullptr) return Object::taken(module);
    PyErr_Clear();  // an optional package
    return Object::none();
  });
}

}  // namespace

PyObject* ndarray() {
  static PyObject* place = nullptr;
  return kept(place, [] { return numpy("ndarray"); });
}

bool is_array(PyObject* object) {
  const int answer = PyObject_IsInstance(object, ndarray());
  check(answer);
  return answer == 1;
}

Object numpy(const char* name) { return Object::taken(PyObject_GetAttrString(numpy_module(), name)); }

Object as_array(PyObject* object, const Object& dtype) { return numpy("asarray").call(Object::of(object), dtype); }

Object as_contiguous_array(PyObject* object, const Object& dtype) {
  return numpy("asarray").call(Object::of(object), dtype, text("C"));
}

DataType extension_type(std::string_view name) {
  for (const ExtensionType& t : kExtensionTypes) {
    if (name == t.name) return t.dtype;
  }
  return DataType::undefined;
}

Object extension_dtype(DataType dtype) {
  for (const ExtensionType& t : kExtensionTypes) {
    if (t.dtype != dtype) continue;
    if (ml_dtypes() == Py_None) return Object::none();
    PyObject* type = PyObject_GetAttrString(ml_dtypes(), t.name);
    if (type != nullptr) return Object::taken(type);
    PyErr_Clear();  // older than the type
  }
  return Object::none();
}

const char* carrier_name(DataType dtype) {
  if (dtype == DataType::bfloat16) return "uint16";
  return dtype == DataType::int4 || dtype == DataType::int2 ? "int8" : "uint8";
}

PyObject* array_dtype(DataType dtype) {
  static std::array<PyObject*, kDataTypeCount> places{};
  return kept(places.at(static_cast<std::size_t>(dtype)), [&] {
    Object type = extension_dtype(dtype);
    if (type.is_none()) {
      const bool is_extension =
          std::any_of(kExtensionTypes.begin(), kExtensionTypes.end(), [&](const auto& t) { return t.dtype == dtype; });
      type = text(is_extension ? carrier_name(dtype) : name(dtype));
    }
    return numpy("dtype").call(type);
  });
}

}  // namespace sdx::python
