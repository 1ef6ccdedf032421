#pragma once
// DLPack: arrays of other libraries without copies.

#include <optional>

#include "handle.h"

namespace sdx::python::arrays {

// `value` is a copy of the array in a handle (is_alone()). A capsule "dltensor", or "dltensor_versioned" where the consumer knows
// it.
Object to_dlpack(const mx::array& value, bool versioned, bool copied);
// Takes over a capsule.
mx::array from_dlpack(PyObject* capsule, std::optional<bool> copy);

}  // namespace sdx::python::arrays
