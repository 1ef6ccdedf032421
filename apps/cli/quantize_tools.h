#pragma once
// Quantising, loaded when its command runs.

#include "quantize/tools.h"

namespace sdx::cli {

// Throws Error(io) where libsdx_quantize.so is missing or of another build.
const quantize::Tools& quantize_tools();

}  // namespace sdx::cli
