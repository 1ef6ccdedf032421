#pragma once
// The key that random functions without one draw from, as `random.state` in trees of arrays.

#include "handle.h"

namespace sdx::python::arrays {

// Whether the object stands for the state.
bool is_random_state(PyObject* object);
mx::array random_state();
void set_random_state(mx::array key);

}  // namespace sdx::python::arrays
