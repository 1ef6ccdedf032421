#pragma once

#include "object.h"

namespace sdx::python {

// The module behind sardonyx/faces.py, made when that is imported.
Object make_faces(PyObject* self, PyObject* arguments);

}  // namespace sdx::python
