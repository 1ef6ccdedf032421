#pragma once

#include "object.h"

namespace sdx::python {

// The module behind sardonyx/speech.py, made when that is imported.
Object make_speech(PyObject* self, PyObject* arguments);

}  // namespace sdx::python
