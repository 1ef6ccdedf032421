#pragma once
// The product "Language", loaded when one of its commands runs.

#include "text/tools.h"

namespace sdx::cli {

// Throws Error(io) where libsdx_text.so is missing or of another build.
const text::Tools& text_tools();

}  // namespace sdx::cli
