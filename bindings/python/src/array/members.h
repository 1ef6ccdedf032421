#pragma once
// What arrays have beside the protocols of Python.

#include "handle.h"

namespace sdx::python::arrays {

// Both end with an empty entry and stay as long as the process.
PyGetSetDef* properties();
PyMethodDef* methods();

}  // namespace sdx::python::arrays
