#pragma once

#include "../object.h"

namespace sdx::python {

// Adds generate_artifacts() and write_checkpoint().
void add_artifacts(const Object& module);

}  // namespace sdx::python
