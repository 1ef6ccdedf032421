#pragma once

#include "object.h"

namespace sdx::python {

// The module behind sardonyx/text.py, made when that is imported.
Object make_text(PyObject* self, PyObject* arguments);

}  // namespace sdx::python
