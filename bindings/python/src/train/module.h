#pragma once

#include "../object.h"

namespace sdx::python {

// The module behind sardonyx/training, made when that is imported.
Object make_training(PyObject* self, PyObject* arguments);

}  // namespace sdx::python
