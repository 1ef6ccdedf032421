#pragma once
// A session's options as sardonyx/_options.py writes them.

#include <sdx/session.hpp>

#include "object.h"

namespace sdx::python {

// Fills the options from a dict with the names of SessionOptions' members; times are in seconds. Throws Raised, or Error for
// values out of range.
SessionOptions to_options(PyObject* dict);

}  // namespace sdx::python
