#pragma once

#include "../object.h"

namespace sdx::python {

// The module behind sardonyx/array, made when that is imported.
Object make_arrays(PyObject* self, PyObject* arguments);

}  // namespace sdx::python
