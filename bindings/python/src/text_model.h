#pragma once

#include "object.h"

namespace sdx::python {

// Adds LanguageModel and TextEmbedder with the functions that load them to the module behind sardonyx/text.py.
void add_text_models(const Object& module);

}  // namespace sdx::python
