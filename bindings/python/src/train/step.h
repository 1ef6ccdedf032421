#pragma once

#include "../object.h"

namespace sdx::python {

// Adds Module, Optimizer, LinearLRScheduler and Trainer, and the functions that make them.
void add_steps(const Object& module);

}  // namespace sdx::python
