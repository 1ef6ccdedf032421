#pragma once
// Python's functions as C++ functions of lists of arrays.

#include "handle.h"

namespace sdx::python::arrays {

// A reference that may be let go of on any thread, with or without the GIL.
std::shared_ptr<PyObject> shared(PyObject* object);

// fn(list of arrays) -> list of arrays. Needs the GIL when it is called. Throws Raised if the function raises an exception.
mx::ArraysFunction arrays_function(PyObject* fn);

// Adds the class of compiled functions.
void add_compiled(const Object& module);

}  // namespace sdx::python::arrays
