#pragma once
// Members of arrays besides Python's protocols.

#include "handle.h"

namespace sdx::python::arrays {

// Both end with an empty entry and live as long as the process.
PyGetSetDef* properties();
PyMethodDef* methods();

}  // namespace sdx::python::arrays
