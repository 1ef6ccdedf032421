#pragma once
// Element types as Python's objects, one for each type.

#include "handle.h"

namespace sdx::python::arrays {

void add_dtypes(const Object& module);
// The prefix of types when they are printed: "sardonyx.array".
void set_prefix(PyObject* text);
// Borrowed.
PyObject* dtype_object(Dtype dtype);
// TypeError for anything else.
Dtype to_dtype(PyObject* object);
bool is_dtype(PyObject* object);

}  // namespace sdx::python::arrays
