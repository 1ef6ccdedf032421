#pragma once

#include "../object.h"

namespace sdx::python {

// Adds what sardonyx.torch differentiates models with.
void add_autograd(const Object& module);

}  // namespace sdx::python
