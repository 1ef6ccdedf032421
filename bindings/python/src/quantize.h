#pragma once

#include "object.h"

namespace sdx::python {

// The module behind sardonyx/quantization, made when that is imported.
Object make_quantize(PyObject* self, PyObject* arguments);

}  // namespace sdx::python
