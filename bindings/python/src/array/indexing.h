#pragma once
// The indices in the brackets of a[…].

#include "handle.h"

namespace sdx::python::arrays {

std::vector<mx::Index> to_index(PyObject* key);
// The value that is stored into an array of this type.
mx::array to_values(PyObject* values, Dtype dtype);

}  // namespace sdx::python::arrays
