#pragma once
// A session's options as sardonyx/_options.py writes them.

#include <sdx/session.hpp>

#include "object.h"

namespace sdx::python {

// From a dict by the names of SessionOptions' members, durations in milliseconds. Throws Raised.
SessionOptions to_options(PyObject* dict);

}  // namespace sdx::python
